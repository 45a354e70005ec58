"""The job whose time the page takes: what its parts do, and how the host hands them out."""

import json
from types import SimpleNamespace

import pytest

from k3core.decode import tiny_model
from k3core.lab import pace, tiny_text
from k3core.lab.contract import dumps
from k3core.lab.host import Host

PROMPT = "def width(self):\n    return self._width\n\ndef height"


@pytest.mark.parametrize("choosing", ["greedy", "sampled"])
def test_both_ways_write_the_same_text_and_drafts_take_fewer_passes(choosing):
    read, plain, drafted = pace.parts(SimpleNamespace(prompt=PROMPT, choosing=choosing, drafts=4), 3)
    assert read["tokens"] == 0 and plain == {"tokens": pace.TOKENS, "passes": pace.TOKENS}
    assert drafted["tokens"] == pace.TOKENS and drafted["same"]
    assert pace.TOKENS / 5 <= drafted["passes"] < pace.TOKENS


def test_without_drafts_a_round_is_a_token():
    assert list(pace.parts(SimpleNamespace(prompt=PROMPT, choosing="greedy", drafts=0), 0))[2]["passes"] == pace.TOKENS


def test_each_part_does_its_work_when_it_is_asked_for(monkeypatch):
    """A part that had been done before its turn would be timed as nothing."""
    lengths, model = [], tiny_model()
    forward = type(model).forward

    def counting(self, ids, state):
        lengths.append(len(ids))
        return forward(self, ids, state)

    monkeypatch.setattr(type(model), "forward", counting)
    parts = pace.parts(SimpleNamespace(prompt=PROMPT, choosing="greedy", drafts=4), 0)
    next(parts)
    assert sum(lengths) == 2 * len(tiny_text.read_prompt(PROMPT))
    lengths.clear()
    next(parts)
    assert lengths == [1] * pace.TOKENS
    lengths.clear()
    passes = next(parts)["passes"]
    assert len(lengths) == passes and sum(lengths) >= pace.TOKENS


def test_the_host_hands_out_part_after_part():
    host, request = Host(), {"do": "pace", "slug": "speculative-replay", "seed": 0, "lang": "en"}
    params = {"source": "text", "prompt": PROMPT}
    replies = [json.loads(host.handle(dumps(request | {"params": params})))]
    replies += [json.loads(host.handle('{"do":"pace"}')) for _ in range(2)]
    assert [reply["state"] for reply in replies] == ["paced"] * 3 and replies[2]["same"]
    assert json.loads(host.handle('{"do":"pace"}'))["state"] == "error"
    refused = json.loads(host.handle(dumps(request | {"params": {"source": "text", "prompt": "caf\u00e9"}})))
    assert refused["state"] == "param_error" and "ASCII" in refused["message"]
