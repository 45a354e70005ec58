"""The host that the browser's worker calls: JSON in, JSON out, whatever comes; long runs step by step."""

import dataclasses
import json

import pytest

from k3core.lab import host as host_module
from k3core.lab.contract import Picture, Prediction, Progress, Result, Scene, dumps
from k3core.lab.host import Host
from k3core.lab.params import Param
from k3core.lab.registry import everything, experiment
from k3core.lab.text import LANGUAGES, Text

EVERY = [experiment(slug) for slug in everything()]
every_experiment = pytest.mark.parametrize("chosen", EVERY, ids=lambda chosen: chosen.slug)


def handled(request: dict, host: Host | None = None) -> dict:
    """The last reply to a run."""
    host = host or Host()
    reply = json.loads(host.handle(dumps({"do": "start", "params": {}, "seed": 0, "lang": "en"} | request)))
    while reply["state"] == "progress":
        reply = json.loads(host.handle('{"do":"step"}'))
    return reply


# --- host -------------------------------------------------------------------------------------------------------


@every_experiment
@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_host_returns_what_run_returns(chosen, lang):
    for preset in (None, *chosen.presets):
        params, seed = (preset.params, preset.seed) if preset else ({}, 0)
        reply = handled({"slug": chosen.slug, "params": params, "seed": seed, "lang": lang})
        result = chosen.run(params, seed)
        assert reply["state"] == "done" and reply["result"] == json.loads(dumps(result.to_json(lang)))
        for scene in result.scenes:
            picture = chosen.picture(result, scene.name, scene.poster, lang).to_json(lang)
            assert reply["pictures"][scene.name] == json.loads(dumps({"index": scene.poster} | picture))


@every_experiment
def test_a_frame_belongs_to_the_settings_it_was_asked_for(chosen):
    host = Host()
    for preset in chosen.presets[:2]:
        handled({"slug": chosen.slug}, host)
        result = chosen.run(preset.params, preset.seed)
        for scene in result.scenes:
            request = {"do": "frame", "slug": chosen.slug, "params": preset.params, "seed": preset.seed, "lang": "zh",
                       "scene": scene.name, "index": scene.frames - 1, "narrow": True}
            reply = json.loads(host.handle(dumps(request)))
            expected = chosen.picture(result, scene.name, scene.frames - 1, "zh", narrow=True).to_json("zh")
            assert reply["state"] == "frame" and reply["picture"] == json.loads(dumps(expected))


def test_a_shorter_scene_shows_its_last_frame():
    request = {"slug": "byte-cost", "params": {"drafts": 2}, "frames": {"frame.window": "7"}}
    assert handled(request)["pictures"]["window"]["index"] == 3


@pytest.mark.parametrize("request_part, param, words", [
    ({"params": {"dk": "<img src=x onerror=alert(1)>"}}, "dk", "<img src=x onerror=alert(1)>"),
    ({"params": {"dk": 0}}, "dk", "from 1 to 256"), ({"params": {"nope": 1}}, "nope", "there is no parameter 'nope'"),
    ({"params": ["dk"]}, "params", "must be an object"), ({"params": None}, None, ""),
    ({"seed": "<b>"}, "seed", "seed is '<b>'"), ({"seed": None}, "seed", "seed is None"),
    ({"preset": "<b>"}, "preset", "there is no preset '<b>'; there are k3-vllm"), ({"preset": "no-gate"}, None, ""),
    ({"frames": {"frame.window": "<b>"}}, "frame.window", "frame.window is '<b>'"),
    ({"frames": {"frame.nope": 1}}, "frame.nope", "there is no parameter 'frame.nope'; there are frame.window"),
    ({"frames": {"frame.window": -1}}, "frame.window", "frame.window is -1"),
])
def test_the_host_answers_wrong_values_with_a_sentence(request_part, param, words):
    reply = handled({"slug": "byte-cost"} | request_part)
    assert reply["state"] == ("param_error" if param else "done")
    assert reply.get("param") == param and words in reply.get("message", "")


@pytest.mark.parametrize("text", [
    "", "{", "[]", "5", "null", "{}", '{"do":"pictures"}', '{"do":"__init__"}', '{"do":"step"}', '{"do":["step"]}',
    '{"do":"start"}', '{"do":"start","slug":"nope","params":{},"seed":0}',
    '{"do":"drop","lang":"fr"}', '{"do":"drop","lang":["en"]}',
    '{"do":"frame","slug":"byte-cost","params":{},"seed":0,"lang":"en","scene":"nope","index":0,"narrow":false}',
    '{"do":"frame","slug":"byte-cost","params":{},"seed":0,"lang":"en","scene":"window","index":"<b>","narrow":false}',
    '{"do":"start","slug":"byte-cost","params":{"dk":NaN},"seed":Infinity}', "[" * 100_000,
    '{"do":"start","slug":"byte-cost","params":{"dk":' + "9" * 5000 + '},"seed":0,"lang":"en"}',
])
def test_the_host_answers_any_text(text):
    host = Host()
    reply = json.loads(host.handle(text))
    assert reply["state"] in ("error", "param_error") and reply["message"]
    assert handled({"slug": "byte-cost"}, host)["state"] == "done"


# --- long runs --------------------------------------------------------------------------------------------------


class Endless:
    """An experiment that never ends, and tells whether it was given up."""

    def __init__(self):
        self.closed = False
        self.experiment = dataclasses.replace(
            experiment("byte-cost"), slug="endless", params=(Param("n", Text("seed"), "int", 0, 0, 9, 1),), presets=(),
            prediction=Prediction(Text("seed"), (Text("seed"), Text("frame"))), function=self.run,
            draw={"s": lambda *_: Picture("<svg/>", [])})

    def run(self, p, seed):
        try:
            for done in range(10**9 if p.n else 3):
                yield Progress(done, 3, Text("seed"))
        finally:
            self.closed = True
        return Result([], [], scenes=[Scene("s", Text("seed"), {}, [Text("frame")])])


@pytest.fixture
def endless(monkeypatch):
    made = Endless()
    monkeypatch.setattr(host_module, "experiment", lambda slug: made.experiment)
    return made


def test_a_long_run_is_stepped_and_reports_progress(endless):
    host = Host()
    start = {"do": "start", "slug": "endless", "params": {}, "seed": 0, "lang": "zh"}
    replies = [json.loads(host.handle(dumps(start)))]
    while replies[-1]["state"] == "progress":
        replies.append(json.loads(host.handle('{"do":"step"}')))
    assert [reply["state"] for reply in replies] == ["progress"] * 3 + ["done"]
    assert [reply["done"] for reply in replies[:-1]] == [0, 1, 2] and replies[0]["note"] == "随机种子"


def test_a_long_run_can_be_dropped(endless):
    host = Host()
    assert handled_once(host, n=9)["state"] == "progress"
    assert json.loads(host.handle('{"do":"drop"}')) == {"state": "dropped"} and endless.closed
    assert json.loads(host.handle('{"do":"step"}'))["state"] == "error"
    assert handled({"slug": "endless"}, host)["state"] == "done"


def test_a_question_about_a_frame_does_not_disturb_a_run(endless):
    host = Host()
    handled({"slug": "endless"}, host)
    endless.closed = False
    frame = {"do": "frame", "slug": "endless", "params": {}, "seed": 0, "lang": "en", "scene": "s", "index": 0,
             "narrow": False}
    assert handled_once(host, n=9)["state"] == "progress"
    assert json.loads(host.handle(dumps(frame)))["state"] == "frame"
    assert json.loads(host.handle(dumps(frame | {"index": 5})))["state"] == "error"
    assert json.loads(host.handle('{"do":"step"}'))["done"] == 1 and not endless.closed


def test_a_run_that_raises_is_told_and_forgotten(monkeypatch):
    def fail(p, seed):
        yield Progress(0, 1)
        raise ZeroDivisionError("a defect")

    broken = dataclasses.replace(experiment("byte-cost"), function=fail)
    monkeypatch.setattr(host_module, "experiment", lambda slug: broken)
    host = Host()
    assert handled({"slug": "byte-cost"}, host) == {"state": "error", "message": "ZeroDivisionError: a defect"}
    monkeypatch.undo()
    assert handled({"slug": "byte-cost"}, host)["state"] == "done"


@pytest.mark.parametrize("lang, words", [("en", "memory in this page is full"), ("zh", "内存已满")])
def test_a_run_that_needs_too_much_memory_is_told_in_words(monkeypatch, lang, words):
    def fail(p, seed):
        yield Progress(0, 1)
        raise MemoryError

    broken = dataclasses.replace(experiment("byte-cost"), function=fail)
    monkeypatch.setattr(host_module, "experiment", lambda slug: broken)
    host = Host()
    reply = handled({"slug": "byte-cost", "lang": lang}, host)
    assert reply["state"] == "error" and words in reply["message"]
    monkeypatch.undo()
    assert handled({"slug": "byte-cost"}, host)["state"] == "done"


def handled_once(host: Host, **params) -> dict:
    """The first reply to a run of `endless`."""
    return json.loads(host.handle(dumps({"do": "start", "slug": "endless", "params": params, "seed": 0, "lang": "en"})))


def test_a_dropped_file_is_kept_until_it_is_let_go():
    host = Host()
    config = dumps({"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128})
    request = {"slug": "sizing", "files": {"config": "a"}}
    assert json.loads(host.handle(dumps({"do": "file", "key": "a", "text": config}))) == {"state": "kept"}
    assert handled(request, host)["result"]["digest"] == experiment("sizing").run(files={"config": config}).digest()
    for _ in range(2):
        assert json.loads(host.handle(dumps({"do": "file", "key": "a", "text": None}))) == {"state": "kept"}
    assert handled(request, host)["state"] == "error"
