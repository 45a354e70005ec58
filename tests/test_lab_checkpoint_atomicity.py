"""Tab `checkpoint-atomicity`: the failures that engines reported, found by search and played back."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3core.lab import checkpoint_atomicity as tab
from k3core.lab import checkpoint_atomicity_log as log
from k3core.lab.params import ParamError
from k3core.prefix_cache.cache import Rules
from k3core.prefix_cache.world import Scope

RUN = tab.EXPERIMENT.run


def preset(name: str):
    chosen = tab.EXPERIMENT.preset(name)
    return RUN(chosen.params, chosen.seed)


def metrics(result) -> dict:
    return {metric.key: metric.value for metric in result.metrics}


def frames(result) -> list:
    return result.scenes[0].events["frames"]


def actions(result) -> list:
    return [frame["event"][0] for frame in frames(result)[1:]]


def misread(result) -> list:
    """(group, right, held) of what the last action read wrongly; group 0 is rows."""
    last = frames(result)[-1]
    assert last["misread"]
    return [(read["group"], read["right"], read["held"]) for read in last["reads"][last["event"][1]] if not read["ok"]]


def test_an_aborted_request_leaves_nothing_that_its_retry_could_hit():
    """vllm #56525: published when scheduled, aborted, and the retry hits a state that was never written."""
    result = preset("never-written")
    assert metrics(result)["counterexample_length"] == 8
    assert actions(result)[:5] == ["schedule", "copy", "schedule", "release", "schedule"]
    assert frames(result)[4]["facts"]["aborted"] and frames(result)[5]["facts"]["computed"] == 2
    assert misread(result) == [(0, "t1", "?"), (0, "t2", "?"), (1, "t1 t2", "?"), (2, "t1 t2", "?")]


def test_rows_published_when_scheduled_are_wrong_at_once():
    """vllm #38715, #42359: another request could match them in the same step."""
    result = RUN({"publish_on_commit": False, "until": "entry"})
    assert actions(result) == ["schedule", "copy", "schedule"]
    assert log.wrong_entries(frames(result)[-1]) == 4  # two ends of a page, two groups' states


def test_one_groups_block_is_taken_from_another_groups_hit():
    """vllm #33775: the block that receives group 1's copy is the source of group 2's."""
    result = preset("unpinned")
    starts = [frame["facts"]["copies"] for frame in frames(result) if frame["facts"].get("starts")]
    (_, first), (second, _) = starts[-1]
    assert first == second
    assert misread(result) == [(2, "t1 t2", "K1 t1 t2")]


def test_half_a_checkpoint_is_somebody_elses_state():
    """Report section 5.4.1: evicting one group's checkpoint invalidates its siblings."""
    result = preset("half-evicted")
    assert "evict" in actions(result) and metrics(result)["counterexample_length"] == 10
    assert {group for group, _, _ in misread(result)} == {2}


@pytest.mark.parametrize(("params", "states"), [
    ({}, 1050), ({"requests": 1}, 106), ({"blocks": 5}, 150), ({"shared": 1}, 1979)])
def test_with_all_rules_every_state_is_right(params, states):
    result = RUN(params)
    assert metrics(result) == {"states_explored": states, "violations": 0, "counterexample_length": None}
    assert all(check.passed for check in result.checks) and result.answer == 0


def test_rule_1_cannot_fail_with_six_blocks():
    """The failure needs a hit of three blocks, two of a running request, and two that are idle."""
    result = RUN({"pin_first": False})
    assert metrics(result)["violations"] == 0
    assert "needs more room" in result.scenes[0].captions[-1].render("en")


def test_no_hit_reaches_the_last_token():
    """LMCache #5249, #5151: at most n - 1 tokens are restored."""
    for shared in (1, 2):
        hits = [frame["facts"]["computed"] for frame in frames(RUN({"shared": shared}))
                if frame["facts"].get("starts")]
        assert max(hits) == shared  # a prompt has one token more


def test_a_hit_needs_every_group():
    """vllm #43090, ATOM #1759: rows without a state are no hit. Here the checkpoint is gone and the rows stay."""
    last = max((frame for frame in frames(RUN()) if frame["facts"].get("starts")), key=frames(RUN()).index)
    found = {entry["name"]: entry for entry in last["index"]}
    assert found["t1 t2"]["rows"] and not found["t1 t2"]["states"] and last["facts"]["computed"] == 0


@given(st.integers(1, 2), st.integers(1, 2), st.integers(5, 7))
@settings(max_examples=12, deadline=None, derandomize=True)
def test_the_safe_interleaving_shows_nothing_wrong(requests, shared, blocks):
    scope = Scope(requests=requests, shared=shared, blocks=blocks)
    events = log.safe_events(scope)
    played = log.play(scope, events)
    assert len(played) == len(events) + 1 >= 10
    assert not [frame for frame in played if frame["misread"] or log.wrong_entries(frame)]
    assert not [read for frame in played for reads in frame["reads"] for read in reads or () if not read["ok"]]


def test_a_search_that_needs_too_long_is_refused():
    with pytest.raises(ParamError, match="blocks is 7 with 1 shared token"):
        RUN({"shared": 1, "blocks": 7})


def test_progress_comes_while_it_searches():
    tab._searched.pop((Scope(requests=1, blocks=6, rules=Rules()), "entry"), None)
    *steps, _ = tab.EXPERIMENT.steps({"requests": 1})
    assert steps and all(0 < step.done <= step.total for step in steps)
