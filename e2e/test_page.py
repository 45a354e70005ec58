"""What a person does with a tab: read, drag, step, guess, share, switch language, use only the keyboard."""

import json
import xml.etree.ElementTree as ElementTree
from urllib.parse import unquote

import pytest
from visit import SLUG, expected

from k3core.lab.registry import experiment, slugs
from k3core.lab.text import LANGUAGES

TAB = f"tabs/{SLUG}.html"
PHONE = {"viewport": {"width": 360, "height": 740}}
SCENE = '[data-scene="window"]'
EXPERIMENT = experiment(SLUG)


def picture(svg: str) -> list:
    """A drawing as (element, attributes, text) in document order, whatever wrote it."""
    return [(node.tag, dict(node.attrib), (node.text or "").strip()) for node in ElementTree.fromstring(svg).iter()]


def drawn(visit) -> list:
    return picture(visit.page.evaluate(
        f"() => new XMLSerializer().serializeToString(document.querySelector('{SCENE} .picture svg'))"))


def native_picture(frame: int, params: dict | None = None, narrow: bool = False, lang: str = "en") -> list:
    return picture(EXPERIMENT.picture(EXPERIMENT.run(params), "window", frame, lang, narrow).svg)


def caption(frame: int, params: dict | None = None, lang: str = "en") -> str:
    return EXPERIMENT.run(params).scenes[0].captions[frame].render(lang)


# --- loading ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["http", "file"])
def test_it_goes_live_and_asks_no_other_origin(pages, roots, way):
    visit = pages(way)
    assert "Python 3.14" in visit.text("#status .words")
    assert visit.page.locator("html").get_attribute("data-python") == "idle"
    assert visit.shown() == expected(SLUG)
    assert visit.page.locator(".chart .vega svg").count() == 2 and visit.page.locator(".chart .static").count() == 0
    visit.page.fill("#p-dk", "40")
    visit.page.locator("[data-step='-1']").click()
    visit.settle()
    assert visit.shown() == expected(SLUG, {"dk": 40}) and drawn(visit) == native_picture(7, {"dk": 40})
    assert [url for url in visit.requests if not url.startswith((roots[way], "blob:", "data:"))] == []
    assert visit.complaints == []


@pytest.mark.parametrize("slug", slugs())
def test_every_tab_goes_live_on_a_phone(visit, http_root, slug):
    tab = visit(f"{http_root}/tabs/{slug}.html", **PHONE)
    tab.skip_prediction()
    tab.settle()
    assert tab.shown() == expected(slug)
    for svg in tab.page.locator(".picture svg").all():
        assert svg.get_attribute("viewBox").split()[2] == "340"
    assert not tab.scrolls_sideways()


@pytest.mark.parametrize("lang", LANGUAGES)
def test_it_reads_complete_before_python_is_there(visit, http_root, lang):
    tab = visit(f"{http_root}/{'' if lang == 'en' else 'zh/'}{TAB}#guess=1", python=False)
    assert tab.shown() == expected(SLUG, lang=lang)
    assert EXPERIMENT.question.render(lang) in tab.text(".question")
    poster = EXPERIMENT.run().scenes[0].poster
    assert drawn(tab) == native_picture(poster, lang=lang)
    assert tab.text(f"{SCENE} .caption") == caption(poster, lang=lang)
    assert tab.page.locator(f"{SCENE} .captions li").count() == 9
    assert tab.page.locator(".chart .static.wide svg").count() == 2
    assert tab.page.locator("html").get_attribute("data-python") == "loading" and "0.0" in tab.text("#status .words")


def test_controls_work_before_python_is_there_and_the_newest_setting_counts(visit, http_root):
    tab = visit(f"{http_root}/{TAB}#guess=1", python=False)
    tab.page.fill("#p-dk", "64")
    tab.page.fill("#p-dk", "32")
    tab.page.focus(f"{SCENE} .picture")
    tab.page.keyboard.press("Home")
    tab.page.evaluate("() => K3.lab.address.write()")
    assert tab.state == {"guess": "1", "dk": "32", "frame.window": "0"}
    assert tab.text(f"{SCENE} .caption") == caption(8)  # the words stay with the drawing
    tab.with_python()
    tab.settle()
    assert tab.shown() == expected(SLUG, {"dk": 32}) and drawn(tab) == native_picture(0, {"dk": 32})


def test_without_javascript_everything_can_be_read(visit, http_root):
    for lang, path in (("en", TAB), ("zh", f"zh/{TAB}"), ("en", "index.html"), ("zh", "zh/index.html")):
        tab = visit(f"{http_root}/{path}", java_script_enabled=False)
        slug = tab.page.evaluate("() => JSON.parse(document.getElementById('page').textContent).experiment.slug")
        shown = expected(slug, lang=lang)
        assert tab.shown() == shown
        for node in tab.page.locator("[data-metric] .value, [data-check] .detail, [data-digest], [data-table]").all():
            assert node.is_visible()
        for selector in (".question", ".picture.wide svg", "table", ".chart svg"):
            assert tab.page.locator(selector).first.is_visible(), selector
        assert tab.page.locator("#prediction .ask").is_hidden() and tab.page.locator("#prediction .truth").is_visible()
        assert tab.page.locator(".stage").evaluate("(node) => getComputedStyle(node.children[1]).filter") == "none"
        assert tab.page.locator("noscript p").is_visible() and tab.page.locator("#status").is_hidden()
        if "tabs" in path:
            assert tab.page.locator(".prose h2").count() >= 3 and tab.page.locator("math").first.is_visible()


# --- controls ---------------------------------------------------------------------------------------------------


def test_a_slider_moves_numbers_scene_charts_table_and_address(live):
    before = live.page.locator(".chart").first.inner_html()
    slider = live.page.locator('input[type="range"][name="dk"]')
    slider.focus()
    for _ in range(3):
        live.page.keyboard.press("ArrowLeft")
    live.settle()
    assert live.shown() == expected(SLUG, {"dk": 125}) and live.state == {"dk": "125"}
    assert drawn(live) == native_picture(8, {"dk": 125})
    assert live.page.locator("#p-dk").input_value() == "125"
    assert live.page.locator(".chart").first.inner_html() != before
    live.page.keyboard.press("Home")
    live.settle()
    assert live.shown() == expected(SLUG, {"dk": 1})


def test_a_slider_is_dragged_with_the_mouse(live):
    slider = live.page.locator('input[type="range"][name="drafts"]')
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    middle = box["y"] + box["height"] / 2
    live.page.mouse.move(box["x"] + box["width"] * 7 / 16, middle)
    live.page.mouse.down()
    for part in range(8, 13):
        live.page.mouse.move(box["x"] + box["width"] * part / 16, middle)
    live.page.mouse.up()
    live.settle()
    drafts = int(live.state["drafts"])
    assert 10 <= drafts <= 13 and live.shown() == expected(SLUG, {"drafts": drafts})
    assert live.text(f"{SCENE} .counter") == f"{drafts + 1} / {drafts + 1}"
    assert live.page.locator(f"{SCENE} .captions li").count() == drafts + 2


def test_every_kind_of_control_sets_its_parameter(live):
    live.page.fill("#p-dv", "40")
    live.page.select_option("#p-layout", "mixed")
    live.page.get_by_label("Keep the convolution's inputs too").check()
    live.page.locator('[data-param="tp"] label', has_text="16").click()
    live.settle()
    params = {"dv": 40, "layout": "mixed", "conv": True, "tp": 16}
    assert live.state == {name: str(value).lower() for name, value in params.items()}
    assert live.shown() == expected(SLUG, params)


def test_a_preset_sets_everything_and_says_what_to_expect(live):
    live.page.fill("#p-dk", "64")
    button = live.page.locator('[data-preset="no-gate"]')
    button.click()
    live.settle()
    assert live.state == {"count_gate": "false"} and live.shown() == expected(SLUG, {"count_gate": False})
    assert button.get_attribute("aria-pressed") == "true" and live.page.locator('[data-expect="no-gate"]').is_visible()
    assert live.page.locator('[data-check="records_measured"]').get_attribute("class") == "check fail"
    live.page.get_by_label("Count the gate").check()
    live.settle()
    assert button.get_attribute("aria-pressed") == "false" and live.page.locator('[data-expect="no-gate"]').is_hidden()
    assert live.shown() == expected(SLUG)


def test_a_link_may_name_a_preset(live):
    live.go("preset=small-head&dk=8")
    live.settle()
    params = EXPERIMENT.preset("small-head").params | {"dk": 8}
    assert live.shown() == expected(SLUG, params) and "preset" not in live.state and live.state["dv"] == "16"


def test_grips_in_the_drawing_set_parameters(live):
    grip = live.page.locator(f"{SCENE} .grip")
    grip.scroll_into_view_if_needed()
    box = grip.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    live.page.mouse.move(x, y)
    live.page.mouse.down()
    live.page.mouse.move(x - 15, y - 25, steps=4)
    live.page.mouse.up()
    live.settle()
    params = {name: int(live.state[name]) for name in ("dk", "dv")}
    assert params["dk"] < params["dv"] < 128 and live.shown() == expected(SLUG, params)


def test_pointing_lights_the_same_thing_everywhere(live):
    marks = f'{SCENE} [data-id="token:2"]'
    assert live.page.locator(marks).count() == 2
    live.page.locator(marks).first.hover()
    assert live.page.locator(f"{marks}.lit").count() == 2
    live.page.locator('[data-table="model_scale"] tr[data-id="layout:recover"]').hover()
    lit = live.page.locator(".lit").evaluate_all("(nodes) => nodes.map((node) => node.dataset.id)")
    assert lit == ["layout:recover"] * 2  # the same layout in both tables


# --- scenes -----------------------------------------------------------------------------------------------------


def test_a_scene_is_stepped_with_keys(live):
    live.page.focus(f"{SCENE} .picture")
    steps = (("Home", 0), ("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", 8), ("ArrowRight", 8))
    for key, frame in steps:
        live.page.keyboard.press(key)
        live.settle()
        assert live.text(f"{SCENE} .counter") == f"{frame} / 8" and live.text(f"{SCENE} .caption") == caption(frame)
        assert drawn(live) == native_picture(frame) and live.state == {"frame.window": str(frame)}
    live.page.keyboard.press("Space")
    play = live.page.locator(f"{SCENE} [data-play]")
    assert play.get_attribute("aria-pressed") == "true"
    live.page.wait_for_function(f"() => /^[1-7] /.test(document.querySelector('{SCENE} .counter').textContent)")
    live.page.keyboard.press("Space")
    assert play.get_attribute("aria-pressed") == "false"


def test_a_scene_is_stepped_with_its_buttons_and_slider(live):
    live.page.locator(f"{SCENE} [data-step='-1']").click()
    live.settle()
    assert live.text(f"{SCENE} .counter") == "7 / 8"
    live.page.locator(f"{SCENE} .player input").fill("3")
    live.settle()
    assert drawn(live) == native_picture(3) and live.text(f"{SCENE} .caption") == caption(3)


def test_steps_during_a_run_are_not_lost(live):
    """The frame that was asked for last is shown, drawn from the newest result."""
    for value, steps in ((100, (1, 2, 5)), (90, (5, 4, 5))):  # the last step is of the old or of the new result
        live.page.evaluate("""([value, [first, ...later]]) => {
          const scene = K3.lab.scenes.get("window");
          scene.go(first);
          K3.lab.controls.set("dv", String(value));
          later.forEach((frame) => scene.go(frame));
        }""", [value, steps])
        live.settle()
        assert drawn(live) == native_picture(5, {"dv": value}) and live.text(f"{SCENE} .counter") == "5 / 8"
    live.page.evaluate('() => K3.lab.controls.set("drafts", "2")')
    live.settle()
    assert live.text(f"{SCENE} .counter") == "3 / 3"


def test_a_window_that_becomes_narrow_gets_the_narrow_drawing(live):
    live.page.set_viewport_size({"width": 360, "height": 740})
    live.page.fill("#p-dk", "100")
    live.settle()
    assert drawn(live) == native_picture(8, {"dk": 100}, narrow=True) and not live.scrolls_sideways()


# --- sharing ----------------------------------------------------------------------------------------------------


def test_a_copied_link_shows_the_other_person_the_same_in_either_language(live, visit):
    live.page.fill("#p-dk", "48")
    live.page.select_option("#p-layout", "bf16")
    live.page.focus(f"{SCENE} .picture")
    live.page.keyboard.press("Home")
    live.page.keyboard.press("ArrowRight")
    live.page.click("#copy")
    assert live.text("#copy") == "Link copied"
    link = live.page.evaluate("() => navigator.clipboard.readText()")
    params = {"dk": 48, "layout": "bf16"}

    other = visit(link)
    assert other.page.locator("html.asking").count() == 0
    other.settle()
    assert other.shown() == expected(SLUG, params) and drawn(other) == native_picture(1, params)
    assert other.page.locator("#p-layout").input_value() == "bf16" and other.page.locator("#p-dk").input_value() == "48"

    other.page.locator("a[data-language]", has_text="中文").click()
    other.page.wait_for_url("**/zh/**")
    other.settle()
    assert other.state == {"dk": "48", "layout": "bf16", "frame.window": "1"}
    assert other.shown() == expected(SLUG, params, lang="zh") and drawn(other) == native_picture(1, params, lang="zh")
    assert other.text(f"{SCENE} .caption") == caption(1, params, "zh")


def test_back_and_forward_follow_the_address(live):
    live.go("dk=32")
    live.settle()
    live.go("dk=16&dv=16")
    live.settle()
    assert live.shown() == expected(SLUG, {"dk": 16, "dv": 16})
    live.page.go_back()
    live.settle()
    assert live.shown() == expected(SLUG, {"dk": 32}) and live.page.locator("#p-dv").input_value() == "128"


def test_the_skip_link_keeps_the_settings(live):
    live.go("dk=32")
    live.settle()
    live.page.evaluate("() => document.querySelector('a.skip').click()")
    live.settle()
    assert live.state == {"dk": "32"} and live.shown() == expected(SLUG, {"dk": 32})
    assert live.page.evaluate("() => document.activeElement.id") == "main"


# --- prediction -------------------------------------------------------------------------------------------------


def test_a_bare_address_asks_first(visit, http_root):
    tab = visit(f"{http_root}/{TAB}", python=False)
    ask = tab.page.locator("#prediction .ask")
    assert ask.is_visible() and tab.page.locator("#prediction .answer").is_hidden()
    assert tab.page.locator("#prediction [data-guess]").count() == len(EXPERIMENT.prediction.options)
    tab.page.click("[data-skip]")
    assert ask.is_hidden() and tab.page.locator("html.asking").count() == 0
    answer = tab.text("#prediction .answer")
    assert "It is 42.6 times" in answer and "You guessed" not in answer
    assert tab.state == {}


def test_a_guess_stays_beside_the_result_and_in_the_link(visit, http_root, live):
    tab = visit(f"{http_root}/{TAB}", python=False)
    tab.page.click('[data-guess="1"]')
    assert "You guessed: about 10 times." in tab.text("#prediction .answer")
    tab.page.evaluate("() => K3.lab.address.write()")
    assert tab.state == {"guess": "1"}
    tab.page.reload()
    assert tab.page.locator("#prediction .ask").is_hidden()
    assert "You guessed: about 10 times." in tab.text("#prediction .answer")

    live.go("guess=2")
    live.settle()
    assert "You guessed: about 40 times. Right." in live.text("#prediction .answer")
    live.page.fill("#p-dk", "100")
    live.settle()
    assert "You guessed: about 40 times." in live.text("#prediction .answer")
    assert live.state == {"guess": "2", "dk": "100"}


@pytest.mark.parametrize("fragment", ["dk=64", "frame.window=2", "preset=no-gate", "embed=1", "dk=nonsense"])
def test_a_shared_link_never_hides_the_figure(visit, http_root, fragment):
    tab = visit(f"{http_root}/{TAB}#{fragment}", python=False)
    assert tab.page.locator("#prediction .ask").is_hidden() and tab.page.locator("html.asking").count() == 0


def test_a_link_followed_while_the_question_is_asked_shows_the_figure(visit, http_root):
    tab = visit(f"{http_root}/{TAB}", python=False)
    tab.go("dk=64")
    assert tab.page.locator("#prediction .ask").is_hidden() and tab.page.locator("html.asking").count() == 0


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


# --- comparison -------------------------------------------------------------------------------------------------


def test_a_kept_result_travels_with_the_link(live):
    live.page.click("#compare button")
    live.page.fill("#p-dk", "64")
    live.settle()
    kept = live.page.locator('[data-metric="record_bytes"] .kept')
    assert "1,540 B" in kept.text_content() and unquote(live.state["pin"]) == ""
    live.go("dk=32&pin=dk%3D16")
    live.settle()
    metric = next(m for m in EXPERIMENT.run({"dk": 16}).to_json("en")["metrics"] if m["key"] == "record_bytes")
    assert metric["text"] in kept.text_content() and live.shown() == expected(SLUG, {"dk": 32})
    live.page.click("#compare button")
    live.settle()
    assert kept.is_hidden() and live.state == {"dk": "32"}


def test_the_page_carries_its_own_result(site):
    """The data that the scripts start from are the ones the page shows."""
    text = (site / TAB).read_text(encoding="utf-8").split('id="page">')[1].split("</script>")[0]
    assert json.loads(text)["result"] == json.loads(json.dumps(EXPERIMENT.run().to_json("en")))
