"""A tab in a reader's hands: it reads, goes live, and every control and scene does what Python computes."""

import json

import pytest
from test_access import violations
from visit import EXPERIMENT, PHONE, SCENE, SLUG, TAB, caption, drawn, expected, native_picture

from k3core.lab.registry import experiment, slugs
from k3core.lab.text import LANGUAGES

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
    shown, native = tab.shown(), expected(slug)
    exact = [metric.key for metric in experiment(slug).run().metrics if metric.kind == "exact"]
    assert shown["digest"] == native["digest"] and list(shown["tables"]) == list(native["tables"])
    assert {key: shown["metrics"][key] for key in exact} == {key: native["metrics"][key] for key in exact}
    assert {key: check[0] for key, check in shown["checks"].items()} == dict.fromkeys(native["checks"], True)
    for svg in tab.page.locator(".picture svg").all():
        assert svg.get_attribute("viewBox").split()[2] == "340"
    assert not tab.scrolls_sideways() and violations(tab.page) == []


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
        tab_has = (".question", "table", ".chart svg", "#prediction .truth")
        own = tab_has if "tabs" in path else (".lead", ".families li")
        for selector in (".picture.wide svg", *own):
            assert tab.page.locator(selector).first.is_visible(), selector
        assert tab.page.locator("#prediction .ask").is_hidden() and tab.page.locator("[data-search]").first.is_hidden()
        assert tab.page.locator(".stage").evaluate("(node) => getComputedStyle(node.children[1]).filter") == "none"
        assert tab.page.locator("noscript p").is_visible() and tab.page.locator("#status").is_hidden()
        if "tabs" in path:
            assert tab.page.locator(".prose h2").count() >= 3 and tab.page.locator("math").first.is_visible()


def test_the_page_carries_its_own_result(site):
    """The data that the scripts start from are the ones the page shows."""
    text = (site / TAB).read_text(encoding="utf-8").split('id="page">')[1].split("</script>")[0]
    assert json.loads(text)["result"] == json.loads(json.dumps(EXPERIMENT.run().to_json("en")))


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


def test_pointing_at_a_row_lights_its_curve_and_the_other_way_round(visit, http_root):
    tab = visit(f"{http_root}/tabs/allocation-jitter.html#guess=1")
    tab.settle()
    row = tab.page.locator('[data-table="verdict"] tr[data-id="allocator:unified"]')
    curves = tab.page.locator('[data-figure] .mark-line [data-id="allocator:unified"]')
    assert curves.count() >= 2
    row.hover()
    assert curves.evaluate_all("(nodes) => nodes.every((node) => node.classList.contains('lit'))")
    curves.first.dispatch_event("pointerover")
    assert "lit" in row.get_attribute("class")
    tab.page.locator("h1").hover()
    assert tab.page.locator(".lit").count() == 0


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
    live.page.focus(f"{SCENE} .player input")
    for key, frame in (("Home", 0), ("ArrowRight", 1), ("End", 8), ("ArrowLeft", 7)):
        live.page.keyboard.press(key)
        live.settle()
        assert live.text(f"{SCENE} .counter") == f"{frame} / 8"
    live.page.keyboard.press("Space")
    assert play.get_attribute("aria-pressed") == "true"
    live.page.keyboard.press("Space")


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
    narrow = live.page.locator(f"{SCENE} .picture svg").get_attribute("viewBox")
    live.page.set_viewport_size({"width": 1280, "height": 740})  # as when a phone is turned: no setting is touched
    live.page.wait_for_function(
        f"narrow => document.querySelector('{SCENE} .picture svg').getAttribute('viewBox') !== narrow", arg=narrow)
    assert drawn(live) == native_picture(8, {"dk": 100})
