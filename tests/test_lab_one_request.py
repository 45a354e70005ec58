"""The home page's figure: outside figures first, then that each station does what its own tab takes apart."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3core.fleet.latency import prefill_time
from k3core.lab import one_request_steps as steps
from k3core.lab import one_request_view as view
from k3core.lab.registry import experiment

HOME = experiment("one-request")


def metrics(result) -> dict:
    return {metric.key: metric.value for metric in result.metrics}


def log(result) -> dict:
    return result.scenes[0].events


# --- against figures from outside ---------------------------------------------------------------------------------


def test_bytes_of_a_k3_window_are_the_published_ones():
    """A window of 8: 51.75 MiB of records (1,024 B per token and head) instead of 3.23 GiB of snapshots."""
    found = metrics(HOME.run({"drafts": 7}))
    assert found["record_bytes"] == 8 * 69 * 96 * 1024 == int(51.75 * 2**20)
    assert found["snapshot_bytes"] == 8 * 69 * 96 * 128 * 128 * 4
    assert round(found["snapshot_bytes"] / 2**30, 2) == 3.23


def test_the_first_token_of_8000_tokens_takes_the_published_time():
    """376.3 ms on a whole cluster (vLLM blog, 8K in): on 40 % of one that many times longer."""
    alone = steps.admit(0, True, 8000, 0)
    assert alone.wait == 0 and alone.ttft * 0.4 == pytest.approx(0.3763)


# --- the stations -------------------------------------------------------------------------------------------------


def test_a_hit_ends_at_the_last_kept_state_within_the_rows():
    found = log(HOME.run())
    assert found["rows"] == 7100 // 512 * 512 == 6656
    assert found["kept"] == (2048, 4096, 6144, 7680) and found["hit"] == 6144
    assert metrics(HOME.run())["computed_tokens"] == 8100 - 6144
    assert found["saves"] == (6656, 7680) and found["answer_saves"] == (8192,)


@given(shared=st.integers(0, 80).map(lambda n: 100 * n))
@settings(max_examples=20, deadline=None, derandomize=True)
def test_what_is_taken_was_kept_and_is_the_same(shared):
    found = log(HOME.run({"shared": shared}))
    assert found["rows"] == shared // 512 * 512
    assert found["hit"] == max([0, *(end for end in found["kept"] if end <= shared)])
    assert found["hit"] in (0, *found["kept"]) and found["leaked"] == 0


def test_only_the_death_of_its_own_cluster_costs_the_cache():
    for seed in range(6):
        whole = log(HOME.run(seed=seed))
        home, second = whole["order"][:2]
        for down in steps.CLUSTERS:
            found = log(HOME.run({"down": down}, seed))
            assert found["order"] == whole["order"]
            assert (found["cluster"], found["hit"]) == ((second, 0) if down == home else (home, whole["hit"]))


def test_a_burst_delays_an_ordinary_request_and_not_a_vip():
    for burst in range(13):
        vip, other = (log(HOME.run({"burst": burst, "vip": vip})) for vip in (True, False))
        assert vip["wait"] == 0
        assert vip["ttft"] == pytest.approx(prefill_time(1956, 6144) / 0.4)
        assert burst >= other["running"] + other["waiting"] == vip["running"] + vip["waiting"]
        assert (other["wait"] > 0) == (burst > 0)


def test_the_pool_is_shared_by_two_kinds_of_cache():
    found = log(HOME.run())
    before, pinned, filled, complete = (found["blocks"][i] for i in (0, view.PAGES, view.PREFILL, view.LAST))
    assert all(len(blocks) == steps.BLOCKS for blocks in found["blocks"])
    assert before.count("k") == steps.GROUPS * len(found["kept"])
    assert before.count("o") == found["running"] * (-(-3150 // steps.PAGE) + steps.GROUPS)
    assert pinned.count("h") == 6144 // steps.PAGE and pinned.count("s") == steps.GROUPS
    assert filled.count("h") + filled.count("r") == -(-8100 // steps.PAGE)
    assert complete.count("k") == before.count("k") + steps.GROUPS * 3
    assert found["after"].count("h") == found["after"].count("s") == 0


def test_a_page_that_is_only_partly_the_same_is_copied():
    found = log(HOME.run({"shared": 5000}))
    assert found["hit"] == 4096 and 4096 % steps.PAGE
    assert found["blocks"][view.PAGES].count("h") == 4096 // steps.PAGE
    assert found["blocks"][view.PAGES].count("r") == 1


def test_rejected_drafts_leave_no_trace_unless_they_are_left_in():
    rng = np.random.default_rng(3)
    assert steps.replay_rounds([5, 2, 1, 3], 4, False, rng) == 0
    assert steps.replay_rounds([5, 5], 4, True, rng) == 0  # nothing was rejected
    assert steps.replay_rounds([5, 2, 1, 3], 4, True, rng) > 0.1


@given(drafts=st.integers(0, 8), seed=st.integers(0, 99))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_rounds_add_up_to_the_answer(drafts, seed):
    accepted = steps.draw_accepted(drafts, np.random.default_rng(seed))
    assert sum(accepted) == steps.ANSWER and all(1 <= kept <= drafts + 1 for kept in accepted)
    assert len(accepted) >= steps.SHOWN


# --- the figure ---------------------------------------------------------------------------------------------------


def test_every_cluster_is_killed_and_revived_by_a_click():
    for down in ("none", *steps.CLUSTERS):
        result = HOME.run({"down": down})
        svg = HOME.picture(result, "request", 0, "en").svg
        for name in steps.CLUSTERS:
            assert f'data-click="down" data-value="{"none" if name == down else name}"' in svg


def test_the_legend_counts_every_token_and_every_block():
    result = HOME.run()
    for frame in range(result.scenes[0].frames):
        counts = [int(words.args["n"].replace(",", "") if isinstance(words.args["n"], str) else words.args["n"])
                  for _, words in HOME.picture(result, "request", frame, "en").legend]
        assert sum(counts[:2]) == 8100 and sum(counts[2:]) == steps.BLOCKS


def test_the_presets_say_what_happens():
    killed, crowded, edited = (HOME.run(HOME.preset(name).params) for name in ("killed", "crowded", "edited"))
    assert metrics(killed)["computed_tokens"] == 8100
    assert log(crowded)["running"] + log(crowded)["waiting"] == 9
    assert log(crowded)["wait"] > log(crowded)["cold"] - log(crowded)["ttft"]
    assert (log(edited)["rows"], log(edited)["hit"]) == (1536, 0)
