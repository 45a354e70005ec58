"""The home page: one screen that says what this is, a live figure, and ways to everything else in both languages."""

import gzip
import json
import re

import pytest
from test_access import in_both_schemes
from visit import PHONE

from k3core.lab.registry import TABS, experiment, slugs
from k3core.lab.text import LANGUAGES

HOME = experiment("one-request")
SCENE = '[data-scene="request"]'
BEFORE_READING = 200_000  # bytes on the wire until the reader can read and see the first figure


def path_of(lang: str) -> str:
    return "index.html" if lang == "en" else "zh/index.html"


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_first_screen_says_what_this_is_and_shows_the_whole_figure(visit, http_root, lang):
    page = visit(f"{http_root}/{path_of(lang)}", python=False, viewport={"width": 1440, "height": 900}).page
    for selector in ("h1", ".lead", ".doors", f"{SCENE} .picture.wide svg", f"{SCENE} .caption", f"{SCENE} .player"):
        box = page.locator(selector).first.bounding_box()
        assert box["y"] >= 0 and box["y"] + box["height"] <= 900, selector
    rail = [link.bounding_box() for link in page.locator(".rail li a").all()]
    assert len(rail) >= len(TABS) + 2 and max(box["y"] + box["height"] for box in rail) <= 900
    assert page.locator("#prediction").is_hidden() and page.locator("html.asking").count() == 0


@pytest.mark.parametrize("lang", LANGUAGES)
def test_little_is_loaded_before_it_can_be_read(site, lang):
    text = (site / path_of(lang)).read_text(encoding="utf-8")
    style = re.search(r'rel="stylesheet" href="(?:\.\./)*([^"]+)"', text)[1]
    scripts = re.findall(r'<script src="(?:\.\./)*([^"]+)"', text)
    wire = sum(len(gzip.compress(path.read_bytes(), mtime=0))
               for path in (site / path_of(lang), site / style, *(site / script for script in scripts)))
    assert len(scripts) == 2 and wire < BEFORE_READING, wire


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_tab_workbench_and_list_is_a_link_away(visit, http_root, lang):
    page = visit(f"{http_root}/{path_of(lang)}", python=False).page
    links = page.locator("main a").evaluate_all("(nodes) => nodes.map((node) => node.getAttribute('href'))")
    lists = {"sizing.html", "traces.html", "claims.html", "glossary.html"}
    assert {f"tabs/{slug}.html" for slug in slugs()} | lists <= set(links)
    numbers = page.locator(".families li").evaluate_all("(nodes) => nodes.map((node) => node.value)")
    assert numbers == [experiment(slug).tab for slug in slugs()]
    assert all(page.locator(".families .headline b").all_inner_texts())


def test_it_goes_live_and_a_click_kills_a_cluster(visit, http_root):
    tab = visit(f"{http_root}/index.html")
    tab.wait()
    tab.settle()
    assert tab.text('[data-metric="computed_tokens"] .value') == "1,956 tokens"
    tab.page.locator(f'{SCENE} [data-id="cluster:d"]').click()
    tab.settle()
    assert tab.state == {"down": "d"} and tab.text('[data-metric="computed_tokens"] .value') == "8,100 tokens"
    tab.page.locator(f'{SCENE} [data-id="cluster:d"]').click()
    tab.settle()
    assert tab.state == {} and tab.text('[data-metric="computed_tokens"] .value') == "1,956 tokens"
    tab.page.locator('[data-preset="no-rollback"]').click()
    tab.settle()
    assert tab.page.locator('[data-check="state"]').get_attribute("class") == "check fail"


def test_the_figure_tells_its_story_frame_by_frame(visit, http_root):
    tab = visit(f"{http_root}/index.html")
    tab.wait()
    captions = [caption.render("en") for caption in HOME.run().scenes[0].captions]
    tab.page.focus(f"{SCENE} .picture")
    tab.page.keyboard.press("Home")
    for index, words in enumerate(captions):
        tab.settle()
        assert tab.text(f"{SCENE} .caption") == words, index
        tab.page.keyboard.press("ArrowRight")


@pytest.mark.parametrize("lang", LANGUAGES)
def test_from_here_to_an_answer_for_ones_own_model(visit, http_root, lang):
    tab = visit(f"{http_root}/{path_of(lang)}")
    tab.page.locator(".doors a").first.click()
    tab.page.wait_for_url("**/sizing.html")
    tab.skip_prediction()
    config = json.dumps({"num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 64,
                         "hidden_size": 512, "model_type": "llama", "architectures": ["LlamaForCausalLM"]})
    tab.page.locator(".drop summary").first.click()
    tab.page.locator(".drop textarea").first.fill(config)
    tab.wait()
    tab.settle()
    files = {"config": config}
    native = experiment("sizing").run(experiment("sizing").run(files=files).suggested, files=files).to_json(lang)
    answers = {metric["key"]: metric["text"] for metric in native["metrics"]}
    assert answers["bytes_per_token"] == "1,024 B"  # on one of 8 ranks: 4 layers x K and V x 1 head x 64 x 2 B
    assert tab.shown()["metrics"] == answers


def test_tabs_lead_on_in_order(visit, http_root):
    tab = visit(f"{http_root}/tabs/{slugs()[0]}.html#guess=0", python=False)
    assert tab.page.locator(".order [rel=prev]").count() == 0
    for slug in (*slugs()[1:], "sizing", "traces"):
        tab.page.locator(".order [rel=next]").click()
        tab.page.wait_for_url(f"**/{slug}.html")
    assert tab.page.locator(".order [rel=next]").count() == 0
    tab.page.locator(".order [rel=prev]").click()
    tab.page.wait_for_url("**/sizing.html")


def test_on_a_phone_nothing_scrolls_sideways_and_the_figure_is_the_narrow_one(visit, http_root):
    tab = visit(f"{http_root}/index.html", **PHONE)
    tab.wait()
    tab.settle()
    assert tab.page.locator(f"{SCENE} .picture svg").first.get_attribute("viewBox").split()[2] == "340"
    assert not tab.scrolls_sideways()


def test_axe_finds_nothing_on_the_live_page(visit, http_root):
    tab = visit(f"{http_root}/zh/index.html", bypass_csp=True)
    tab.wait()
    tab.settle()
    assert in_both_schemes(tab.page) == {"light": [], "dark": []}
