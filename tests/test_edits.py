"""Edited modules: a host in a fresh interpreter runs the reader's text, and says where it is wrong."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from k3core.lab import edits
from k3core.lab.registry import experiment
from k3core.lab.text import LANGUAGES

ROOT = Path(__file__).parents[1]
MODULE = "k3core.lab.byte_cost"
SOURCE = (ROOT / "k3core/lab/byte_cost.py").read_text(encoding="utf-8")
START = {"do": "start", "slug": "byte-cost", "params": {}, "seed": 0, "lang": "en"}
ANSWER = """
import json, sys
from k3core.lab.host import handle
for request in json.load(sys.stdin):
    reply = handle(json.dumps(request))
    while json.loads(reply)["state"] == "progress":
        reply = handle('{"do":"step"}')
    print(reply, file=sys.__stdout__)
"""


def replies(*requests: dict) -> list:
    """What a host in an interpreter of its own answers."""
    done = subprocess.run([sys.executable, "-c", ANSWER], input=json.dumps(requests), capture_output=True, text=True,
                          cwd=ROOT, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def after_edit(text: str, *requests: dict, module: str = MODULE) -> list:
    edit, *rest = replies({"do": "edit", "sources": {module: text}}, *(requests or (START,)))
    assert edit == {"state": "kept"}
    return rest


def line_of(text: str, words: str) -> int:
    return text[:text.index(words)].count("\n") + 1


def edited(old: str, new: str, source: str = SOURCE) -> str:
    assert source.count(old) >= 1
    return source.replace(old, new, 1)


def test_an_unchanged_module_gives_the_same_result_and_says_that_it_is_edited():
    (reply,) = after_edit(SOURCE)
    native = json.loads(json.dumps(experiment("byte-cost").run().to_json("en")))
    assert reply["result"] == native | {"edited": [MODULE]}


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_change_changes_the_result_and_its_words_need_no_translation(lang):
    text = SOURCE.replace('Text("', 'Text("My own words: ')
    saved = {"do": "result", "slug": "byte-cost", "params": {}, "seed": 0, "files": {}, "lang": lang}
    done, asked = after_edit(text, START | {"lang": lang}, saved)
    assert done["state"] == "done" and asked["state"] == "result"
    assert json.loads(asked["text"]) == done["result"] and "My own words" in done["result"]["metrics"][0]["label"]


def test_a_mechanism_is_edited_as_well_as_an_experiment():
    module = "k3core.replayssm.stores"
    source = (ROOT / "k3core/replayssm/stores.py").read_text(encoding="utf-8")
    text = edited("def fold(", "def fold(*_, **__):\n    raise RuntimeError('not folded')\n\n\ndef unused(", source)
    (reply,) = after_edit(text, START | {"slug": "replayssm-ring"}, module=module)
    assert reply == {"state": "edit_error", "module": module, "line": line_of(text, "raise RuntimeError"),
                     "message": "RuntimeError: not folded", "printed": ""}


@pytest.mark.parametrize("text, words, message", [
    (SOURCE + "\nx ===\n", "x ===", "SyntaxError: invalid syntax"),
    (SOURCE + "\ndef f():\npass\n", "\npass", "IndentationError: expected an indented block after function definition"),
    (SOURCE + "\n(\n", "\n(", "SyntaxError: '(' was never closed"),
    (SOURCE + "\nimport scipy.stats\n", "import scipy", "this site does not ship scipy"),
    (SOURCE + "\nfrom k3core.kda import nothing\n", "from k3core.kda import n", "ImportError: cannot import name"),
    (SOURCE + "\nimport k3core.nowhere\n", "import k3core.n", "ModuleNotFoundError: No module named 'k3core.nowhere'"),
    (SOURCE + "\n1 / 0\n", "1 / 0", "ZeroDivisionError: division by zero"),
    (SOURCE + "\ndef f(): return g()\ndef g(): return f()\nf()\n", "def ", "RecursionError"),
    (SOURCE + "\ndel EXPERIMENT\n", None, "AttributeError"),
    (SOURCE + "\nEXPERIMENT = 5\n", None, "AttributeError"),
    ("", None, "AttributeError"),
])
def test_an_error_names_its_line(text, words, message):
    for reply in after_edit(text, START, START | {"lang": "en"}):  # a second run says the same
        assert reply["state"] == "edit_error" and message in reply["message"]
        if message != "RecursionError":
            at = text.rindex(words) + words.startswith("\n") if words else None
            assert reply["line"] == (text[:at].count("\n") + 1 if words else None)
            assert reply["module"] == (MODULE if words else None)


def test_an_error_is_told_in_the_language_of_the_page_whatever_step_it_comes_in():
    text = edited("EXPERIMENT = Experiment(", "def later(*_):\n    yield Progress(1, 2)\n    import scipy\n\n"
                  "EXPERIMENT = Experiment(") + "\nfrom k3core.lab.contract import Progress\n" \
        "from dataclasses import replace\n" \
        "EXPERIMENT = replace(EXPERIMENT, function=later)\n"
    (reply,) = after_edit(text, START | {"lang": "zh"})
    assert reply == {"state": "edit_error", "module": MODULE, "line": line_of(text, "    import scipy"),
                     "message": "本站不含 scipy", "printed": ""}


def test_what_the_code_prints_comes_with_the_reply_and_stays_short():
    text = SOURCE + "\nfor number in range(3000):\n    print(number)\nraise ValueError\n"
    failed, again = after_edit(text, START, START)
    assert failed["printed"].endswith("2998\n2999\n") and len(failed["printed"]) == edits.PRINTED_CHARACTERS
    assert again["printed"] == failed["printed"]  # the second import prints the same, and nothing of the first is left
    done, frame, later = after_edit(SOURCE + "\nprint('once')\n", START, START | {"do": "result", "files": {}}, START)
    assert (done["printed"], later["printed"]) == ("once\n", "") and "printed" not in frame


def test_a_wrong_parameter_is_still_a_wrong_parameter():
    (reply,) = after_edit(SOURCE, START | {"params": {"dk": 0}})
    assert reply["state"] == "param_error" and reply["param"] == "dk"


@pytest.mark.parametrize("sources, words", [
    ({"json": "1"}, "json is not a module of k3core"), ({"k3core": ""}, "k3core is not a module of k3core"),
    ({"k3core.lab.contract": ""}, "k3core.lab.contract is imported already"), (None, ""), ({MODULE: None}, ""),
])
def test_what_cannot_be_edited_is_refused(sources, words):
    edit, run = replies({"do": "edit", "sources": sources}, START)
    assert edit["state"] == "error" and words in edit["message"] and run["state"] == "done"


def test_nothing_is_edited_here():
    assert edits.edited() == []
