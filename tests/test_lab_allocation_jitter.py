"""Tab `allocation-jitter`: public reports, the arithmetic of the trace, and what the checks notice."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3core.allocators import FirstFit, Geometry, Refused, TwoEnds, TwoPools, UnifiedPool, Work
from k3core.lab import allocation_jitter as tab
from k3core.lab.allocation_jitter_sim import (
    STEPS,
    Simulation,
    arrivals,
    mean_bytes,
    mean_rows,
    mean_steps,
    overlaps,
    quantile,
)
from k3core.lab.allocation_jitter_view import joined
from k3core.lab.params import ParamError

RUN = tab.EXPERIMENT.run
K3 = tab.geometry_of("kimi-k3")
EXAMPLES = settings(max_examples=20, deadline=None, derandomize=True)


def preset(name: str):
    chosen = tab.EXPERIMENT.preset(name)
    return RUN(chosen.params, chosen.seed)


def metrics(result) -> dict:
    return {metric.key: metric.value for metric in result.metrics}


def rows(result, table: str = "verdict") -> dict:
    """Allocator -> column -> value."""
    columns = [column.key for column in result.tables[table].columns]
    return {row[0].split(":")[1]: dict(zip(columns, row)) for row in result.tables[table].rows}


def failed(result) -> set:
    return {check.key for check in result.checks if not check.passed}


# --- public reports ---------------------------------------------------------------------------------------------


def test_twelve_tokens_take_23_of_70_blocks():
    """vllm #54458: 32.9 % of the pool for 12 tokens, and two or three requests of any size run."""
    geometry, memory = tab.geometry_of("wide"), round(2.1 * 2**30)
    pool = UnifiedPool(geometry, memory)
    assert pool.blocks == 70 and pool.admit(0, 12, 12, 1) == Work(23) and 23 / 70 == pytest.approx(0.329, abs=5e-4)
    assert {name: row["running"] for name, row in rows(preset("vllm-54458")).items()} == {
        "unified": 3, "two_pools": 2, "first_fit": 3, "two_ends": 3}


@pytest.mark.parametrize(("slots", "each", "streams"), [(10, 5, 2), (47, 5, 9), (40, 5, 8), (451, 5, 90)])
def test_streams_are_slots_over_states_per_request(slots, each, streams):
    """sglang #36889, #38846 and the caps reported with them."""
    memory = 40 * 2**30
    pools = TwoPools(K3, memory, slots * K3.state_bytes)
    for request in range(streams):
        pools.admit(request, 16, 16, each)
    with pytest.raises(Refused):
        pools.admit(streams, 16, 16, each)


def test_ten_slots_run_two_streams_whatever_comes():
    assert rows(preset("sglang-36889"))["two_pools"]["running"] == 2
    assert rows(preset("sglang-36889"))["unified"]["running"] == 7


def test_a_split_for_long_requests_starves_short_ones():
    """sglang #33004: the ratio of the pools binds, not the configured limit."""
    found = rows(preset("split-for-long"))
    assert (found["two_pools"]["refused"], found["unified"]["refused"]) == (47, 23)
    assert (found["two_pools"]["unusable"], found["unified"]["unusable"]) == (
        pytest.approx(0.357, abs=5e-4), pytest.approx(0.071, abs=5e-4))


def test_states_that_are_fewer_than_requests():
    """vllm #49064."""
    found = rows(preset("vllm-49064"))["two_pools"]
    assert (found["running"], found["refused"]) == (7, 96) and found["unusable"] == pytest.approx(0.705, abs=5e-4)
    assert TwoPools(K3, 3 * 2**30, 3 * 2**30 // 4).state_slots == 14
    assert rows(preset("vllm-49064"))["unified"]["running"] == 19


def test_scratch_for_drafts_halves_who_can_run():
    """sglang #23643."""
    assert rows(preset("sglang-23643"))["unified"]["running"] == 7
    assert rows(RUN(tab.EXPERIMENT.preset("sglang-23643").params | {"slots": 1}))["unified"]["running"] == 14


def test_what_can_never_fit_is_told_from_what_finds_no_room():
    """vllm-ascend #17074."""
    found = rows(preset("vllm-ascend-17074"))
    assert found["unified"]["never"] > 0 and found["unified"]["refused"] > 0
    pool = UnifiedPool(K3, round(0.8 * 2**30))
    assert pool.can_ever(34 * 1536, 2) and not pool.can_ever(34 * 1536 + 1, 2)


def test_whoever_is_let_in_by_rows_alone_waits():
    """vllm #52520."""
    result = preset("vllm-52520")
    assert failed(result) == {"let_in_runs"}
    assert next(check for check in result.checks if check.key == "let_in_runs").measured.args["n"] == "428"


def test_a_steady_mix_makes_static_pools_as_good():
    found = rows(preset("steady-mix"))
    assert (found["two_pools"]["refused"], found["unified"]["refused"]) == (15, 17)


def test_reserved_lengths_make_contiguous_memory_steady():
    found = rows(preset("reserve"))["first_fit"]
    assert found["p99"] == 960 and found["moved"] == 0 and found["unusable"] == pytest.approx(0.121, abs=5e-4)


def test_work_of_the_pool_does_not_grow_with_the_memory():
    found = rows(preset("crowd"))
    assert found["unified"]["running"] == 85 and found["unified"]["p99"] == 3072
    assert [found[name]["moved"] >> 30 for name in ("first_fit", "two_ends")] == [47, 74]


# --- the trace and the counting ---------------------------------------------------------------------------------


@pytest.mark.parametrize("percent", [0, 50, 100])
def test_the_trace_offers_the_load_that_was_asked_for(percent):
    """Little's law: arrivals per step, times bytes, times steps, over many traces."""
    memory, offered = 64 * 2**30, []
    for seed in range(6):
        trace = arrivals(K3, memory, 80, (percent, percent), 2, np.random.default_rng(seed))
        held = [(a.final + a.prompt) / 2 * K3.row_bytes + 2 * K3.state_bytes for a in trace]
        steps = [-(-(a.final - a.prompt) // 128) for a in trace]
        offered.append(sum(b * s for b, s in zip(held, steps)) / STEPS / memory)
        assert all(earlier.step <= later.step < STEPS for earlier, later in zip(trace, trace[1:]))
    assert np.mean(offered) == pytest.approx(0.8, rel=0.05)
    assert mean_bytes(K3, percent, 2) == mean_rows(percent) * K3.row_bytes + 2 * K3.state_bytes
    assert mean_steps() == pytest.approx(1088 / 128 + 0.5)


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=50), st.integers(1, 100))
@EXAMPLES
def test_quantiles_are_values_that_occurred(values, percent):
    assert quantile(values, percent) == np.quantile(np.array(values), percent / 100, method="inverted_cdf")
    assert quantile([], percent) == 0


def test_overlaps_are_counted():
    def frame(*extents):
        return {"extents": [(0, "rows", start, nbytes, used) for start, nbytes, used in extents]}

    assert overlaps(frame((0, 10, 10), (10, 5, 0)), 15) == 0
    assert overlaps(frame((0, 10, 10), (9, 5, 5)), 15) == overlaps(frame((10, 6, 1)), 15) == 1
    assert overlaps(frame((0, 10, 11)), 15) == 1


def test_neighbouring_pieces_of_a_request_are_drawn_as_one():
    pieces = [(1, "rows", 10, 10, 4), (1, "rows", 0, 10, 10), (2, "rows", 20, 10, 10), (2, "state", 30, 10, 10)]
    assert joined(pieces) == [[1, "rows", 0, 20, 14], [2, "rows", 20, 10, 10], [2, "state", 30, 10, 10]]


@given(st.integers(0, 1000), st.sampled_from(("move", "reserve")), st.integers(1, 6))
@EXAMPLES
def test_every_request_is_counted_once(seed, contiguous, slots):
    result = RUN({"contiguous": contiguous, "slots": slots, "memory": 2.0, "state_share": 40}, seed)
    assert not failed(result)
    log = result.scene("memory").events["frames"]
    total = sum(frame["came"] for frame in log["unified"])
    for name, frames in log.items():
        lost = sum(frame["refused"] + frame["cut_off"] for frame in frames)
        left = sum(frame["left"] for frame in frames)
        assert lost + left + frames[-1]["running"] == total
        assert lost == metrics(result)[f"refused_{name}"]


def test_the_verdict_follows_from_the_work():
    class Done:
        unusable = [0.0] * STEPS

    runs = dict.fromkeys(("unified", "two_pools", "first_fit", "two_ends"), Done)

    def option(**p99):
        return tab.judge({name: [p99.get(name, 640)] for name in runs}, runs, 100)[0]

    assert option() == 2 and option(first_fit=640 * 16) == 1
    assert option(two_pools=10**6, first_fit=10**6, two_ends=10**6) == 0
    assert tab.steadier("two_ends", 64, 64 * 16).template.startswith("less steady")


# --- the checks can fail ----------------------------------------------------------------------------------------


def test_a_hole_that_is_not_filled_is_noticed(monkeypatch):
    def remove(self, side, request):
        places = self.places[side].pop(request, [])
        del self.sides[side][len(self.sides[side]) - len(places):]
        return Work(len(places))

    monkeypatch.setattr(TwoEnds, "_remove", remove)
    assert "sound" in failed(RUN())


def test_memory_that_is_lost_is_noticed(monkeypatch):
    monkeypatch.setattr(FirstFit, "_fill", lambda self, start, nbytes: None)
    assert "whole_again" in failed(RUN())


def test_a_broken_promise_is_noticed(monkeypatch):
    def grow(self, request, tokens):
        if tokens > 20000:
            raise Refused("no")
        return Work(0)

    monkeypatch.setattr(UnifiedPool, "grow", grow)
    assert "promises_kept" in failed(RUN())


def test_rows_that_find_no_hole_are_cut_off():
    memory = FirstFit(Geometry(1, 1000, 1024, 1024, 1), 1536)
    simulation = Simulation(memory, [], 1, 0.5)
    memory.admit(0, 512, 1024, 0)
    memory.admit(1, 512, 512, 0)
    simulation.final = {0: 1024, 1: 512}
    simulation._grow(0)
    assert simulation.cut_off == 1 and list(memory.tokens) == [1] and memory.holes == [(0, 512), (1024, 512)]


def test_a_pool_too_small_for_one_state_is_refused():
    with pytest.raises(ParamError, match="state_share is 5; of 512 MiB that gives 25.6 MiB to states"):
        RUN({"state_share": 5, "memory": 0.5})
