"""Links that show the other person the same, and the guess before the figure."""

from urllib.parse import unquote

import pytest
from visit import EXPERIMENT, SCENE, SLUG, TAB, caption, drawn, expected, native_picture

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
    assert other.page.locator("#lab.stale").count() == 0 and other.page.locator("#notice").is_hidden()
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


@pytest.mark.parametrize("fragment, stale", [("dk=64", True), ("frame.window=2", False), ("preset=no-gate", True),
                                             ("embed=1", False), ("dk=nonsense", True)])
def test_a_shared_link_never_hides_the_figure_but_says_that_it_is_not_yet_its_own(visit, http_root, fragment, stale):
    """Until Python is up the page shows the default settings: marked as such where the link asks for others."""
    tab = visit(f"{http_root}/{TAB}#{fragment}", python=False)
    assert tab.page.locator("#prediction .ask").is_hidden() and tab.page.locator("html.asking").count() == 0
    assert tab.page.locator("#lab.stale").count() == tab.page.locator("#notice:visible").count() == int(stale)
    struck = tab.page.locator(".value").first.evaluate("(node) => getComputedStyle(node).textDecorationLine")
    assert struck == ("line-through" if stale else "none")
    if stale:
        assert "not yet those of this link but those of the default settings" in tab.text("#notice")


def test_a_link_followed_while_the_question_is_asked_shows_the_figure(visit, http_root):
    tab = visit(f"{http_root}/{TAB}", python=False)
    tab.go("dk=64")
    assert tab.page.locator("#prediction .ask").is_hidden() and tab.page.locator("html.asking").count() == 0
