"""Every state that a small world can reach, breadth first; so the first counterexample is the shortest.

States that differ only in the numbers of blocks or of requests are one state.
"""

import marshal
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import groupby, permutations, product

from ..paged_cache import PoolExhausted
from .cache import Copy, Running, Step
from .entries import Entry
from .world import ZERO, Event, Scope, World

STRIDE = 100  # events between two progress reports


@dataclass(frozen=True)
class Verdict:
    """What a search found. problem and events: the shortest counterexample, None and () if there is none.

    complete: every reachable state was visited. depth: events on the longest of all shortest paths.
    """

    states: int
    transitions: int
    depth: int
    complete: bool
    problem: str | None = None
    events: tuple[Event, ...] = ()


def explore(scope: Scope, until: str = "entry", limit: int = 10**6) -> Generator[int, None, Verdict]:
    """Visit all states; yields how many were found so far, every 100 events.

    until: stop at the first registered entry that is not the prefix it stands for ("entry"), or only when a
    request computes from something that is not its own prefix ("read"; what follows is then wrong output).
    limit: give up after so many states.
    """
    if until not in ("entry", "read"):
        raise ValueError(f"until is {until!r}; choose entry or read")
    start = encode(World(scope))
    parents: dict[bytes, bytes | None] = {_digest(start): None}
    level, transitions, depth = [start], 0, -1
    while level and len(parents) <= limit:
        depth += 1
        following = []
        for state in level:
            for event in list(decode(scope, state).events()):
                world = decode(scope, state)
                try:
                    problem = world.apply(event)
                except PoolExhausted:
                    continue
                transitions += 1
                reached = encode(world)
                digest = _digest(reached)
                if digest not in parents:
                    parents[digest] = _digest(state)
                    following.append(reached)
                    if until == "entry":
                        problem = problem or world.wrong_entry()
                if problem:
                    events, problem = _retrace(scope, parents, _digest(state), until)
                    return Verdict(len(parents), transitions, len(events), False, problem, tuple(events))
                if transitions % STRIDE == 0:
                    yield len(parents)
        level = following
    return Verdict(len(parents), transitions, depth, not level)


def _retrace(scope: Scope, parents: dict, digest: bytes, until: str) -> tuple[list[Event], str]:
    """The events from the start to a state and on to the problem, with the numbers that blocks and requests
    have all the way; and the problem in words."""
    path = []
    while digest is not None:
        path.append(digest)
        digest = parents[digest]
    events: list[Event] = []
    for wanted in path[-2::-1]:
        events.append(next(event for event, world, _ in _next_worlds(scope, events, until)
                           if _digest(encode(world)) == wanted))
    return next(([*events, event], problem) for event, _, problem in _next_worlds(scope, events, until)
                if problem)


def _next_worlds(scope: Scope, events: list[Event], until: str) -> Iterator[tuple[Event, World, str | None]]:
    """Each event that can follow, a new world after it, and what is wrong there."""
    for event in list(after(scope, events).events()):
        world = after(scope, events)
        try:
            problem = world.apply(event)
        except PoolExhausted:
            continue
        yield event, world, problem or (world.wrong_entry() if until == "entry" else None)


def after(scope: Scope, events: Sequence[Event]) -> World:
    """A new world in which these events have happened."""
    world = World(scope)
    for event in events:
        world.apply(event)
    return world


def _digest(state: bytes) -> bytes:
    return blake2b(state, digest_size=16).digest()


def encode(world: World) -> bytes:
    """A world as bytes, the same for worlds that differ in the numbers of blocks or requests only.

    Requests that look alike are numbered in every way; the least encoding counts.
    """
    looks = [_look(world, request) for request in range(world.scope.requests)]
    order = sorted(range(world.scope.requests), key=looks.__getitem__)
    alike = [permutations(group) for _, group in groupby(order, key=looks.__getitem__)]
    return min(marshal.dumps(_tuple(world, sum(choice, ())), 2) for choice in product(*alike))


def _look(world: World, request: int) -> tuple:
    """What distinguishes a request from others, whatever the numbers."""
    running = world.cache.running.get(request)
    scope, counts = world.scope, []
    for length in range(scope.shared + 1, scope.tokens + 1):
        key = scope.links[request, length].key
        counts += len(world.cache.rows.of_key(key)), len(world.cache.checkpoints.of_key(key))
    return world.phases[request], running.computed if running else -1, counts


def _tuple(world: World, order: tuple[int, ...]) -> tuple:
    labels = {0: 0}  # blocks are numbered as they are met; those never met are unused

    def label(block):
        return labels.setdefault(block, len(labels))

    requests = tuple(_request(world, request, label) for request in order)
    entries = []
    for request, length in world.scope.links:
        key = world.scope.links[order[request] if request >= 0 else -1, length].key
        for index in (world.cache.rows, world.cache.checkpoints):
            entries.append(tuple((tuple(map(label, entry.blocks)),
                                  tuple(entry in index.of_block(block) for block in entry.blocks))
                                 for entry in index.of_key(key)))
    names = {-1: -1} | {request: place for place, request in enumerate(order)}
    content = tuple(_renamed(world.content.get(block), names) for block in labels)
    return requests, tuple(entries), tuple(map(world.pool.is_findable, labels)), content


def _request(world: World, request: int, label) -> tuple:
    phase = world.phases[request]
    if phase == "idle":
        return (phase,)
    running, step = world.cache.running[request], world.cache.running[request].step
    return (phase, running.computed, tuple(running.boundaries),
            tuple(tuple(map(label, group)) for group in world.tables.tables[request]),
            tuple(map(label, running.pinned)),
            tuple((label(copy.source), label(copy.target)) for copy in world.copies[request]),
            step and (step.start, step.end, tuple(label(save.target) for save in step.saves)))


def _renamed(content: tuple | None, names: dict[int, int]) -> tuple | None:
    """What a block holds, with requests numbered anew."""
    if content is None or content == ZERO:
        return content
    if content[0] == "rows":
        return "rows", tuple(row and (names[row[0]], row[1]) for row in content[1])
    return content[0], (names[content[1][0]], content[1][1])


def decode(scope: Scope, state: bytes) -> World:
    """A world in this state."""
    requests, entries, findable, content = marshal.loads(state)
    world = World(scope)
    held: Counter = Counter()
    for request, encoded in enumerate(requests):
        if encoded[0] != "idle":
            held.update(_restore(world, request, encoded))
    blocks = world.pool.allocate(scope.blocks)
    world.pool.register(block for block, found in enumerate(findable) if found)
    for block, references in held.items():
        world.pool.touch([block] * (references - 1))
    world.pool.free([block for block in blocks if not held[block]])
    world.content = dict(enumerate(content))
    indexes = world.cache.rows, world.cache.checkpoints
    places = [(link, index) for link in scope.links.values() for index in indexes]
    for (link, index), found in zip(places, entries, strict=True):
        for blocks, alive in found:
            index.add(Entry(link, blocks), alive)
    return world


def _restore(world: World, request: int, encoded: tuple) -> list[int]:
    """A running request -> the blocks it holds, one mention per reference."""
    phase, computed, boundaries, table, pinned, copies, step = encoded
    world.phases[request] = phase
    world.copies[request] = [Copy(*copy) for copy in copies]
    world.tables.tables[request] = [list(group) for group in table]
    saves = step and tuple(Copy(group[0], target) for group, target in zip(table[1:], step[2]))
    world.cache.running[request] = Running(
        world.scope.chains[request], world.scope.tokens, computed, list(boundaries), frozenset(),
        list(pinned), phase == "started", step and Step(step[0], step[1], saves))
    return [*(block for group in table for block in group), *pinned, *(step[2] if step else ())]
