"""Widths and zoom, colour schemes and forced colours, motion, and a visit with the keyboard alone."""

import pytest
from test_access import FAINT, MOVING
from visit import PHONE, SCENE, TAB

ZOOMED = {"width": 720, "height": 450}  # what a window of 1440 by 900 is at 200 %

# --- looks ------------------------------------------------------------------------------------------------------


def test_nothing_scrolls_sideways(visit, http_root, site):
    tab = visit(f"{http_root}/index.html#guess=1", python=False)
    for path in sorted(site.rglob("*.html")):
        tab.page.goto(f"{http_root}/{path.relative_to(site)}#guess=1")
        for width in (320, 360, ZOOMED["width"], 768, 1440):  # 320: a window of 1280 at 400 %
            tab.page.set_viewport_size({"width": width, "height": 900})
            assert not tab.scrolls_sideways(), f"{path.name} at {width}"


def test_extreme_settings_do_not_scroll_sideways_either(live):
    live.resize(360, 740)
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
    live.resize(680, 1000)
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


FORCED = """() => {
  const style = (selector, name) => getComputedStyle(document.querySelector(selector))[name];
  return {
    kinds: new Set(["state", "key", "value", "snapshot"].map((kind) => style(`.picture .${kind}`, "fill"))).size,
    hatch: style(".picture .snapshot", "fill"),
    chosen: [":has(:checked)", ":not(:has(:checked))"]
      .map((which) => style(`.segments label${which}`, "backgroundColor")),
    pressed: ["true", "false"].map((pressed) => style(`[data-preset][aria-pressed="${pressed}"]`, "outlineStyle")),
    here: style('.rail [aria-current="page"]', "outlineStyle"), slider: style('input[type="range"]', "appearance"),
    marks: [...document.querySelectorAll(".check .mark")].map((node) => node.textContent),
  };
}"""


def test_in_forced_colours_the_drawing_and_what_is_chosen_can_be_told(live):
    live.page.locator('[data-preset="no-gate"]').click()
    live.settle()
    for scheme in ("light", "dark"):
        live.page.emulate_media(forced_colors="active", color_scheme=scheme)
        live.page.evaluate("async () => { K3.lab.charts.show(K3.lab.result); await K3.lab.charts.drawing; }")
        seen = live.page.evaluate(FORCED)
        assert live.page.evaluate(FAINT) == [], scheme
        assert seen["kinds"] == 4 and "hatch-snapshot" in seen["hatch"]
        assert seen["chosen"][0] != seen["chosen"][1] and seen["pressed"] == ["solid", "none"]
        assert seen["here"] == "solid" and seen["slider"] == "auto" and set(seen["marks"]) == {"✓", "✗"}
    everything, reached, dim = tabbed(live)
    assert len(reached) == len(everything) and dim == []
    live.page.emulate_media(forced_colors="none", color_scheme="light")


def test_who_wants_no_motion_gets_none_and_can_still_play(live):
    live.page.emulate_media(reduced_motion="no-preference")
    assert live.page.evaluate(MOVING)
    live.page.emulate_media(reduced_motion="reduce")
    assert not live.page.evaluate(MOVING)
    live.page.locator(f"{SCENE} [data-play]").click()
    live.page.wait_for_function(f"() => /^[1-7] /.test(document.querySelector('{SCENE} .counter').textContent)")
    live.page.locator(f"{SCENE} [data-play]").click()
    assert not live.page.evaluate(MOVING) and live.page.evaluate("() => document.getAnimations().length") == 0
    live.page.emulate_media(reduced_motion="no-preference")


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


@pytest.mark.parametrize("place", ["index.html", "zh/traces.html", "zh/claims.html"])
def test_the_keyboard_reaches_everything_on_pages_of_other_kinds(visit, http_root, place):
    everything, reached, dim = tabbed(visit(f"{http_root}/{place}#guess=1", python=False))
    assert [node for index, node in enumerate(everything) if index not in reached] == [] and dim == []


COVERED = """() => {
  const node = document.activeElement.closest("label") || document.activeElement, box = node.getBoundingClientRect();
  const inside = (x, y) => {
    const within = (at, size) => Math.min(Math.max(at, 1), size - 1);
    const top = document.elementFromPoint(within(x, innerWidth), within(y, innerHeight));
    return top && (node.contains(top) || top.contains(node));
  };
  const seen = [[0.5, 0.5], [0.1, 0.2], [0.9, 0.8], [0.1, 0.8], [0.9, 0.2]]
    .some(([x, y]) => inside(box.left + x * box.width, box.top + y * box.height));
  const near = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  return seen && near ? null : node.outerHTML.slice(0, 160);
}"""


def test_at_twice_the_size_whatever_has_the_focus_is_in_sight(live):
    live.resize(**ZOOMED)
    everything = live.page.evaluate(REACHABLE)
    covered = []
    for _ in range(len(everything)):
        live.page.keyboard.press("Tab")
        covered.append(live.page.evaluate(COVERED))
    for _ in range(len(everything)):
        live.page.keyboard.press("Shift+Tab")
        covered.append(live.page.evaluate(COVERED))
    assert [node for node in covered if node] == []


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
