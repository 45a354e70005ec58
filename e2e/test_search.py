"""Search as a reader uses it: by key and by button, with the keyboard alone, in both languages, from disk too."""

import pytest
from test_access import in_both_schemes
from visit import PHONE, TAB

OPTION = ".search [role=option]"
WORDS = "dialog.search[open]"


def opened(tab, words: str = "", key: bool = True):
    """The page with the search open, its index there, and `words` in it."""
    if key:
        tab.page.keyboard.press("/")
    else:
        tab.page.locator(".top [data-search]").click()
    tab.page.wait_for_selector(f"{WORDS} [role=option]")
    if words:
        tab.page.keyboard.type(words)
    return tab.page


@pytest.fixture
def read(visit, roots):
    """A function: (path, way) -> a visit; over http Python never arrives, from disk the page would wait for it."""
    def go(path: str = f"{TAB}#guess=0", way: str = "http", **options):
        return visit(f"{roots[way]}/{path}", python=way == "file", **options)

    return go


@pytest.mark.parametrize("way", ["http", "file"])
@pytest.mark.parametrize("path", ["index.html", TAB, "sizing.html", "glossary.html", "claims.html", f"zh/{TAB}"])
def test_it_opens_on_every_page_and_leads_to_a_tab(read, roots, way, path):
    tab = read(path, way)
    page = opened(tab, "prefix-miss", key=False)
    root = "zh/" if path.startswith("zh") else ""
    assert page.locator(OPTION).first.get_attribute("href") == f"{roots[way]}/{root}tabs/prefix-miss.html"
    page.keyboard.press("Enter")
    page.wait_for_url("**/tabs/prefix-miss.html")
    assert page.locator(WORDS).count() == 0


def test_nothing_is_loaded_before_it_is_wanted(read):
    tab = read()
    assert not [url for url in tab.requests if "search-" in url]
    opened(tab)
    assert len([url for url in tab.requests if "search-en" in url and "zh" not in url]) == 1


def test_the_key_writes_where_one_writes(read):
    tab = read()
    tab.page.locator("input.exact").first.focus()
    tab.page.keyboard.press("/")
    assert tab.page.locator(WORDS).count() == 0
    tab.page.locator("h1").click()
    opened(tab)


def test_titles_come_first_and_all_words_must_match(read):
    page = opened(read(), "byte cost")
    assert page.locator(f"{OPTION} .search-title").first.inner_text().startswith("Byte cost")
    counts = []
    for words in ("ring", "ring buffer", "buffer ring", "ring buffer zebra"):
        page.locator(".search input").fill(words)
        counts.append(int(page.locator(".search-count").inner_text().split()[0]))
    assert counts[0] > counts[1] == counts[2] > counts[3] == 0


def test_chinese_is_found_inside_longer_words(read):
    page = opened(read(f"zh/{TAB}#guess=0"), "检查点")
    assert page.locator(OPTION).count() > 5
    assert all("检查点" in text for text in page.locator(OPTION).all_inner_texts())
    assert page.locator(".search mark").first.inner_text() == "检查点"


def test_a_control_is_opened_at_its_place_and_the_state_stays(read):
    tab = read("index.html")
    page = opened(tab, "ring buffer B")
    page.locator(".search input").fill("key size dk")
    page.keyboard.press("Enter")
    page.wait_for_url("**/byte-cost.html#param.dk")
    control = page.locator('[id="param.dk"]')
    assert control.is_visible() and control.evaluate("(node) => node.getBoundingClientRect().top < innerHeight")
    assert page.evaluate("() => [...K3.lab.address.state.keys()]") == []
    assert page.locator("#notice").is_hidden()


def test_a_situation_opens_as_it_is_set(read):
    page = opened(read("index.html"), "forget the gate")
    page.keyboard.press("Enter")
    page.wait_for_url("**/byte-cost.html#**")
    page.wait_for_function("() => K3.lab && K3.lab.address.get('count_gate') === 'false'")


def test_a_field_report_opens_at_its_line(read):
    page = opened(read("index.html"), "28695")
    first = page.locator(OPTION).first.get_attribute("href")
    page.keyboard.press("Enter")
    page.wait_for_url(first)
    line = page.locator(f"[id='{first.split('#')[1]}']")
    assert "28695" in line.inner_text() and line.evaluate("(node) => node.getBoundingClientRect().top < innerHeight")


def test_the_keyboard_goes_round_and_out(read):
    page = opened(read(), "state")
    box = page.locator(".search input")

    def chosen():
        selected = page.locator(f"{OPTION}[aria-selected=true]")
        return box.get_attribute("aria-activedescendant"), selected.get_attribute("id")

    count = page.locator(OPTION).count()
    assert chosen() == ("search-0", "search-0") and count > 3
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert chosen() == ("search-2", "search-2")
    for _ in range(3):
        page.keyboard.press("ArrowUp")
    assert chosen() == (f"search-{count - 1}", f"search-{count - 1}")
    page.keyboard.press("Escape")
    assert page.locator(WORDS).count() == 0
    page.wait_for_function("() => ['BODY', 'MAIN', 'BUTTON'].includes(document.activeElement.tagName)")


def test_the_count_is_announced_and_nothing_found_says_so(read):
    page = opened(read(), "replay")
    status = page.locator(".search-count")
    assert status.get_attribute("role") == "status" and "found" in status.inner_text()
    page.locator(".search input").fill("zebra")
    assert status.inner_text() == "0 found"
    assert "zebra" in page.locator(".search-none").inner_text()
    page.locator(".search-none a").click()
    page.wait_for_url("**/glossary.html")


def test_what_is_typed_is_never_markup(read):
    tab = read()
    page = opened(tab, "<img src=x onerror=alert(1)>")
    assert page.locator(".search img").count() == 0
    assert "<img" in page.locator(".search-none").inner_text()
    for hostile in ("<b>", "&amp;", "\\", "[", "*", "(", ".*", "'\"", "ﬁ", "İ", "𝒮"):
        page.locator(".search input").fill(hostile)
    assert tab.complaints == []


def test_a_lost_index_says_so_and_the_page_goes_on(visit, roots):
    tab = visit(f"{roots['http']}/{TAB}#guess=0", python=False, expect_complaints=True)
    tab.page.route("**/search-en*", lambda route: route.abort())
    tab.page.keyboard.press("/")
    tab.page.wait_for_function("() => document.querySelector('.search-count').textContent.length > 0")
    assert tab.page.locator(".search-count").inner_text().startswith("The index of this search could not be loaded")
    tab.page.unroute("**/search-en*")
    tab.page.keyboard.press("Escape")
    tab.page.wait_for_selector("dialog.search", state="hidden")
    opened(tab, "ring")


def test_it_survives_a_change_of_page_and_language(read):
    tab = read("index.html")
    page = opened(tab, "unified pool")
    page.keyboard.press("Enter")
    page.wait_for_url("**/unified-pool.html")
    page = opened(tab, "glossary")
    page.keyboard.press("Escape")
    page.locator("[data-language][lang=zh-Hans]").click()
    page.wait_for_url("**/zh/tabs/unified-pool.html")
    page = opened(tab, "重放")
    assert "/zh/" in page.locator(OPTION).first.get_attribute("href")


@pytest.mark.parametrize("path", [TAB, f"zh/{TAB}"])
def test_axe_finds_nothing_in_it(read, path):
    page = opened(read(f"{path}#guess=0", bypass_csp=True))
    assert in_both_schemes(page) == {"light": [], "dark": []}
    page.keyboard.type("kda")
    assert in_both_schemes(page) == {"light": [], "dark": []}
    page.locator(".search input").fill("zebra")
    assert in_both_schemes(page) == {"light": [], "dark": []}


def test_on_a_phone_it_fills_the_window(read):
    page = opened(read(**PHONE), "state", key=False)
    box = page.locator(".search").bounding_box()
    assert (box["x"], box["width"]) == (0, 360)
    assert page.locator(".search").evaluate("(node) => node.scrollWidth <= node.clientWidth")


def test_without_javascript_there_is_no_button(visit, roots):
    for path in ("index.html", TAB):
        tab = visit(f"{roots['http']}/{path}", java_script_enabled=False)
        assert all(node.is_hidden() for node in tab.page.locator("[data-search]").all())
