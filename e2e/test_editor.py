"""Edit and run: the reader's text runs apart from everything else, and an error in it points to its line."""

import pytest
from test_access import in_both_schemes
from visit import PHONE, SLUG, TAB, drawn, expected, native_picture

from k3core.lab.registry import experiment, experiments, workbenches
from k3core.lab.text import LANGUAGES
from sitegen import sources
from sitegen.render import page_path

MODULE = "k3core.lab.byte_cost"
SHIPPED = sources.texts([experiment(SLUG)])[MODULE]
TYPE = """(words) => {
  const sheet = document.querySelector("#editor textarea");
  sheet.value = words;
  sheet.dispatchEvent(new Event("input", { bubbles: true }));
}"""


def opened(visit):
    """The editor, at the first function."""
    if not visit.page.locator("#editor").is_visible():
        visit.page.locator(".tools [data-edit]").click()
    visit.page.wait_for_selector("#editor textarea")
    return visit.page.locator("#editor textarea")


def run(visit, text: str):
    """Type `text` over the whole module and run it."""
    opened(visit)
    visit.page.evaluate(TYPE, text)
    visit.page.locator("#editor .run").click()
    visit.settle()


def edited(old: str, new: str) -> str:
    assert SHIPPED.count(old) == 1, old
    return SHIPPED.replace(old, new)


def line_of(text: str, words: str) -> int:
    return text[:text.index(words)].count("\n") + 1


@pytest.fixture
def page(live):
    """The live page; whatever was edited there, the shipped code comes back afterwards."""
    yield live
    live.page.evaluate("async () => { await K3.lab.editor.reset(); if (K3.lab.editor.node) K3.lab.editor.close(); }")
    live.settle()
    assert live.page.evaluate("() => K3.lab.engine.edits") is None


GATE = ('counted = kept if p.count_gate else', 'counted = kept if not p.count_gate else')


# --- running ----------------------------------------------------------------------------------------------------


def test_an_edit_changes_figure_numbers_and_checks_and_one_click_takes_it_back(page):
    run(page, edited(*GATE))
    wrong = expected(SLUG, {"count_gate": False})
    assert page.shown() == wrong and drawn(page) == native_picture(8, {"count_gate": False})
    assert not all(passed for passed, _ in wrong["checks"].values())
    line = line_of(SHIPPED, GATE[0])
    assert page.text(".notice.edited p") == f"These figures come from edited code: {MODULE} (line {line})."
    page.page.fill("#p-dk", "64")  # the edit stays when settings change
    page.settle()
    assert page.shown() == expected(SLUG, {"count_gate": False, "dk": 64})
    page.page.locator("[data-step='-1']").click()
    page.settle()
    assert drawn(page) == native_picture(7, {"count_gate": False, "dk": 64})
    page.page.locator(".notice.edited button").click()
    page.settle()
    assert page.shown() == expected(SLUG, {"dk": 64}) and page.page.locator(".notice.edited").is_hidden()
    assert opened(page).input_value() == SHIPPED


def test_control_enter_runs_and_what_is_printed_is_shown(page):
    sheet = opened(page)
    page.page.evaluate(TYPE, SHIPPED + "\nprint('<b>words</b>')\n")
    sheet.press("Control+Enter")
    page.settle()
    assert page.text("#editor .printed") == "<b>words</b>" and page.shown() == expected(SLUG)
    assert page.page.locator("#editor .printed b").count() == 0


def test_running_the_shipped_text_is_no_edit(page):
    run(page, SHIPPED)
    assert page.page.locator(".notice.edited").is_hidden() and page.page.evaluate("() => K3.lab.engine.edits") is None


def test_the_address_holds_no_edit(page):
    run(page, edited(*GATE))
    assert page.state == {}
    page.page.click("#copy")
    page.page.wait_for_function('() => document.querySelector("#copy").textContent.includes("without the edits")')


def test_a_kept_result_of_the_shipped_code_stays_beside_the_edited_one(page):
    page.page.locator("#compare button").click()
    run(page, edited(*GATE))
    kept = page.page.locator('[data-metric="projection_bytes"] .kept')
    assert kept.text_content() == f"kept: {expected(SLUG)['metrics']['projection_bytes']}"
    assert "kept with the shipped code, now with edited code" in page.text("#compare .differences")
    page.page.locator("#compare button").click()


# --- errors -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("old, new, words, message", [
    ("def measure(", "def measure((", "def measure((", "SyntaxError"),
    ("def measure(", "import scipy\ndef measure(", "import scipy", "this site does not ship scipy"),
    (GATE[0], "counted = no_such_name and kept if p.count_gate else", "no_such_name", "NameError: name 'no_such_name'"),
])
def test_an_error_points_to_its_line_and_the_page_goes_on(page, old, new, words, message):
    text = edited(old, new)
    run(page, text)
    place = f"{MODULE}, line {line_of(text, words)}: "
    for card in ("#notice.problem p", "#editor .fault"):
        assert page.text(card).startswith(place) and message in page.text(card) and "Traceback" not in page.text(card)
    at = page.page.locator("#editor textarea").evaluate(
        "(sheet) => sheet.value.slice(sheet.selectionStart).split('\\n')[0]")
    assert words in at and page.page.locator("#editor .band").is_visible()
    line, band = page.page.locator("#editor .sheet").bounding_box(), page.page.locator("#editor .band").bounding_box()
    assert line["y"] <= band["y"] <= line["y"] + line["height"] - 20
    # The figures are those of the shipped code, and go on to work.
    assert page.shown() == expected(SLUG) and page.page.locator(".notice.edited").is_hidden()
    page.page.locator("[data-step='-1']").click()
    page.settle()
    assert drawn(page) == native_picture(7)
    page.page.fill("#p-dk", "40")
    page.settle()
    assert page.shown() == expected(SLUG, {"dk": 40}) and page.page.locator("#notice.problem").is_hidden()


def test_after_a_mistake_the_last_edit_that_ran_is_what_the_page_shows(page):
    run(page, edited(*GATE))
    run(page, edited(*GATE) + "\nx ===\n")
    assert "SyntaxError" in page.text("#editor .fault")
    page.page.fill("#p-dk", "64")
    page.settle()
    assert page.shown() == expected(SLUG, {"count_gate": False, "dk": 64})
    assert page.page.locator(".notice.edited").is_visible()


def test_an_endless_loop_is_stopped(page):
    opened(page)
    page.page.evaluate(TYPE, edited("def measure(", "def measure(*_):\n    while True:\n        pass\n\n\ndef unused("))
    page.page.locator("#editor .run").click()
    page.page.wait_for_function("() => K3.lab.engine.running && K3.lab.engine.ready")
    page.page.wait_for_selector("#stop:visible")
    page.page.evaluate("() => { K3.lab.engine.heard -= 60000; }")
    page.page.wait_for_selector("#notice.problem")
    assert "ran on without an end" in page.text("#notice.problem p")
    page.settle()
    page.page.fill("#p-dk", "64")
    page.settle()
    assert page.shown() == expected(SLUG, {"dk": 64})


def test_stop_ends_a_loop_that_runs_at_import(page):
    opened(page)
    page.page.evaluate(TYPE, SHIPPED + "\nwhile True:\n    pass\n")
    page.page.locator("#editor .run").click()
    page.page.locator("#stop").click(timeout=20_000)
    page.page.wait_for_function('() => document.querySelector("#notice").textContent.startsWith("Stopped")')
    page.settle()
    page.page.fill("#p-dk", "64")
    page.settle()
    assert page.shown() == expected(SLUG, {"dk": 64})


@pytest.mark.parametrize("text", ["\nimport sys\nsys.exit()\n", "\nimport js\njs.self.postMessage(None)\n"])
def test_code_that_ends_the_interpreter_cannot_break_the_page(page, text):
    opened(page)
    page.page.evaluate(TYPE, SHIPPED + text)
    page.page.locator("#editor .run").click()
    page.page.wait_for_function("() => K3.lab.engine.edits === null || !K3.lab.engine.running", timeout=20_000)
    page.settle()
    page.page.evaluate("() => K3.lab.editor.reset()")
    page.settle()
    assert page.shown() == expected(SLUG)


def test_a_wrong_value_of_a_parameter_is_still_a_wrong_value(page):
    run(page, edited(*GATE))
    page.page.fill("#p-dk", "0")
    page.settle()
    assert "dk is 0;" in page.text("#notice.problem p")
    page.page.fill("#p-dk", "32")
    page.settle()
    assert page.shown() == expected(SLUG, {"count_gate": False, "dk": 32})


# --- the sheet --------------------------------------------------------------------------------------------------


def test_tab_indents_and_escape_then_tab_leaves(page):
    sheet = opened(page)
    page.page.evaluate(TYPE, "one\ntwo\nthree")
    sheet.evaluate("(sheet) => sheet.setSelectionRange(1, 5)")
    sheet.press("Tab")
    assert sheet.input_value() == "    one\n    two\nthree"
    sheet.press("Shift+Tab")
    assert sheet.input_value() == "one\ntwo\nthree"
    sheet.evaluate("(sheet) => sheet.setSelectionRange(3, 3)")
    sheet.press("Tab")
    assert sheet.input_value() == "one \ntwo\nthree"
    page.page.evaluate(TYPE, "    def f():")
    sheet.evaluate("(sheet) => sheet.setSelectionRange(12, 12)")
    sheet.press("Enter")
    assert sheet.input_value() == "    def f():\n        "
    sheet.press("Control+z")
    assert sheet.input_value() == "    def f():"
    assert page.page.locator("#editor .gutter").text_content() == "1"
    sheet.press("Escape")
    sheet.press("Shift+Tab")
    assert page.page.evaluate("() => document.activeElement.matches('#editor [data-close]')")
    page.page.keyboard.press("Enter")
    assert page.page.locator("#editor").is_hidden()
    assert page.page.evaluate("() => document.activeElement.matches('.tools [data-edit]')")


def test_the_picker_goes_to_each_part_and_keeps_what_was_typed(page):
    sheet = opened(page)
    page.page.evaluate(TYPE, SHIPPED + "\n# mine\n")
    for index, place in enumerate(sources.places(experiment(SLUG))):
        page.page.locator("#editor select").select_option(str(index))
        first = sheet.evaluate("(sheet) => sheet.value.slice(sheet.selectionStart).split('\\n')[0]")
        assert first == sources.texts([experiment(SLUG)])[place["module"]].split("\n")[place["line"] - 1]
    page.page.locator("#editor select").select_option("0")
    assert sheet.input_value() == SHIPPED + "\n# mine\n"


def test_it_lies_below_the_figure_and_fits_a_phone(page):
    opened(page)
    for width, height in ((1440, 1000), (768, 1000), (360, 740)):
        page.page.set_viewport_size({"width": width, "height": height})
        box = page.page.locator("#editor").bounding_box()
        assert box["y"] >= 0.35 * height and box["x"] + box["width"] <= width and not page.scrolls_sideways()


def test_no_violation_with_an_open_editor_and_an_error_in_it(visit, http_root):
    tab = visit(f"{http_root}/{TAB}#guess=1", bypass_csp=True)
    tab.settle()
    run(tab, SHIPPED + "\nprint(1)\nx ===\n")
    tab.page.locator(".take summary").evaluate("(node) => node.click()")
    assert tab.page.locator(".notice.problem").is_visible() and tab.page.locator(".ways").count() == 1
    assert in_both_schemes(tab.page) == {"light": [], "dark": []}
    run(tab, SHIPPED + "\nprint(1)\n")
    assert in_both_schemes(tab.page) == {"light": [], "dark": []}


@pytest.mark.parametrize("lang", LANGUAGES)
def test_it_works_from_disk_and_in_both_languages(visit, roots, lang):
    tab = visit(f"{roots['file']}/{'' if lang == 'en' else 'zh/'}{TAB}#guess=1", **PHONE)
    tab.settle()
    run(tab, edited('Metric("record_bytes", Text("', 'Metric("record_bytes", Text("my own '))
    assert tab.text('[data-metric="record_bytes"] .name') == "my own one record"
    assert tab.page.locator(".notice.edited").is_visible() and tab.page.locator("#notice").is_hidden()
    assert tab.shown()["digest"] == expected(SLUG)["digest"]


def test_a_page_that_is_left_takes_its_edits_along(visit, http_root):
    tab = visit(f"{http_root}/{TAB}#guess=1")
    tab.settle()
    run(tab, edited(*GATE))
    tab.page.locator('.rail a[href$="sizing.html"]').click()
    tab.page.wait_for_function('() => K3.page.experiment.slug === "sizing" && K3.lab')
    tab.skip_prediction()
    tab.settle()
    assert tab.shown()["digest"] == expected("sizing")["digest"]
    assert tab.page.locator("html.editing, html.edited").count() == 0


@pytest.mark.parametrize("chosen", [*experiments(), *workbenches()], ids=lambda chosen: chosen.slug)
def test_every_page_offers_what_it_ran(visit, http_root, site, chosen):
    text = (site / page_path(chosen)).read_text(encoding="utf-8")
    assert text.count("data-edit=") == len(chosen.code)
    for place in sources.places(chosen):
        lines = sources.texts([chosen])[place["module"]].split("\n")
        assert place["line"] == 1 if not place["name"] else place["name"].split(".")[-1] in "".join(
            lines[place["line"] - 1:place["line"] + 3])
