"""Terms in prose: a link to the glossary, and its definition beside it for whoever points at it or tabs to it."""

import pytest
from test_access import violations

from sitegen import glossary

TAB = "tabs/prefix-hit.html"
DEFINITIONS = {lang: glossary.definitions(lang) for lang in ("en", "zh")}
HEIGHT = "() => document.documentElement.scrollHeight"


def card(page):
    return page.locator("#term-card")


def shown(page, lang="en"):
    """Wait for the card: the id of the term it defines."""
    card(page).wait_for(state="visible")
    return next(id for id, (title, text) in DEFINITIONS[lang].items()
                if card(page).inner_text().split("\n") == [title, text])


@pytest.mark.parametrize("root", ["http", "file"])
@pytest.mark.parametrize("lang, folder", [("en", ""), ("zh", "zh/")])
def test_pointing_shows_the_definition_and_moves_nothing(visit, roots, root, lang, folder):
    from_disk = root == "file"  # where a page has loaded only with all of its scripts
    page = visit(f"{roots[root]}/{folder}{TAB}#guess=0", python=from_disk).page
    link = page.locator("article.prose a.term").nth(2)
    link.scroll_into_view_if_needed()
    before = page.evaluate(HEIGHT), link.bounding_box()
    link.hover()
    assert shown(page, lang) == link.get_attribute("href").split("#")[1]
    assert (page.evaluate(HEIGHT), link.bounding_box()) == before
    assert link.get_attribute("aria-describedby") == "term-card"
    card(page).hover()  # the pointer may go onto it
    page.wait_for_timeout(400)
    assert card(page).is_visible()
    page.mouse.move(2, 2)
    card(page).wait_for(state="hidden")
    assert link.get_attribute("aria-describedby") is None


def test_the_keyboard_shows_it_and_escape_closes_it(visit, http_root):
    page = visit(f"{http_root}/{TAB}#guess=0", python=False, bypass_csp=True).page
    link = page.locator("article.prose a.term").first
    link.scroll_into_view_if_needed()
    link.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    assert shown(page) == link.get_attribute("href").split("#")[1]
    assert violations(page) == []
    page.keyboard.press("Escape")
    assert card(page).is_hidden() and link.evaluate("(link) => link === document.activeElement")
    page.keyboard.press("Enter")
    page.wait_for_url("**/glossary.html#*")
    assert page.locator(":target, .entry:focus").count()


def test_definitions_are_fetched_only_when_wanted(visit, http_root):
    tab = visit(f"{http_root}/{TAB}#guess=0", python=False)
    assert not any("terms-" in url for url in tab.requests)
    tab.page.locator("article.prose a.term").first.hover()
    shown(tab.page)
    assert sum("terms-en" in url for url in tab.requests) == 1 and not any("terms-zh" in url for url in tab.requests)


def test_touch_follows_the_link(visit, http_root):
    page = visit(f"{http_root}/{TAB}#guess=0", python=False, has_touch=True,
                 viewport={"width": 360, "height": 740}).page
    link = page.locator("article.prose a.term").first
    term = link.get_attribute("href").split("#")[1]
    link.tap()
    page.wait_for_url(f"**/glossary.html#{term}")
    assert page.locator("#term-card").is_hidden()


def test_the_card_stays_inside_a_narrow_window(visit, http_root):
    page = visit(f"{http_root}/{TAB}#guess=0", python=False, viewport={"width": 360, "height": 740}).page
    for link in page.locator("article.prose a.term").all()[:8]:
        link.scroll_into_view_if_needed()
        link.hover()
        shown(page)
        box = card(page).bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= 360
        page.keyboard.press("Escape")


def test_a_definition_is_text(visit, http_root):
    page = visit(f"{http_root}/{TAB}#guess=0", python=False).page
    link = page.locator("article.prose a.term").first
    link.hover()
    term = shown(page)
    page.mouse.move(2, 2)
    card(page).wait_for(state="hidden")
    page.evaluate("(term) => { K3.terms.en[term] = ['<b>x</b>', '<img src=x onerror=alert(1)>']; }", term)
    link.hover()
    card(page).wait_for(state="visible")
    assert card(page).inner_text() == "<b>x</b>\n<img src=x onerror=alert(1)>"
    assert card(page).locator("img, b").count() == 0
