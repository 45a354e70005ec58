"""What a stranger wrote stays words: settings, links, files, code; and the page asks nobody but its own site."""

import json

import pytest
from test_editor import SHIPPED
from test_editor import run as run_edit
from visit import SCENE, SLUG, TAB, Visit, expected

from k3core.lab.registry import everything, experiment
from sitegen.render import page_path

MARKUP = "\"'><img src=x onerror=window.hacked=1>"
CLOSING = "</textarea></script><script>window.hacked=1</script>"
# Nothing on the page came from a value: no element that could load or run, no handler, and no script ran.
INNOCENT = """() => {
  const strange = [...document.querySelectorAll("*")].filter((node) =>
    ["img", "iframe", "object", "embed", "base", "foreignObject", "image"].includes(node.localName)
    || (node.localName === "script" && !node.src && node.type !== "application/json")
    || [...node.attributes].some(({ name, value }) => name.startsWith("on") || /^\\s*javascript:/i.test(value)));
  return strange.length === 0 && window.hacked === undefined && ({}).hacked === undefined;
}"""
# How the page takes a value: one finished result, or one card of words and a button.
OUTCOME = """async (fragment) => {
  const card = document.getElementById("notice"), lab = K3.lab;
  if (fragment !== null) {
    history.replaceState(history.state, "", "#" + fragment);
    lab.address.read();
    lab.controls.show();
    lab.prediction.follow(lab.result);
    await lab.run();
  }
  const inside = [...card.querySelectorAll("*")].map((node) => node.localName);
  const words = card.matches(".problem:not([hidden])") ? $text(card) : "";
  return [words, inside.filter((name) => !["p", "button"].includes(name)), inside.length <= 2];
}""".replace("$text(card)", 'card.querySelector("p").textContent')


def took(tab, fragment: str | None = None) -> str:
    """Go there, or look at how it is; the words of the card, if there is one."""
    words, strange, one = tab.page.evaluate(OUTCOME, fragment)
    assert strange == [] and one and tab.page.evaluate(INNOCENT), (fragment, words)
    return words


def open_slug(tab, slug: str):
    tab.walk_to(page_path(experiment(slug)))


@pytest.fixture(scope="module")
def walk(browser, http_root):
    """One visit that goes from page to page with Python up."""
    tab = Visit(browser, {})
    tab.page.add_init_script(f"""const words = {json.dumps(MARKUP)};
      Object.assign(localStorage, {{ "k3-load": words, [words]: words }}); window.name = words;""")
    tab.page.goto(f"{http_root}/{TAB}#guess=0")
    tab.settle()
    yield tab
    tab.close()
    assert not tab.complaints, tab.complaints


def quoted(words: str) -> str:
    return "".join(f"%{byte:02X}" for byte in words.encode())


@pytest.mark.parametrize("slug", everything())
def test_no_setting_of_any_page_becomes_markup(walk, slug):
    open_slug(walk, slug)
    chosen = experiment(slug)
    names = [param.name for param in chosen.params]
    names += ["seed", "preset", "pin", "guess", "embed", quoted(MARKUP), *(f"file.{one.name}" for one in chosen.inputs),
              *(f"frame.{scene.name}" for scene in chosen.run().scenes)]
    texts = {param.name for param in chosen.params if param.kind == "text"}
    for name in names:
        for value in (MARKUP, CLOSING) if name in texts else (MARKUP,):
            words = took(walk, f"{name}={quoted(value)}")
            assert words or name in {*texts, "pin", "guess", "embed"} or name.startswith("file."), (name, value)
            if not words and name in texts:
                look_everywhere(walk)
    took(walk, "")


def look_everywhere(tab):
    """Step through each scene, and open what shows the settings as text."""
    tab.page.evaluate("""async () => {
      document.querySelector(".take").open = true;
      await K3.lab.charts.drawing;
      for (const scene of K3.lab.scenes.values()) {
        for (const index of [0, scene.last >> 1, scene.last]) await scene.go(index);
      }
    }""")
    assert tab.page.evaluate(INNOCENT)
    tab.page.evaluate("() => { document.querySelector('.take').open = false; }")


# --- files ------------------------------------------------------------------------------------------------------

MODEL = {"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128}
REQUEST = {"timestamp": 1, "input_length": 1000, "output_length": 9, "hash_ids": [1, 2]}


def with_raw(data: dict, name: str, value: str) -> str:
    """JSON text of the object with one more field, written as it is."""
    return f"{json.dumps(data)[:-1]}, {json.dumps(name)}: {value}}}"


# Text of a file, and words of the card; "": it is read like any other.
ODD = {
    "markup": (lambda data: MARKUP, {"config": "is not JSON", "trace": "is not CSV"}),
    "markup in a field": (lambda data: with_raw(data, "model_type", json.dumps(MARKUP)), ""),
    "markup for a name": (lambda data: with_raw(data, MARKUP, "1"), ""),
    "__proto__": (lambda data: with_raw(data, "__proto__", '{"hacked": 1}'), ""),
    "half a character": (lambda data: with_raw(data, "model_type", '"\\ud800"'), ""),
    "NUL": (lambda data: "\0" * 99, {"config": "is not JSON", "trace": "this is not text"}),
    "byte order mark": (lambda data: "\ufeff" + json.dumps(data), ""),
    "nothing": (lambda data: "", {"config": "is not JSON", "trace": "the trace is empty"}),
    "depth": (lambda data: "[" * 100_000, {"config": "nested too deeply", "trace": "is neither JSON nor"}),
    "depth of objects": (lambda data: '{"a":' * 100_000,
                         {"config": "nested too deeply", "trace": "cannot be read as JSON"}),
    "digits": (lambda data: json.dumps(data).replace("128", "1" * 9999).replace("1000", "1" * 9999),
               {"config": "a number of thousands of digits", "trace": "cannot be read as JSON"}),
    "endless number": (lambda data: json.dumps(data).replace("128", "1e999").replace("1000", "1e999"),
                       {"config": "head_dim is inf", "trace": "input_length is Infinity"}),
}


def drop(tab, name: str, data: bytes, file_name: str):
    """Pick a file, and wait until the page has answered."""
    before = tab.page.evaluate("""() => {
      window.answers = 0;
      return K3.lab.address.get(`file.${K3.page.experiment.inputs[0].name}`);
    }""")
    if before is None:
        tab.page.evaluate("""() => { for (const kind of ["k3:shown", "k3:problem"])
          document.addEventListener(kind, () => { window.answers += 1; }, { signal: K3.lab.signal }); }""")
    tab.page.set_input_files(f'[data-input="{name}"] input[type="file"]',
                             {"name": file_name, "mimeType": "application/json", "buffer": data})
    tab.page.wait_for_function(
        "() => window.answers > 0 && document.getElementById('lab').getAttribute('aria-busy') === 'false'")
    tab.settle()


@pytest.mark.parametrize("slug, name, sound", [("sizing", "config", MODEL), ("traces", "trace", REQUEST)])
def test_a_file_is_words_whatever_is_in_it(walk, slug, name, sound):
    open_slug(walk, slug)
    for what, (write, words) in ODD.items():
        drop(walk, name, write(sound).encode(), f"{MARKUP.replace('/', '')} {what}.json")
        card = took(walk)
        assert words == card == "" or (words and words[name] in card and f"{what}.json: " in card), (what, card)
        if not card:
            assert MARKUP in walk.text(f'[data-input="{name}"] .held')
            look_everywhere(walk)
    took(walk, "")
    assert not walk.page.evaluate("() => K3.lab.engine.deaths")


def test_a_file_of_bytes_and_one_too_large_are_named(walk):
    open_slug(walk, "sizing")
    for data, words in ((b"\xff\xfe\x00\xd8", "is not a text file"),
                        (b" " * 10_000_000, "has 10000000 bytes; at most")):
        walk.page.set_input_files('[data-input="config"] input[type="file"]',
                                  {"name": f"{MARKUP}.json", "mimeType": "application/json", "buffer": data})
        walk.page.locator("#notice.problem", has_text=words).wait_for()
        assert MARKUP in took(walk)
    took(walk, "")


def test_ten_megabytes_that_are_no_trace_are_told_apart(walk):
    open_slug(walk, "traces")
    drop(walk, "trace", (json.dumps(REQUEST) + "\n").encode() + b"<img>" * 2_000_000, "trace.jsonl")
    assert "line 2" in took(walk)
    took(walk, "")


def drag(tab, path, selector: str):
    """Drag a file from the desktop onto the page, and let go."""
    box = tab.page.locator(selector).bounding_box()
    session = tab.context.new_cdp_session(tab.page)
    at = {"x": box["x"] + 9, "y": box["y"] + 9,
          "data": {"items": [], "files": [str(path)], "dragOperationsMask": 1}}
    for kind in ("dragEnter", "dragOver", "drop"):
        session.send("Input.dispatchDragEvent", {"type": kind, **at})
    session.detach()


def test_a_file_that_misses_its_box_does_not_take_the_place_of_the_page(walk, tmp_path):
    """The browser would open it, and everything that was set would be gone."""
    open_slug(walk, "sizing")
    path = tmp_path / "config.json"
    path.write_text(json.dumps(MODEL))
    walk.page.evaluate("""() => {
      window.refused = [];
      const note = (event) => window.refused.push(event.defaultPrevented);
      for (const type of ["dragover", "drop"]) window.addEventListener(type, note, { signal: K3.lab.signal });
    }""")
    drag(walk, path, "h1")
    walk.settle()
    refused = walk.page.evaluate("() => window.refused")
    assert refused and all(refused) and walk.text('[data-input="config"] .held') == "" and took(walk) == ""
    drag(walk, path, '[data-input="config"] label')
    walk.page.wait_for_function('() => "config" in K3.lab.shownFiles')
    drag(walk, tmp_path, '[data-input="config"] label')  # a folder
    walk.page.locator("#notice.problem").wait_for()
    assert walk.text('[data-input="config"] .held') == "config.json"
    took(walk, "")


# --- code -------------------------------------------------------------------------------------------------------

WICKED = f"""
import dataclasses
from k3core.lab.contract import Picture

MARKUP = {MARKUP!r}
WORDS = Text("{{words}}", words=MARKUP)
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" onload="hacked=1"><script>hacked=1</script>' \
      '<a href="javascript:hacked=1"><text>a</text></a><image href="x" onerror="hacked=1"/><g onclick="hacked=1" ' \
      'style="fill:red" id="page" data-id="token:1"><foreignObject><img src="x"/></foreignObject></g></svg>'


def wicked(p, seed):
    print(MARKUP)
    result = run(p, seed)
    result.metrics[:] = [dataclasses.replace(metric, label=WORDS) for metric in result.metrics]
    result.checks[:] = [dataclasses.replace(check, label=WORDS) for check in result.checks]
    return dataclasses.replace(result, answer_text=WORDS, scenes=[dataclasses.replace(
        scene, title=WORDS, captions=[WORDS] * len(scene.captions)) for scene in result.scenes])


EXPERIMENT = dataclasses.replace(EXPERIMENT, function=wicked,
                                 draw={{"window": lambda *_, **__: Picture(SVG, [("state", WORDS)])}})
"""


def test_what_edited_code_writes_and_draws_is_words_and_shapes(live):
    run_edit(live, SHIPPED + WICKED)
    assert took(live) == ""
    for selector in ("[data-metric] .name", "[data-check] .name", ".caption", ".legend li", ".scene-title",
                     "#prediction .truth", "#editor .printed", ".captions li"):
        assert live.text(selector).strip() == MARKUP, selector
    drawing = live.page.locator(f"{SCENE} .picture svg")
    assert drawing.evaluate("(svg) => [svg, ...svg.querySelectorAll('*')].map((node) => [node.localName, "
                            "...[...node.attributes].map(({ name }) => name)].join(' '))") == [
        "svg viewBox", "g data-id"]
    look_everywhere(live)
    live.page.locator("#editor [data-reset]").click()
    live.settle()
    live.page.locator("#editor [data-close]").click()
    # The policy speaks up as soon as such a text is parsed, long before it could be put in place.
    live.complaints[:] = [words for words in live.complaints if "Executing inline event handler" not in words]


# --- other places -----------------------------------------------------------------------------------------------

# Everything by which a page could reach another origin or run a text, each refused by the policy.
REACHED = """async (other) => {
  const events = [];
  document.addEventListener("securitypolicyviolation", (event) => events.push(event.effectiveDirective));
  const add = (tag, attributes, text = "") => {
    const node = Object.assign(document.createElement(tag), attributes);
    node.append(text);
    document.body.append(node);
    return node;
  };
  const refused = {};
  const outcome = (start, good) => new Promise((resolve) => {
    start({ [good]: () => resolve(false), onerror: () => resolve(true) });
  });
  refused.fetch = await fetch(other).then(() => false, () => true);
  refused.beacon = await outcome((on) => add("img", { src: other + "a.png", ...on }), "onload");
  refused.script = await outcome((on) => add("script", { src: other + "a.js", ...on }), "onload");
  add("script", {}, "window.hacked = 1");
  add("div", { innerHTML: '<img src="x" onerror="window.hacked = 1">' });
  add("iframe", { src: other });
  add("form", { action: other, method: "post" }).submit();
  try { new Function("window.hacked = 1")(); } catch { refused.eval = true; }
  const connect = (on) => Object.assign(new WebSocket(other.replace("http", "ws")), on);
  try { refused.socket = await outcome(connect, "onopen"); } catch { refused.socket = true; }
  await new Promise((resolve) => setTimeout(resolve, 200));
  return [refused, window.hacked === undefined, events.map((name) => name.split("-")[0])];
}"""



def test_the_policy_refuses_whatever_would_reach_another_place(visit, http_root, site, serve_folder):
    other = serve_folder(site) + "/"
    tab = visit(f"{http_root}/{TAB}#guess=0", python=False, expect_complaints=True)
    refused, sane, directives = tab.page.evaluate(REACHED, other)
    assert refused == dict.fromkeys(("fetch", "beacon", "script", "eval", "socket"), True) and sane
    assert {"connect", "img", "script", "frame", "form"} <= set(directives)
    assert tab.page.url.startswith(http_root)


def test_a_request_to_another_place_would_be_noticed(visit, serve_folder, tmp_path):
    """The check that every test of this folder makes."""
    page = '<!doctype html><link rel="icon" href="data:,"><img src="http://other.invalid/a.png">'
    (tmp_path / "index.html").write_text(page)
    tab = visit(f"{serve_folder(tmp_path)}/index.html", expect_complaints=True)
    assert "request to another place: http://other.invalid/a.png" in tab.complaints


# --- files that only some tabs need -----------------------------------------------------------------------------


def test_weights_that_cannot_be_fetched_are_named_and_come_when_the_network_is_back(walk):
    open_slug(walk, "replayssm-ring")
    before = walk.shown()
    walk.context.set_offline(True)
    walk.page.click("[data-preset=real-text]")
    walk.page.locator("#notice.problem").wait_for()
    assert "tiny.npz could not be fetched: the network is gone" in took(walk) and walk.shown() == before
    walk.context.set_offline(False)
    walk.page.locator("#notice button", has_text="Try again").click()
    walk.settle()
    assert took(walk) == "" and walk.shown() != before
    walk.complaints[:] = [words for words in walk.complaints if "ERR_INTERNET_DISCONNECTED" not in words]
    took(walk, "")


# --- memory -----------------------------------------------------------------------------------------------------


def test_a_run_for_which_the_memory_does_not_suffice_gets_a_card(live):
    run_edit(live, SHIPPED + "\n[None] * 2**30\n")
    assert "memory in this page is full" in live.text("#notice") and live.shown() == expected(SLUG)
    live.page.locator("#editor [data-reset]").click()
    live.settle()
    assert live.page.locator("#notice").is_hidden()
    live.page.locator("#editor [data-close]").click()


def test_an_interpreter_that_aborts_is_replaced_and_named_when_it_aborts_again(live):
    """What the worker says when WebAssembly itself gives up: it cannot be asked anything afterwards."""
    abort = """() => {
      K3.lab.engine.worker.postMessage = () => {};
      K3.lab.engine.hear({ kind: "fatal", message: "RuntimeError: memory access out of bounds" });
    }"""
    live.page.evaluate("() => { K3.lab.engine.worker.postMessage = () => {}; K3.lab.controls.set('dk', '64'); }")
    live.page.evaluate(abort)
    live.settle()
    assert live.shown() == expected(SLUG, {"dk": 64}) and live.page.locator("#notice").is_hidden()
    live.page.evaluate("""() => {
      const engine = K3.lab.engine, ready = engine.nowReady;
      engine.nowReady = (data) => {
        engine.worker.postMessage = () => {};
        engine.nowReady = ready;
        ready.call(engine, data);
      };
      engine.worker.postMessage = () => {};
      K3.lab.controls.set("dk", "32");
    }""")
    live.page.evaluate(abort)
    live.page.wait_for_function("() => K3.lab.engine.ready && K3.lab.engine.running")
    live.page.evaluate(abort)
    live.settle()
    assert "ended in the middle of this run, twice" in live.text("#notice p")
    live.page.locator("#notice button").click()
    live.settle()
    assert live.page.locator("#notice").is_hidden() and live.shown() == expected(SLUG)
