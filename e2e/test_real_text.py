"""Real text on the tabs of states: the weights come once, when they are asked for; the text is shown as it comes."""

import re

import pytest
from visit import expected

from k3core.lab.registry import experiment

SLUGS = ["speculative-replay", "verify-and-replay", "replayssm-ring"]
WATCH = """() => {
  window.streamed = [];
  const box = document.getElementById("stream");
  new MutationObserver(() => { if (!box.hidden) window.streamed.push(box.textContent); })
    .observe(box, { childList: true, characterData: true, subtree: true, attributes: true });
}"""


@pytest.mark.parametrize("way", ["http", "file"])
def test_weights_come_once_and_only_for_a_real_text(visit, roots, way):
    opened = visit(f"{roots[way]}/tabs/{SLUGS[0]}.html")
    opened.skip_prediction()
    opened.wait()
    opened.settle()
    assert not [url for url in opened.requests if "tiny.npz" in url]
    opened.page.click("[data-preset=real-text]")
    opened.settle()
    preset = experiment(SLUGS[0]).preset("real-text")
    assert opened.shown()["digest"] == expected(SLUGS[0], preset.params, preset.seed)["digest"]
    asked = [url for url in opened.requests if "tiny.npz" in url]
    assert asked and len(asked) == len(set(asked))
    opened.page.fill("[name=prompt]", "import os\nimport ")
    opened.settle()
    told = expected(SLUGS[0], preset.params | {"prompt": "import os\nimport "}, preset.seed)
    assert opened.shown()["digest"] == told["digest"]
    assert [url for url in opened.requests if "tiny.npz" in url] == asked
    assert opened.state["prompt"] == "import os\nimport "
    opened.page.click("#pace button")  # as far as the time of this machine can be known: it is told, and adds up
    opened.page.wait_for_function("() => /\\d/.test(document.querySelector('#pace output').textContent)")
    plain, drafted, gain, given, cost = map(float, re.findall(r"\d+(?:\.\d+)?", opened.text("#pace output")))
    assert plain > 0
    assert [drafted / plain, given / cost] == pytest.approx([gain, gain], rel=0.1)
    opened.page.click("[data-preset=gsm8k]")
    opened.settle()
    assert opened.page.is_hidden("#pace")


@pytest.mark.parametrize("slug", SLUGS)
def test_the_text_is_shown_while_it_comes_and_then_gives_way(visit, http_root, slug):
    opened = visit(f"{http_root}/tabs/{slug}.html")
    opened.skip_prediction()
    opened.wait()
    opened.page.evaluate(WATCH)
    opened.page.click("[data-preset=real-text]")
    opened.settle()
    streamed = opened.page.evaluate("() => window.streamed")
    params = {param.name: param.default for param in experiment(slug).params}
    params |= experiment(slug).preset("real-text").params
    assert len(set(streamed)) > 3 and streamed[-1].startswith(params["prompt"])
    assert opened.page.is_hidden("#stream") and not opened.scrolls_sideways()
    assert opened.shown()["digest"] == expected(slug, experiment(slug).preset("real-text").params)["digest"]


def test_a_real_text_can_be_stopped(visit, http_root):
    opened = visit(f"{http_root}/tabs/{SLUGS[0]}.html")
    opened.skip_prediction()
    opened.wait()
    opened.page.evaluate("""() => new MutationObserver(() => K3.lab.engine.stop())
      .observe(document.getElementById("stream"), { childList: true, attributes: true })""")
    opened.page.click("[data-preset=real-text]")
    opened.page.wait_for_selector("#notice:not([hidden])")
    opened.settle()
    assert opened.text("#notice").startswith("Stopped.") and opened.page.is_hidden("#stream")


def test_what_is_not_ascii_is_said_at_its_control(visit, http_root):
    opened = visit(f"{http_root}/tabs/{SLUGS[2]}.html#source=text&prompt=caf%C3%A9")
    opened.wait()
    opened.settle()
    assert "reads ASCII only" in opened.text("#notice")
    assert opened.page.get_attribute("[name=prompt]", "aria-invalid") == "true"
