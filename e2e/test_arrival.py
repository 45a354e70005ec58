"""Moving between pages over http: the content changes, the interpreter stays, and nothing is left behind."""

import os
import shutil

import pytest
from visit import SLUG, TAB, expected
from wander import arrived, growth, rail

OTHER = "page-table"
MARK = """() => {
  window.__mark = (window.__mark || 0) + 1;
  window.__engine = K3.lab.engine;
  window.__worker = K3.lab.engine.worker;
}"""


def same_document(visit) -> bool:
    return visit.page.evaluate("""() => window.__mark === 1 && (!K3.lab || K3.lab.engine === window.__engine)
      && window.__engine.worker === window.__worker""")


@pytest.fixture
def arrival(visit, http_root):
    """A page with Python up, marked, so that a test can tell whether it lives on."""
    tab = visit(f"{http_root}/{TAB}#dk=64")
    tab.settle()
    tab.page.evaluate(MARK)
    return tab


def test_another_tab_takes_the_place_and_python_stays(arrival):
    before = len(arrival.requests)
    rail(arrival, OTHER)
    arrival.settle()
    assert same_document(arrival) and arrival.shown() == expected(OTHER)
    assert not [url for url in arrival.requests[before:] if "/runtime/" in url or "/page." in url]
    assert arrival.page.url.endswith(f"/tabs/{OTHER}.html") and "Page table" in arrival.page.title()
    assert arrival.page.locator('.rail [aria-current="page"]').get_attribute("href").endswith(f"{OTHER}.html")
    assert arrival.page.locator("#status").get_attribute("data-state") == "idle"
    assert "Python 3.14" in arrival.text("#status .words")
    arrival.page.locator("form#controls select, form#controls input").first.wait_for()
    arrival.page.evaluate("() => K3.lab.controls.set('block', '999999')")  # controls and cards act on the new page
    arrival.settle()
    assert arrival.page.locator("#notice.problem").is_visible()


def test_focus_goes_to_the_heading_and_the_page_to_its_top(arrival):
    arrival.page.evaluate("() => window.scrollTo(0, 900)")
    link = arrival.page.locator(f'.rail a[href$="{OTHER}.html"]')
    link.focus()
    arrival.page.keyboard.press("Enter")
    arrival.page.wait_for_function("() => document.activeElement.localName === 'h1'")
    assert arrival.page.evaluate("() => [document.activeElement.textContent, scrollY]") == [
        arrival.text("main h1"), 0]


def test_back_and_forward_bring_state_and_scroll_position_back(arrival):
    arrival.page.evaluate("() => window.scrollTo(0, 700)")
    arrival.page.wait_for_function("() => history.state.top === 700")
    rail(arrival, OTHER)
    arrival.settle()
    arrival.page.evaluate("() => window.scrollTo(0, 300)")
    arrival.page.wait_for_function("() => history.state.top === 300")
    arrival.page.go_back()
    arrived(arrival, SLUG)
    arrival.settle()
    assert arrival.state == {"dk": "64"} and arrival.shown() == expected(SLUG, {"dk": 64})
    assert arrival.page.evaluate("() => scrollY") == 700
    arrival.page.go_forward()
    arrived(arrival, OTHER)
    arrival.settle()
    assert arrival.shown() == expected(OTHER) and arrival.page.evaluate("() => scrollY") == 300
    assert same_document(arrival)


def test_states_of_one_page_are_entries_of_the_history_too(arrival):
    arrival.go("dk=32")
    rail(arrival, OTHER)
    arrival.page.go_back()
    arrived(arrival, SLUG)
    arrival.settle()
    assert arrival.shown() == expected(SLUG, {"dk": 32})
    arrival.page.go_back()
    arrival.page.wait_for_function("() => location.hash === '#dk=64'")
    arrival.settle()
    assert arrival.shown() == expected(SLUG, {"dk": 64}) and same_document(arrival)


def test_a_reload_keeps_the_place(arrival):
    arrival.page.evaluate("() => window.scrollTo(0, 700)")
    arrival.page.wait_for_function("() => history.state.top === 700")
    arrival.page.reload()
    arrival.settle()
    assert arrival.page.evaluate("() => scrollY") == 700


def test_the_language_changes_with_state_and_words(arrival):
    arrival.page.click('[data-language][lang="zh-Hans"]')
    arrived(arrival, SLUG)
    arrival.settle()
    assert same_document(arrival) and arrival.page.locator("html").get_attribute("lang") == "zh-Hans"
    assert arrival.shown() == expected(SLUG, {"dk": 64}, lang="zh")
    assert "本页内的 Python" in arrival.text("#status .words")
    said = arrival.page.evaluate("""() => new Promise((resolve) => {
      const button = document.getElementById("copy");
      new MutationObserver(() => resolve(button.textContent)).observe(button, { childList: true });
      button.click();
    })""")
    assert said in ("已复制链接", "请从地址栏复制")


def test_a_page_without_a_lab_and_back(arrival):
    arrival.page.evaluate("""() => [...document.querySelectorAll("a")]
      .find((node) => /glossary[.]html(#|$)/.test(node.href)).click()""")
    arrived(arrival, "glossary")
    assert arrival.page.evaluate("() => K3.lab === null && K3.page.experiment === undefined") and same_document(arrival)
    arrival.page.go_back()
    arrived(arrival, SLUG)
    arrival.settle()
    assert arrival.shown() == expected(SLUG, {"dk": 64}) and same_document(arrival)


def test_a_link_to_a_place_on_another_page_leads_there(arrival):
    place = arrival.page.evaluate("""async () => {
      const next = new DOMParser().parseFromString(await (await fetch("../glossary.html")).text(), "text/html");
      const { id } = [...next.querySelectorAll("main [id]")].at(-1);
      const link = document.createElement("a");
      link.href = "../glossary.html#" + id;
      document.querySelector("main").append(link);
      link.click();
      return id;
    }""")
    arrived(arrival, "glossary")
    arrival.page.wait_for_function("(id) => document.activeElement.id === id", arg=place)
    assert arrival.page.evaluate("""(id) => {
      const { top } = document.getElementById(id).getBoundingClientRect();
      return top >= 0 && top < innerHeight;
    }""", place)


def test_the_newest_click_wins(arrival):
    arrival.page.evaluate("""() => { for (const page of ["prefix-hit", "unified-pool", "page-table"])
      document.querySelector(`.rail a[href$="${page}.html"]`).click(); }""")
    arrived(arrival, OTHER)
    arrival.settle()
    assert arrival.shown() == expected(OTHER) and same_document(arrival)
    arrival.page.go_back()
    arrived(arrival, SLUG)


def test_a_run_is_dropped_when_its_page_goes(arrival):
    rail(arrival, "fleet-simulation")
    arrival.settle()
    assert arrival.page.evaluate("""(page) => {
      K3.lab.controls.set("size", "10");
      const { running } = K3.lab.engine;
      document.querySelector(`.rail a[href$="${page}.html"]`).click();
      return Boolean(running);
    }""", OTHER)
    arrived(arrival, OTHER)
    arrival.settle()
    assert arrival.shown() == expected(OTHER) and arrival.page.locator("#notice").is_hidden()
    assert arrival.page.evaluate("() => location.hash") == ""


@pytest.mark.parametrize("how", [{"modifiers": ["ControlOrMeta"]}, {"button": "middle"}])
def test_a_click_for_a_new_window_opens_one(arrival, how):
    with arrival.context.expect_page() as opened:
        arrival.page.locator(f'.rail a[href$="{OTHER}.html"]').click(**how)
    assert opened.value.url.endswith(f"{OTHER}.html") or opened.value.wait_for_url(f"**/{OTHER}.html") is None
    assert arrival.page.url.endswith(f"{TAB}#dk=64") and same_document(arrival)


def test_a_rebuilt_site_is_loaded_whole(visit, site, tmp_path, serve_folder):
    shutil.copytree(site, tmp_path / "site", copy_function=os.link)
    other = tmp_path / "site" / "tabs" / f"{OTHER}.html"
    text = other.read_text(encoding="utf-8")
    script = next((tmp_path / "site" / "assets").glob("page.*.js"))
    shutil.copy(script, script.with_name("page.0123456789.js"))
    other.unlink()
    other.write_text(text.replace(script.name, "page.0123456789.js"), encoding="utf-8")
    tab = visit(f"{serve_folder(tmp_path / 'site')}/{TAB}#dk=64")
    tab.settle()
    tab.page.evaluate(MARK)
    tab.page.locator(f'.rail a[href$="{OTHER}.html"]').click()
    tab.page.wait_for_url(f"**/{OTHER}.html")
    tab.page.wait_for_function("() => window.K3 && K3.lab && window.__mark === undefined")
    tab.skip_prediction()
    tab.settle()
    assert tab.shown() == expected(OTHER)


def test_a_network_that_is_gone_leaves_the_page_at_work(visit, http_root):
    tab = visit(f"{http_root}/{TAB}#dk=64", expect_complaints=True, service_workers="block")
    tab.settle()
    tab.page.evaluate(MARK)
    tab.context.set_offline(True)
    tab.page.locator(f'.rail a[href$="{OTHER}.html"]').click()
    tab.page.wait_for_selector("#notice.problem")
    assert "the network is gone" in tab.text("#notice")
    tab.page.fill("#p-dk", "32")
    tab.settle()
    assert tab.shown() == expected(SLUG, {"dk": 32})
    tab.page.locator(f'.rail a[href$="{OTHER}.html"]').click()
    tab.page.wait_for_selector("#notice.problem")
    tab.context.set_offline(False)
    tab.page.click("#notice button")
    arrived(tab, OTHER)
    tab.settle()
    assert tab.shown() == expected(OTHER) and same_document(tab)


def test_from_disk_the_browser_navigates(visit, roots):
    tab = visit(f"{roots['file']}/{TAB}#dk=64")
    tab.settle()
    tab.page.evaluate(MARK)
    tab.page.locator(f'.rail a[href$="{OTHER}.html"]').click()
    tab.page.wait_for_function("() => window.K3 && K3.lab && window.__mark === undefined")
    tab.skip_prediction()
    tab.settle()
    assert tab.shown() == expected(OTHER)


def test_forty_switches_leave_little_behind(arrival):
    """Two hundred are counted by `python -m benchmarks arrival`."""
    grown = growth(arrival, 40)
    assert same_document(arrival)
    assert grown["heap"] + grown["python"] < 50e6 * 40 / 200, grown
    assert grown["nodes"] < 20_000 and grown["listeners"] < 500 and grown["documents"] <= 2, grown
