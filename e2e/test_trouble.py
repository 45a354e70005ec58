"""What can go wrong: nonsense in the address, a worker that dies or hangs."""

import pytest
from visit import SLUG, TAB, expected

from k3core.lab.text import LANGUAGES

HTML = "<img src=x onerror=alert(1)>"


def problem(visit) -> str:
    """The words of the card that says what is wrong; they are words and nothing else."""
    card = visit.page.locator("#notice.problem")
    assert card.is_visible()
    inside = card.evaluate("(node) => [...node.querySelectorAll('*')].map((child) => child.tagName)")
    assert set(inside) <= {"P", "BUTTON"}
    return card.locator("p").text_content()


def nothing_is_wrong(visit) -> bool:
    return visit.page.locator("#notice").is_hidden()


# --- nonsense in the address ------------------------------------------------------------------------------------


@pytest.mark.parametrize("fragment, words, button", [
    ("dk=999", "dk is 999; it takes a whole number from 1 to 256", "Use the default"),
    ("dk=-1", "dk is -1;", "Use the default"),
    ("dk=", "dk is '';", "Use the default"),
    ("dk", "dk is '';", "Use the default"),
    ("dk=1e999", "dk is '1e999';", "Use the default"),
    ("dk=%E0%A", "dk is '%E0%A';", "Use the default"),
    ("layout=fp16", "layout is 'fp16'; it takes one of fp32, mixed", "Use the default"),
    (f"dk={HTML}", f"dk is '{HTML}';", "Use the default"),
    (f"seed={HTML}", f"seed is '{HTML}';", "Use the default"),
    (f"preset={HTML}", f"there is no preset '{HTML}'; there are k3-vllm", "Remove it"),
    (f"frame.window={HTML}", f"frame.window is '{HTML}';", "Remove it"),
    ("frame.nowhere=1", "there is no parameter 'frame.nowhere'; there are frame.window", "Remove it"),
    ("%3Cimg src%3Dx onerror%3Dalert(1)%3E=1", f"there is no parameter '{HTML}'", "Remove it"),
    ("__proto__=1", "there is no parameter '__proto__'", "Remove it"),
    ("constructor=1", "there is no parameter 'constructor'", "Remove it"),
    ("nope=" + "9" * 20000, "there is no parameter 'nope'", "Remove it"),
    ("dk=" + "9" * 20000, "dk is '999999", "Use the default"),
    ("%00=%00", "there is no parameter '\\x00'", "Remove it"),
])
def test_nonsense_in_a_link_gets_a_card_and_the_page_goes_on(live, fragment, words, button):
    live.go("dv=64")
    live.settle()
    live.go(f"dv=64&{fragment}" if "=" in fragment else fragment)
    live.settle()
    assert words in problem(live)
    assert live.shown() == expected(SLUG, {"dv": 64})  # the last good result stays
    assert live.page.locator("img").count() == 0
    live.page.locator("#notice button", has_text=button).click()
    live.settle()
    assert nothing_is_wrong(live)
    assert live.shown() == expected(SLUG, {"dv": 64} if "=" in fragment else {})


@pytest.mark.parametrize("fragment", ["&&&", "=", "=5", "%", "%E0%A", "?", "#", "dk=64&", "&dk=64", "+", "%20=%20"])
def test_crumbs_of_a_link_do_no_harm(live, fragment):
    live.go(fragment)
    live.settle()
    if live.page.locator("#notice.problem").is_visible():
        assert "there is no parameter" in problem(live)
        live.page.locator("#notice button").click()
        live.settle()
    assert nothing_is_wrong(live)
    assert live.shown() == expected(SLUG, {"dk": 64} if "dk=64" in fragment else {})


@pytest.mark.parametrize("fragment", ["frame.window=99999999999", "frame.window=1e3", "guess=99", f"guess={HTML}",
                                      "guess=-1", f"file.x={HTML}", f"pin={HTML}", "pin=dk%3D999"])
def test_nonsense_that_python_need_not_judge_does_no_harm(live, fragment):
    live.go(f"dv=64&{fragment}")
    live.settle()
    if live.page.locator("#notice.problem").is_visible():
        problem(live)
    else:
        assert live.shown() == expected(SLUG, {"dv": 64})
    assert live.page.locator("img").count() == 0


def test_a_frame_beyond_the_end_shows_the_last(live):
    live.go("drafts=2&frame.window=7")
    live.settle()
    assert nothing_is_wrong(live) and live.text('[data-scene="window"] .counter') == "3 / 3"


def test_nonsense_typed_into_a_control_marks_it(live):
    live.page.fill("#p-dk", "many")
    live.settle()
    assert "dk is 'many'" in problem(live) and live.page.locator("#p-dk").get_attribute("aria-invalid") == "true"
    live.page.evaluate("() => K3.lab.controls.set('dk', '\\ud83d')")  # half a character, which no address can hold
    live.settle()
    assert "dk is '" in problem(live) and live.state == {"dk": "\ufffd"}
    live.page.fill("#p-dk", "12")
    live.settle()
    assert nothing_is_wrong(live) and live.page.locator("#p-dk").get_attribute("aria-invalid") is None
    assert live.shown() == expected(SLUG, {"dk": 12})


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_broken_link_opens_a_page_that_reads(visit, roots, lang):
    tab = visit(f"{roots['file']}/{'' if lang == 'en' else 'zh/'}{TAB}#dk=128&dv=%E0%A")
    tab.settle()
    assert "%E0%A" in problem(tab) and ("it takes" in problem(tab)) == (lang == "en")
    assert tab.shown() == expected(SLUG, lang=lang) and tab.page.locator("html.asking").count() == 0
    tab.page.locator("#notice button").click()
    tab.settle()
    assert nothing_is_wrong(tab) and tab.page.locator("#p-dv").input_value() == "128"


def test_a_run_that_raises_shows_its_message_and_the_page_goes_on(live):
    live.page.evaluate("""() => {
      const own = K3.lab.request;
      K3.lab.request = () => ({ ...own.call(K3.lab), slug: "nowhere" });
      K3.lab.run().then(() => { K3.lab.request = own; });
    }""")
    live.settle()
    assert "ValueError: there is no tab 'nowhere'" in problem(live) and live.shown() == expected(SLUG)
    live.page.locator("#notice button", has_text="Back to the defaults").click()
    live.settle()
    assert nothing_is_wrong(live)


# --- the worker -------------------------------------------------------------------------------------------------

DEAF = "() => { K3.lab.engine.worker.postMessage = () => {}; }"  # like a worker that never yields
GONE = "() => { K3.lab.engine.worker.terminate(); }"
LATER = "() => { K3.lab.engine.heard -= 60000; }"  # so that a test need not wait until silence means death


def test_a_worker_that_dies_in_the_middle_of_a_run_is_replaced_and_the_run_answered(live):
    live.page.evaluate(GONE)
    live.page.fill("#p-dk", "64")
    live.page.evaluate(LATER)
    live.page.wait_for_selector('html[data-python="restarting"], html[data-python="booting"]')
    live.settle()
    assert live.shown() == expected(SLUG, {"dk": 64}) and nothing_is_wrong(live)


def test_a_worker_that_dies_between_runs_is_replaced_when_a_frame_is_asked(live):
    live.page.evaluate(GONE)
    live.page.locator("[data-step='-1']").click()
    live.page.evaluate(LATER)
    live.page.wait_for_selector('html[data-python="restarting"], html[data-python="booting"]')
    live.settle()
    live.page.locator("[data-step='-1']").click()
    live.settle()
    assert live.text('[data-scene="window"] .counter') == "6 / 8" and nothing_is_wrong(live)


def test_a_run_that_kills_the_worker_twice_gets_a_card(live):
    """The second worker is lost to the same run: it is not tried for ever."""
    live.page.evaluate("""() => {
      const engine = K3.lab.engine, boot = engine.boot;
      const deafen = () => {
        const send = engine.worker.postMessage.bind(engine.worker);
        engine.worker.postMessage = (data) => { if (data.do !== "run") send(data); };
      };
      deafen();
      engine.boot = () => { boot.call(engine); deafen(); engine.boot = boot; };
      K3.lab.controls.set("dk", "64");
    }""")
    for _ in range(2):
        live.page.wait_for_function("() => K3.lab.engine.ready && K3.lab.engine.running")
        live.page.evaluate(LATER)
        live.page.wait_for_function("() => !K3.lab.engine.ready")
    live.settle()
    assert "ended in the middle of this run, twice" in problem(live) and live.shown() == expected(SLUG)
    live.page.locator("#notice button").click()
    live.settle()
    assert nothing_is_wrong(live)


def test_a_run_that_never_yields_gives_way_to_a_newer_one(live):
    live.page.evaluate(DEAF)
    live.page.fill("#p-dk", "64")
    live.page.fill("#p-dk", "32")
    live.settle()  # the watchdog needs two seconds of silence, then a fresh worker starts
    assert live.shown() == expected(SLUG, {"dk": 32}) and nothing_is_wrong(live)


def test_stop_ends_even_a_run_that_does_not_yield(live):
    live.page.evaluate(DEAF)
    live.page.fill("#p-dk", "64")
    live.page.click("#stop")
    live.settle()
    assert "Stopped. The figures show the last finished run." in live.text("#notice") and live.shown() == expected(SLUG)
    live.page.fill("#p-dk", "65")
    live.settle()
    assert live.shown() == expected(SLUG, {"dk": 65})


STUB = """() => {
  const engine = K3.lab.engine;
  window.sent = [];
  engine.worker = { postMessage: (data) => window.sent.push(data), terminate: () => {} };
  engine.nowReady({ python: "3", milliseconds: 1 });
  window.reply = (reply) => engine.hear({ kind: "reply", id: engine.running.id, reply: JSON.stringify(reply) });
  const never = new Promise((resolve) => setTimeout(resolve, 5000, '{"state":"never"}'));
  window.outcome = (promise) => Promise.race([promise, never]).then((text) => JSON.parse(text).state);
  engine.running = engine.waiting = null;
  window.sent.length = 0;
}"""


@pytest.fixture
def stub(visit, http_root):
    """A page whose engine talks to a worker that does only what the test says."""
    tab = visit(f"{http_root}/{TAB}#guess=1", python=False)
    tab.page.wait_for_function("() => K3.lab && K3.lab.engine")
    tab.page.evaluate(STUB)
    return tab.page


def test_the_newest_request_wins(stub):
    outcomes = stub.evaluate("""() => {
      const engine = K3.lab.engine, runs = [1, 2, 3].map((n) => outcome(engine.run({ slug: "s", n })));
      reply({ state: "progress", done: 1, total: 9 });
      reply({ state: "dropped" });
      reply({ state: "done" });
      return Promise.all(runs);
    }""")
    assert outcomes == ["superseded", "superseded", "done"]
    sent = stub.evaluate("() => sent.map((data) => data.do === 'run' ? JSON.parse(data.request).n : data.do)")
    assert sent == [1, "drop", "drop", 3]


def test_progress_is_shown_and_stop_drops_the_run(stub):
    stub.evaluate("""() => {
      window.run = outcome(K3.lab.engine.run({ slug: "s" }));
      reply({ state: "progress", done: 3, total: 9 });
    }""")
    assert stub.locator("#status .words").text_content() == "computing, 3 of 9"
    assert stub.locator("#status meter").evaluate("(node) => node.value") == pytest.approx(1 / 3)
    stub.click("#stop")
    assert stub.evaluate("() => { reply({ state: 'dropped' }); return window.run; }") == "dropped"
    assert stub.evaluate("() => sent.map((data) => data.do)") == ["run", "drop"]
    assert stub.locator("#stop").is_hidden()


def test_what_a_run_still_says_after_it_was_stopped_is_not_shown(stub):
    """By then another page may be in place."""
    stub.evaluate("""() => {
      window.run = outcome(K3.lab.engine.run({ slug: "s" }));
      reply({ state: "progress", done: 1, total: 9, note: "its words" });
    }""")
    assert stub.locator("#stream").text_content() == "its words"
    stub.evaluate("""() => {
      K3.lab.engine.stop();
      K3.lab.stream("");
      reply({ state: "progress", done: 2, total: 9, note: "its words, and more" });
    }""")
    assert stub.locator("#stream").is_hidden()
    assert stub.evaluate("() => { reply({ state: 'dropped' }); return window.run; }") == "dropped"


def test_answers_of_a_worker_that_was_given_up_are_ignored(stub):
    assert stub.evaluate("""() => {
      const engine = K3.lab.engine;
      window.run = outcome(engine.run({ slug: "s" }));
      engine.hear({ kind: "reply", id: 12345, reply: '{"state":"done"}' });
      const waiting = Boolean(engine.running);
      reply({ state: "done" });
      return window.run.then((state) => [waiting, state]);
    }""") == [True, "done"]
