"""Accessibility: axe finds nothing on any page, in any state and language; drawings reach who cannot see them."""

import json
import re
from types import SimpleNamespace

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from visit import EXPERIMENT, PHONE, SCENE, TAB, Visit, caption

from k3core.lab.registry import everything, experiment
from k3core.lab.text import LANGUAGES
from sitegen.render import NOT_FOUND, Pages, page_path

AXE = Axe()
PLACES = [*(page_path(experiment(slug)) for slug in everything()), "claims.html", "glossary.html"]
CLEAN = {"light": [], "dark": []}
SAME_COLOURS = {"color-contrast": {"enabled": False}}  # axe's slowest rule; the page was measured in English


# Words of drawings that do not stand out enough from the page, which axe does not measure. Some lie on a dark shape.
CONTRAST = """
  const parts = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255)
    .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  const luminance = (colour) => { const [r, g, b] = parts(colour); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const contrast = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
"""
FAINT = "() => {" + CONTRAST + """
  const ground = getComputedStyle(document.body).backgroundColor;
  const bare = ".chart text, .picture text:not(.on-dark, .on-record, .on-ink, .chip-ink, .corner)";
  return [...document.querySelectorAll(bare)]
    .filter((node) => node.textContent.trim()).map((node) => [getComputedStyle(node).fill, node.textContent])
    .filter(([fill]) => fill.startsWith("rgb(") && contrast(fill, ground) < 4.5);
}"""


def violations(page, **options) -> list:
    """What axe objects to, short enough to read."""
    found = AXE.run(page, options={"resultTypes": ["violations"], **options}).response["violations"]
    return [f"{item['id']}: {item['help']}: {node['html'][:160]} ({node.get('failureSummary', '')[:300]})"
            for item in found for node in item["nodes"][:4]]


# Something that moves by itself, or would.
MOVING = """() => {
  const styles = [...document.querySelectorAll("*")].map((node) => getComputedStyle(node));
  return styles.some((style) => style.transitionDuration.split(", ").some((length) => parseFloat(length) > 0)
    || style.animationName !== "none" || style.scrollBehavior !== "auto");
}"""


def in_both_schemes(page) -> dict:
    """Everything in light; in dark only what can differ."""
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    found = {"light": violations(page) + page.evaluate(FAINT)}
    page.emulate_media(color_scheme="dark")
    return found | {"dark": violations(page, runOnly=["color-contrast"]) + page.evaluate(FAINT)}


@pytest.fixture(scope="module")
def reader(browser):
    """One visit that goes from page to page; Python never arrives."""
    tab = Visit(browser, {})
    tab.without_python()
    yield tab
    tab.close()
    assert not tab.complaints, tab.complaints


@pytest.mark.parametrize("place", PLACES)
def test_no_violation_before_python_is_there(reader, http_root, place):
    reader.page.goto(f"{http_root}/{place}#guess=0")
    assert in_both_schemes(reader.page) == CLEAN
    reader.page.emulate_media(color_scheme="light")
    reader.page.goto(f"{http_root}/zh/{place}#guess=0")
    assert violations(reader.page, rules=SAME_COLOURS) == []
    reader.page.set_viewport_size(PHONE["viewport"])  # what scrolls there must do so by keys
    assert violations(reader.page, runOnly=["scrollable-region-focusable"]) == []
    reader.page.set_viewport_size({"width": 1440, "height": 1000})
    assert not reader.page.evaluate(MOVING)  # motion is not wanted here
    reader.page.emulate_media(forced_colors="active")
    assert reader.page.evaluate(FAINT) == []
    reader.page.emulate_media(forced_colors="none")


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("ending, selector", [("", "#prediction .ask"), ("?embed=1", ".full")], ids=["asking", "embed"])
def test_no_violation_while_the_question_is_asked_and_in_an_embed(reader, http_root, lang, ending, selector):
    reader.page.goto(f"{http_root}/{'' if lang == 'en' else 'zh/'}{TAB}{ending}")
    reader.page.locator(selector).wait_for()
    assert in_both_schemes(reader.page) == CLEAN


OPEN = "() => { for (const details of document.querySelectorAll('details')) details.open = true; }"


def test_no_violation_on_a_live_page_nor_beside_a_problem(visit, http_root):
    tab = visit(f"{http_root}/{TAB}#preset=no-gate")
    tab.settle()
    tab.page.evaluate(OPEN)
    assert tab.page.locator(".check.fail").count() and in_both_schemes(tab.page) == CLEAN
    tab.go("dk=999")
    tab.settle()
    assert tab.page.locator("#notice.problem").is_visible()
    assert in_both_schemes(tab.page) == CLEAN


def test_no_violation_on_any_live_page_in_chinese_with_everything_open(visit, http_root):
    """In English each tab is looked at on a phone; here with a result kept beside the present one, then with a card."""
    tab = visit(f"{http_root}/zh/claims.html")
    for slug in everything():
        tab.walk_to(f"zh/{page_path(experiment(slug))}")
        tab.page.click("#compare button")
        tab.page.evaluate("() => K3.lab.controls.set('seed', '1')")
        tab.settle()
        tab.page.evaluate(OPEN)
        assert violations(tab.page, rules=SAME_COLOURS) == [], slug
    tab.page.evaluate("() => K3.lab.controls.set('seed', '-1')")
    tab.settle()
    assert tab.page.locator("#notice.problem").is_visible() and violations(tab.page) == []


@pytest.mark.parametrize("lang", LANGUAGES)
def test_no_violation_on_the_page_for_a_wrong_address(reader, http_root, site, tmp_path, lang):
    text = (site / "index.html").read_text(encoding="utf-8")
    static = {name: re.search(f"assets/{stem}[.][^\"]*", text)[0] for name, stem in
              {"icon": "icon", "manifest": "manifest", "style": "site", "scripts": "page"}.items()}
    scripts = (site / static["scripts"]).read_text(encoding="utf-8")
    pages = Pages(tmp_path, SimpleNamespace(wheel="assets/x.whl"), static, scripts, f"{http_root}/")
    pages.write(NOT_FOUND, lang, NOT_FOUND)
    reader.page.route("**/nowhere/at/all", lambda route: route.fulfill(path=tmp_path / pages.written[0]))
    reader.page.goto(f"{http_root}/nowhere/at/all")
    assert in_both_schemes(reader.page) == CLEAN
    reader.page.locator("main a").first.click()
    reader.page.wait_for_url(lambda url: url.endswith(("index.html", "/", "zh/")))


def test_axe_can_object(reader, http_root):
    reader.page.goto(f"{http_root}/index.html#guess=0")
    reader.page.evaluate("() => document.querySelector('main').append(document.createElement('button'))")
    assert "button-name" in json.dumps(violations(reader.page))


# --- drawings in words ------------------------------------------------------------------------------------------

SPOKEN = """() => [...document.querySelectorAll("[data-scene]")].map((node) => ({
  name: node.dataset.scene,
  drawing: [...node.querySelectorAll(".picture svg")].map((svg) =>
    [svg.getAttribute("role"), Boolean(svg.getAttribute("aria-label"))]),
  described: document.getElementById(node.querySelector(".picture").getAttribute("aria-describedby")).textContent,
  slider: node.querySelector(".player input").getAttribute("aria-valuetext"),
  live: node.querySelector(".caption").getAttribute("aria-live"),
}))"""


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_drawing_has_a_name_and_its_frame_in_words(reader, http_root, lang):
    for slug in everything():
        reader.page.goto(f"{http_root}/{'' if lang == 'en' else 'zh/'}{page_path(experiment(slug))}#guess=0")
        scenes = {scene.name: scene.captions[scene.poster].render(lang) for scene in experiment(slug).run().scenes}
        assert reader.page.evaluate(SPOKEN) == [
            {"name": name, "drawing": [["img", True]] * 2, "described": words, "slider": words, "live": "polite"}
            for name, words in scenes.items()], slug


def test_every_frame_is_told_and_a_film_is_not(live):
    picture, slider = live.page.locator(f"{SCENE} .picture"), live.page.locator(f"{SCENE} .player input")
    telling = live.page.locator(f"{SCENE} .caption")
    picture.focus()
    live.page.keyboard.press("Home")
    for frame in range(EXPERIMENT.run().scenes[0].frames):
        live.settle()
        expect(picture).to_have_accessible_description(caption(frame))
        expect(slider).to_have_attribute("aria-valuetext", caption(frame))
        expect(telling).to_have_attribute("aria-live", "polite")
        live.page.keyboard.press("ArrowRight")
    live.page.locator(f"{SCENE} [data-play]").click()
    expect(telling).to_have_attribute("aria-live", "off")
    live.page.locator(f"{SCENE} [data-play]").click()
    expect(telling).to_have_attribute("aria-live", "polite")
