"""Without a network: what was visited once works again, of one build; where nothing is kept, pages work as ever."""

import os
import re
import shutil

import pytest
from test_editor import GATE, edited
from test_editor import run as run_edit
from visit import SLUG, TAB, expected

from k3core.lab.registry import experiment

OTHER = "page-table"
KEPT = """async ([page, count]) => {
  const until = Date.now() + 60000;
  while (Date.now() < until) {
    const names = await caches.keys();
    for (const name of names) {
      const cache = await caches.open(name), urls = (await cache.keys()).map(({ url }) => url);
      if (navigator.serviceWorker.controller && names.length === 1 && urls.some((url) => url.endsWith(page))
        && urls.filter((url) => url.includes("/assets/runtime/")).length >= count) return urls;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return null;
}"""


def kept(visit, page: str = TAB) -> list:
    """Wait until the page and the six files of the runtime are kept; the addresses of all that is."""
    urls = visit.page.evaluate(KEPT, [page, 6])
    assert urls, visit.page.evaluate("async () => [await caches.keys(), !!navigator.serviceWorker.controller]")
    return urls


ONLY_NEW = "(await caches.keys()).every((name) => name.endsWith(' new'))"


def until(visit, condition: str):
    """Wait until this asynchronous function returns true."""
    assert visit.page.evaluate(f"""async () => {{
      const condition = {condition}, until = Date.now() + 60000;
      while (Date.now() < until) {{
        if (await condition()) return true;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }}
      return false;
    }}""")


def live(visit):
    visit.skip_prediction()
    visit.settle()


def without_icon(visit):
    """Chromium asks for the icon on its own, past the service worker."""
    visit.complaints[:] = [words for words in visit.complaints if "/assets/icon." not in words]


def test_the_second_visit_works_without_a_network(visit, http_root):
    tab = visit(f"{http_root}/{TAB}")
    live(tab)
    assert not [url for url in kept(tab) if url.endswith((".js.gz", ".1.js", ".whl"))]
    tab.page.locator(f'.rail a[href$="{OTHER}.html"]').click()
    tab.page.wait_for_url(f"**/{OTHER}.html")
    kept(tab, f"tabs/{OTHER}.html")
    tab.context.set_offline(True)
    tab.page.goto(f"{http_root}/{TAB}#dk=64")
    tab.settle()
    assert tab.shown() == expected(SLUG, {"dk": 64}) and tab.page.locator(".chart .vega svg").count() == 2
    run_edit(tab, edited(*GATE))  # the editor has the sources too
    assert tab.shown() == expected(SLUG, {"dk": 64, "count_gate": False})
    tab.page.locator(f'.rail a[href$="{OTHER}.html"]').click()
    tab.page.wait_for_url(f"**/{OTHER}.html*")
    live(tab)
    assert tab.shown() == expected(OTHER)
    tab.page.reload()
    live(tab)
    assert tab.shown() == expected(OTHER)
    without_icon(tab)


def test_a_page_never_visited_says_that_the_network_is_gone(visit, http_root):
    tab = visit(f"{http_root}/{TAB}#dk=64", expect_complaints=True)
    tab.settle()
    kept(tab)
    tab.context.set_offline(True)
    tab.page.locator('.rail a[href$="prefix-hit.html"]').click()
    tab.page.wait_for_selector("#notice.problem")
    assert "the network is gone" in tab.text("#notice") and tab.shown() == expected(SLUG, {"dk": 64})


def rebuild(folder):
    """Another build in place of this one, with files of other names."""
    script = next((folder / "assets").glob("page.*.js"))
    new = script.with_name("page.0123456789.js")
    mark = 'document.documentElement.dataset.build = "new";\n'
    new.write_text(mark + script.read_text(encoding="utf-8"), encoding="utf-8")
    script.unlink()
    for path in (*folder.rglob("*.html"), folder / "sw.js"):
        text = path.read_text(encoding="utf-8").replace(script.name, new.name)
        path.unlink()
        path.write_text(re.sub('const BUILD = "[^"]*"', 'const BUILD = "new"', text), encoding="utf-8")


@pytest.fixture
def outdated(site, tmp_path, serve_folder, visit):
    """A page that is kept, and the address of its site, which was built anew since."""
    shutil.copytree(site, tmp_path / "site", copy_function=os.link)
    root = serve_folder(tmp_path / "site")
    tab = visit(f"{root}/{TAB}#dk=64")
    tab.settle()
    kept(tab)
    rebuild(tmp_path / "site")
    return tab, root


def test_a_new_build_is_shown_at_once_and_takes_over_whole(outdated):
    tab, root = outdated
    tab.page.reload()  # the old worker answers, with the new page and the new script
    tab.settle()
    assert tab.page.locator("html").get_attribute("data-build") == "new" and tab.shown() == expected(SLUG, {"dk": 64})
    # The new worker takes over once a page is drawn: this one, or, where it was not ready by then, the next one.
    until(tab, f"async () => (await navigator.serviceWorker.getRegistration()).waiting || {ONLY_NEW}")
    tab.page.reload()
    tab.settle()
    until(tab, f"async () => {ONLY_NEW}")
    assert [url for url in kept(tab) if "/assets/page." in url] == [f"{root}/assets/page.0123456789.js"]
    tab.context.set_offline(True)
    tab.page.reload()
    tab.settle()
    assert tab.page.locator("html").get_attribute("data-build") == "new" and tab.shown() == expected(SLUG, {"dk": 64})
    without_icon(tab)


def test_an_old_build_and_a_new_one_are_never_mixed_without_a_network(outdated):
    """A page of the old build, kept, opens with the old script beside a page of the new build."""
    tab, root = outdated
    tab.page.goto(f"{root}/tabs/{OTHER}.html#guess=1")
    tab.settle()
    assert tab.page.locator("html").get_attribute("data-build") == "new"
    tab.context.set_offline(True)
    tab.page.goto(f"{root}/{TAB}#dk=64")
    tab.settle()
    scripts = tab.page.evaluate(
        "() => [...document.scripts].map((node) => node.src).filter((src) => src.includes('/page.'))")
    new = tab.page.locator("html").get_attribute("data-build") == "new"
    assert len(scripts) == 1 and scripts[0].endswith("page.0123456789.js") == new
    assert tab.shown() == expected(SLUG, {"dk": 64})
    without_icon(tab)


BLOCKED = {
    "storage": """for (const name of ["localStorage", "sessionStorage", "caches", "indexedDB"])
      Object.defineProperty(window, name, { get() { throw new DOMException("blocked", "SecurityError"); } });""",
    "service worker": """Object.defineProperty(Navigator.prototype, "serviceWorker",
      { get() { throw new DOMException("blocked", "SecurityError"); } });""",
    "registration": """ServiceWorkerContainer.prototype.register = () =>
      Promise.reject(new DOMException("blocked", "SecurityError"));""",
    "no service worker": """delete Navigator.prototype.serviceWorker;""",
    "history": """for (const name of ["replaceState", "pushState"])
      history[name] = () => { throw new DOMException("too many calls", "SecurityError"); };""",
    "full": """Storage.prototype.setItem = () => { throw new DOMException("full", "QuotaExceededError"); };""",
}


@pytest.mark.parametrize("what", BLOCKED)
def test_where_nothing_can_be_kept_the_page_works_all_the_same(browser, visit, http_root, what):
    tab = visit("about:blank")
    tab.page.add_init_script(BLOCKED[what])
    tab.page.goto(f"{http_root}/{TAB}#dk=64")
    tab.settle()
    assert tab.shown() == expected(SLUG, {"dk": 64}) and tab.page.locator("#notice").is_hidden()
    tab.page.locator(f'.rail a[href$="{OTHER}.html"]').click()
    tab.page.wait_for_url(f"**/{OTHER}.html")
    live(tab)
    assert tab.shown() == expected(OTHER)


FULL = """const put = Cache.prototype.put;
Cache.prototype.put = function (...what) {
  return registration.active ? Promise.reject(new DOMException("full", "QuotaExceededError")) : put.apply(this, what);
};
"""


def test_on_a_full_disk_what_cannot_be_kept_is_shown(visit, site, tmp_path, serve_folder):
    folder = tmp_path / "site"
    shutil.copytree(site, folder, copy_function=os.link)
    text = (folder / "sw.js").read_text(encoding="utf-8")
    (folder / "sw.js").unlink()
    (folder / "sw.js").write_text(FULL + text, encoding="utf-8")
    slug = "replayssm-ring"
    tab = visit(f"{serve_folder(folder)}/tabs/{slug}.html")
    live(tab)
    until(tab, "async () => Boolean(navigator.serviceWorker.controller)")
    tab.page.click("[data-preset=real-text]")
    tab.settle()
    assert tab.page.locator("#notice").is_hidden()
    preset = experiment(slug).preset("real-text")
    assert tab.shown()["digest"] == expected(slug, preset.params, preset.seed)["digest"]
    assert tab.page.evaluate("async () => (await caches.match(location.href)) === undefined")
