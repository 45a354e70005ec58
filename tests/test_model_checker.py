"""Exhaustion: no state in a small world is wrong, and each rule, switched off, has a counterexample."""

import pytest

from k3core.paged_cache import PoolExhausted
from k3core.prefix_cache import Rules, read_policy
from k3core.prefix_cache.model_checker import after, decode, encode, explore
from k3core.prefix_cache.world import Event, Scope, World
from k3core.traces import finish

OFF = {"pin_first": Rules(pin_first=False), "publish_on_commit": Rules(publish_on_commit=False),
       "evict_together": Rules(evict_together=False)}


@pytest.mark.parametrize("scope", [
    Scope(blocks=7),
    Scope(requests=3, blocks=6),
    Scope(blocks=5, shared=1, own=2, policy=read_policy("dense")),
    Scope(blocks=5, shared=3, state_groups=1, policy=read_policy("align")),
], ids=["two requests", "three requests", "a checkpoint at every token", "one group of states"])  # fmt: skip
def test_no_reachable_state_is_wrong(scope):
    verdict = finish(explore(scope))
    assert verdict.complete and verdict.problem is None and verdict.events == ()
    assert verdict.states > 500


def test_the_number_of_states_is_a_property_of_the_scope():
    first, second = (finish(explore(Scope(blocks=5))) for _ in range(2))
    assert first == second and first.states < first.transitions


@pytest.mark.parametrize(("rule", "problem"), [
    ("pin_first", "as its state of group 2 after 2 tokens, but it holds group 1's state"),
    ("publish_on_commit", "but it holds nothing that was written for it"),
    ("evict_together", "but it holds"),
])  # fmt: skip
def test_without_one_rule_a_request_reads_what_is_not_its_own(rule, problem):
    """vllm #33775 (C7), vllm #56525 and #42359 (C5, C6), Kimi K3 report section 5.4.1."""
    scope = Scope(blocks=7, rules=OFF[rule])
    verdict = finish(explore(scope, until="read"))
    assert problem in verdict.problem and not verdict.complete
    *before, last = verdict.events
    assert last.kind == "forward" and len(verdict.events) == verdict.depth
    world = after(scope, before)
    assert world.apply(last) == verdict.problem
    assert no_harm(Scope(blocks=7), verdict.events)


def no_harm(scope, events):
    """The same events under all rules, as far as they can happen."""
    world = World(scope)
    for event in events:
        try:
            if world.apply(event) or world.wrong_entry():
                return False
        except (PoolExhausted, ValueError):  # what was evicted before is still there, or gone
            return True
    return True


@pytest.mark.parametrize(("rule", "length"), [("publish_on_commit", 3), ("evict_together", 8)])
def test_the_first_wrong_entry_comes_earlier_than_the_first_wrong_read(rule, length):
    scope = Scope(rules=OFF[rule])
    entry, read = (finish(explore(scope, until=until)) for until in ("entry", "read"))
    assert entry.depth == length < read.depth and " found in block " in entry.problem
    assert after(scope, entry.events).wrong_entry() == entry.problem


def test_abort_and_retry_is_among_the_ways_to_read_an_unwritten_state():
    """vllm #56525 (C5), event by event."""
    events = [Event("schedule", 0), Event("copy", 0), Event("schedule", 0), Event("release", 0),
              Event("schedule", 1), Event("copy", 1), Event("schedule", 1)]
    last = Event("forward", 1)
    wrong, right = (after(Scope(rules=rules), events) for rules in (OFF["publish_on_commit"], Rules()))
    assert "nothing that was written for it" in wrong.apply(last) and right.apply(last) is None


def walk(scope, choices):
    """A world after some of its possible events."""
    world = World(scope)
    for choice in choices:
        events = list(world.events())
        try:
            world.apply(events[choice % len(events)])
        except PoolExhausted:
            pass
    return world


@pytest.mark.parametrize("rules", [Rules(), *OFF.values()], ids=["all rules", *OFF])
def test_a_state_survives_encoding_and_renumbering(rules):
    for seed in range(40):
        choices = [(seed * 7919 + i * i * 104729) % 1009 for i in range(seed)]
        scope = Scope(requests=3, blocks=9, rules=rules)
        world = walk(scope, choices)
        state = encode(world)
        again = decode(scope, state)
        assert encode(again) == state
        assert (world.wrong_entry() is None) == (again.wrong_entry() is None)
        assert world.pool.free_blocks == again.pool.free_blocks
        kinds = [sorted((event.kind, len(event.victims)) for event in w.events()) for w in (world, again)]
        assert kinds[0] == kinds[1]


def test_requests_are_interchangeable():
    first, second = ([Event("schedule", r), Event("copy", r), Event("schedule", r), Event("forward", r),
                      Event("commit", r), Event("schedule", 1 - r)] for r in (0, 1))
    assert encode(after(Scope(), first)) == encode(after(Scope(), second))


def test_progress_limit_and_nonsense():
    steps = explore(Scope(), limit=300)
    seen = list(iter(lambda: next(steps, None), None))
    assert seen == sorted(seen) and seen
    verdict = finish(explore(Scope(), limit=300))
    assert not verdict.complete and verdict.problem is None and verdict.states > 300
    with pytest.raises(ValueError, match="until is 'never'"):
        finish(explore(Scope(), until="never"))
    with pytest.raises(ValueError, match="requests is 9; a small world has 1 to 4"):
        Scope(requests=9)
