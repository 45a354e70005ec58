"""The browser computes what CPython computes: every experiment, every preset, and a seeded sample of its parameters."""

import json

import numpy as np
import pytest

import parity
from k3core.lab.registry import everything, experiment

SAMPLES = {"http": 8, "file": 3}
SLOW = ("fleet-simulation", "checkpoint-atomicity", "sizing", "traces")  # runs of seconds: a fifth of the samples


@pytest.fixture(params=["http", "file"])
def host(request, pages):
    """(how, page): the one page with Python up per way of opening the site."""
    visit = pages(request.param)
    yield request.param, visit
    assert not visit.complaints, visit.complaints


def points(slug: str, count: int) -> list:
    """Defaults, presets and `count` samples as (params, seed)."""
    chosen = experiment(slug)
    rng = np.random.default_rng([2607, chosen.tab])
    count = count // 5 if slug in SLOW else count
    sampled = [(parity.sample(chosen, rng), int(rng.integers(1000))) for _ in range(count)]
    return [({}, 0), *((preset.params, preset.seed) for preset in chosen.presets), *sampled]


@pytest.mark.parametrize("slug", everything())
def test_browser_equals_cpython(host, slug):
    how, visit = host
    for params, seed in points(slug, SAMPLES[how]):
        found = parity.differences(parity.native(slug, params, seed), visit.compute(slug, params, seed))
        assert not found, f"{slug} {params} seed {seed}: {found[:5]}"


def test_comparison_notices_a_difference():
    """The comparison itself can fail: one changed digit of each kind is found."""
    text = parity.native("byte-cost", {})
    reply = json.loads(text)
    assert parity.differences(text, text) == []
    changes = [("metrics", 0, "value", 1), ("metrics", 2, "value", 1e-6), ("checks", 0, "passed", -1)]
    for part, index, key, change in changes:
        other = json.loads(text)
        other["result"][part][index][key] += change
        assert parity.differences(text, json.dumps(other)), (part, index)
    reply["result"]["tables"]["model_scale"]["rows"][0][2] += 1
    assert parity.differences(text, json.dumps(reply))
