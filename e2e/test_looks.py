"""Widths, colour schemes, and a visit with the keyboard alone."""

from visit import PHONE, SCENE, TAB

# --- looks ------------------------------------------------------------------------------------------------------


def test_nothing_scrolls_sideways(visit, http_root, site):
    tab = visit(f"{http_root}/index.html#guess=1", python=False)
    for path in sorted(site.rglob("*.html")):
        tab.page.goto(f"{http_root}/{path.relative_to(site)}#guess=1")
        for width in (360, 768, 1440):
            tab.page.set_viewport_size({"width": width, "height": 900})
            assert not tab.scrolls_sideways(), f"{path.name} at {width}"


def test_extreme_settings_do_not_scroll_sideways_either(live):
    live.page.set_viewport_size({"width": 360, "height": 740})
    for fragment in ("dk=1&dv=256&conv=true&drafts=16", "dk=256&dv=1", "dk=" + "9" * 300, "x" * 300 + "=1"):
        live.go(fragment)
        live.settle()
        assert not live.scrolls_sideways(), fragment[:40]


def test_dark_is_dark_and_light_is_light(visit, http_root):
    tab = visit(f"{http_root}/{TAB}#guess=1", python=False)
    seen = {}
    for scheme in ("light", "dark"):
        tab.page.emulate_media(color_scheme=scheme)
        seen[scheme] = tab.page.evaluate("""() => {
          const brightness = (colour) =>
            colour.match(/[\\d.]+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0);
          const style = (selector) => getComputedStyle(document.querySelector(selector));
          return [brightness(style("body").backgroundColor), brightness(style(".picture .state").fill)];
        }""")
    assert seen["light"][0] > 700 and seen["dark"][0] < 120 and seen["light"][1] != seen["dark"][1]


def test_on_paper_it_is_light_and_everything_is_to_read(live):
    live.page.emulate_media(media="print", color_scheme="dark")
    live.page.set_viewport_size({"width": 680, "height": 1000})
    page = live.page
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("() => getComputedStyle(document.querySelector('h1')).color") == "rgb(26, 26, 23)"
    for selector in (".question", f"{SCENE} svg", ".caption", ".metrics", ".checks", "[data-digest]", ".chart svg",
                     "table", ".prose"):
        assert page.locator(f"{selector} >> visible=true").count() > 0, selector
    for selector in ("button", "input", "select", ".rail", ".top", ".foot"):
        assert page.locator(f"{selector} >> visible=true").count() == 0, selector
    for svg in page.locator(".picture svg, .chart svg").all():
        box = svg.bounding_box()
        assert box is None or box["x"] + box["width"] <= 681
    assert not live.scrolls_sideways()
    page.emulate_media(media="screen", color_scheme="light")


# --- keyboard ---------------------------------------------------------------------------------------------------

REACHABLE = """() => {
  const own = [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')]
    .filter((node) => node.checkVisibility({ visibilityProperty: true }) && !node.disabled
      && !(node.type === "radio" && !node.checked));
  own.forEach((node, index) => { node.dataset.tested = index; });
  return own.map((node) => node.outerHTML.slice(0, 120));
}"""
FOCUSED = """() => {
  const node = document.activeElement;
  const visible = (element) => {
    const { outlineStyle, outlineWidth } = getComputedStyle(element);
    return outlineStyle !== "none" && parseFloat(outlineWidth) > 0;
  };
  return [node.dataset.tested ?? null, visible(node) || visible(node.closest("label") || node)];
}"""


def tabbed(visit) -> tuple:
    """All that can be reached, what Tab reaches, and what showed no focus."""
    everything = visit.page.evaluate(REACHABLE)
    reached, dim = set(), []
    for _ in range(2 * len(everything) + 20):  # twice around: wherever it starts, it comes by everything
        visit.page.keyboard.press("Tab")
        index, focus_visible = visit.page.evaluate(FOCUSED)
        if index is not None:
            reached.add(int(index))
            if not focus_visible:
                dim.append(everything[int(index)])
    return everything, reached, dim


def test_the_keyboard_reaches_everything_and_shows_where_it_is(live):
    everything, reached, dim = tabbed(live)
    assert [node for index, node in enumerate(everything) if index not in reached] == [] and dim == []
    assert len(everything) > 30


def test_a_whole_visit_by_keyboard(visit, http_root):
    """Guess, break the mechanism, step: Tab, Enter, Space and arrows only."""
    tab = visit(f"{http_root}/{TAB}", python=False, viewport=PHONE["viewport"])

    def tab_to(selector: str):
        for _ in range(120):
            tab.page.keyboard.press("Tab")
            if tab.page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
                return
        raise AssertionError(f"Tab does not reach {selector}")

    tab_to("#menu")
    tab.page.keyboard.press("Enter")
    assert tab.page.locator("#menu").get_attribute("aria-expanded") == "true"
    assert tab.page.evaluate("() => document.activeElement.closest('#tabs') !== null")
    tab.page.keyboard.press("Escape")
    assert tab.page.locator("#menu").get_attribute("aria-expanded") == "false"
    tab_to('[data-guess="2"]')
    tab.page.keyboard.press("Enter")
    assert "Right." in tab.text("#prediction .answer")
    tab_to(f"{SCENE} [data-step='-1']")
    tab.page.keyboard.press("Space")
    tab_to('[name="count_gate"]')
    tab.page.keyboard.press("Space")
    tab.page.evaluate("() => K3.lab.address.write()")
    assert tab.state == {"guess": "2", "frame.window": "7", "count_gate": "false"}


def test_the_blurred_figure_is_out_of_reach_while_the_question_is_asked(visit, http_root):
    tab = visit(f"{http_root}/{TAB}", python=False)
    everything, reached, _ = tabbed(tab)
    hidden = [node for index, node in enumerate(everything) if index in reached and "data-step" in node]
    assert hidden == []
