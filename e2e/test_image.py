"""A later visit starts from an image of Python's memory, made in this browser: it computes what a fresh start does."""

import pytest
from test_editor import GATE, edited
from test_editor import run as run_edit
from test_offline import kept, until, without_icon
from visit import SLUG, TAB, Visit, expected
from wander import rail

from k3core.lab.registry import experiment, slugs

IMAGED = "() => K3.lab.engine.imaged"
DAMAGED = """async () => {
  let count = 0;
  for (const name of await caches.keys()) {
    const cache = await caches.open(name), image = await cache.match(K3.image);
    if (!image) continue;
    const bytes = new Uint8Array(await image.arrayBuffer());
    bytes.fill(165, 200000, 4000000);
    await cache.put(K3.image, new Response(bytes, { headers: image.headers }));
    count += 1;
  }
  return count;
}"""

IS_SOUND = """async () => {
  const image = await caches.match(K3.image);
  const piece = image && (await image.blob()).slice(300000, 300064);
  return piece && new Uint8Array(await piece.arrayBuffer()).some((byte) => byte !== 165);
}"""


@pytest.fixture(scope="module")
def later(browser, http_root):
    """A page opened for the second time, at its defaults."""
    tab = Visit(browser, {}, image=True)
    tab.page.goto(f"{http_root}/{TAB}#guess=1")
    tab.settle()
    assert not tab.page.evaluate(IMAGED)
    kept(tab)
    until(tab, "async () => Boolean(await caches.match(K3.image))")
    tab.page.reload()
    tab.settle()
    assert tab.page.evaluate(IMAGED)
    yield tab
    without_icon(tab)
    tab.close()
    assert not tab.complaints, tab.complaints


def test_every_tab_computes_the_same(later):
    for slug in slugs():
        rail(later, slug)
        later.settle()
        assert later.page.evaluate("() => K3.lab.result.digest") == experiment(slug).run().digest(), slug
    assert later.page.evaluate(IMAGED)


def test_an_edit_starts_afresh_and_a_reset_does_not(later, http_root):
    later.page.goto(f"{http_root}/{TAB}#guess=1")
    later.settle()
    later.context.set_offline(True)
    run_edit(later, edited(*GATE))
    assert later.shown() == expected(SLUG, {"count_gate": False}) and not later.page.evaluate(IMAGED)
    later.page.evaluate("() => K3.lab.engine.edit(null)")
    later.page.fill("#p-dk", "64")
    later.settle()
    assert later.shown() == expected(SLUG, {"dk": 64}) and later.page.evaluate(IMAGED)
    later.context.set_offline(False)


def test_a_damaged_image_costs_nothing_but_time(later):
    assert later.page.evaluate(DAMAGED) == 1
    later.page.reload()
    later.page.fill("#p-dk", "64")
    later.settle()
    assert later.shown() == expected(SLUG, {"dk": 64}) and not later.page.evaluate(IMAGED)
    until(later, IS_SOUND)
    later.page.reload()  # another one was made
    later.settle()
    assert later.page.evaluate(IMAGED)
