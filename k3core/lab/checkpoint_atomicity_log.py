"""What the tab `checkpoint-atomicity` plays: an interleaving in a small world, every frame as plain data."""

from collections.abc import Iterable

from k3core.lab.text import Text
from k3core.paged_cache import PoolExhausted
from k3core.prefix_cache.model_checker import after
from k3core.prefix_cache.world import ZERO, Event, Scope, World

NAMES = "AB"
UNWRITTEN = "?"
# A life in which each rule is at work once. What cannot happen in a scope is left out.
SAFE = (("schedule", 0), ("copy", 0), ("schedule", 0), ("schedule", 1), ("forward", 0), ("commit", 0), ("release", 1),
        ("schedule", 0), ("forward", 0), ("commit", 0), ("release", 0), ("schedule", 1), ("copy", 1), ("schedule", 1),
        ("forward", 1), ("commit", 1), ("release", 1), ("evict", None), ("schedule", 0), ("copy", 0))


def safe_events(scope: Scope) -> list[Event]:
    """The events of SAFE that can happen one after the other in this scope."""
    events: list[Event] = []
    for kind, request in SAFE:
        for event in after(scope, events).events():
            if (event.kind, event.request) == (kind, request) and _useful(after(scope, events), event):
                events.append(event)
                break
    return events


def _useful(world: World, event: Event) -> bool:
    """Whether the event can happen; of evictions, whether it hits a part of a checkpoint."""
    if event.kind == "evict":
        return bool(world.cache.checkpoints.of_block(event.victims[0]))
    try:
        world.apply(event)
    except PoolExhausted:
        return False
    return True


def play(scope: Scope, events: Iterable[Event]) -> list[dict]:
    """One frame before the first event and one after each; the last one may be a misread."""
    world = World(scope)
    frames = [frame_of(world, None)]
    for event in events:
        before = frame_of(world, None)
        facts = _before(world, event)
        problem = world.apply(event)
        frame = frame_of(world, event) | {"facts": facts | _after(world, event, before), "misread": bool(problem)}
        if problem:  # what it wrote is nobody's; what it read is what matters
            frame["reads"][event.request] = before["reads"][event.request]
        frames.append(frame)
    return frames


def frame_of(world: World, event: Event | None) -> dict:
    """Blocks, what can be found in them, and what each request would read if it went on now."""
    scope = world.scope
    return {
        "event": event and [event.kind, event.request], "facts": {}, "misread": False,
        "computed": [world.cache.running[r].computed if r in world.cache.running else None
                     for r in range(scope.requests)],
        "blocks": [_block(world, block) for block in range(1, scope.blocks + 1)],
        "index": [_found(world, prefix) for prefix in sorted(scope.links, key=lambda name: (name[1], name[0]))],
        "reads": [_reads(world, request) for request in range(scope.requests)],
    }


def _before(world: World, event: Event) -> dict:
    """What only the world before the event knows."""
    if event.kind == "release":
        return {"aborted": world.cache.running[event.request].computed < world.scope.tokens}
    if event.kind == "schedule":
        return {"starts": world.phases[event.request] == "idle"}
    return {"block": event.victims[0]} if event.kind == "evict" else {}


def _after(world: World, event: Event, before: dict) -> dict:
    """What happened, for the caption."""
    lost = [[kind, old["name"]] for old, new in zip(before["index"], frame_of(world, None)["index"])
            for kind in ("rows", "states") if old[kind] and not new[kind]]
    facts: dict = {"lost": lost}
    running = world.cache.running.get(event.request)
    if running:
        facts["computed"] = running.computed
        facts["pinned"] = list(running.pinned)
        facts["copies"] = [[copy.source, copy.target] for copy in world.copies[event.request]]
        if running.step:
            facts["step"] = [running.step.start, running.step.end]
            facts["saves"] = [save.target for save in running.step.saves]
    return facts


def token_name(prefix: tuple[int, int]) -> str:
    """The last token of a prefix: t1, t2 are everybody's, a3 is A's."""
    request, length = prefix
    return f"{'t' if request < 0 else NAMES[request].lower()}{length}"


def prefix_name(scope: Scope, prefix: tuple[int, int]) -> str:
    """All tokens of a prefix."""
    request, length = prefix
    return " ".join(token_name(scope.prefix(request, end)) for end in range(1, length + 1)) or "0"


def _block(world: World, block: int) -> dict:
    content = world.content.get(block)
    kind = "unwritten" if content is None else content[0] if content[0] in ("zero", "rows") else "state"
    return {"number": block, "kind": kind, "group": content[0] if kind == "state" else 0,
            "cells": _cells(world, block), "references": int(world.pool.references[block]),
            "roles": _roles(world, block)}


def _cells(world: World, block: int) -> list:
    content = world.content.get(block)
    if content is None:
        return [UNWRITTEN]
    if content == ZERO:
        return ["0"]
    if content[0] == "rows":
        return [token_name(row) if row else UNWRITTEN for row in content[1]]
    return [prefix_name(world.scope, content[1])]


def _roles(world: World, block: int) -> list:
    """Which request has the block, and as what."""
    roles = []
    for request, running in sorted(world.cache.running.items()):
        rows, *states = world.tables.tables[request]
        roles += [[request, "page"]] * (block in rows)
        roles += [[request, "state"]] * any(block in group for group in states)
        roles += [[request, "pinned"]] * (block in running.pinned)
        roles += [[request, "saving"]] * bool(running.step and block in (save.target for save in running.step.saves))
    return roles


def _found(world: World, prefix: tuple[int, int]) -> dict:
    """Where the rows and the states of a prefix are found, and whether they are what they stand for."""
    key = world.scope.links[prefix].key
    rows = [[[entry.blocks[0], world.wrong_rows(entry.blocks[0], *prefix) is None]]
            for entry in world.cache.rows.of_key(key)]
    states = [[[block, world.holds_state(block, group, prefix)] for group, block in enumerate(entry.blocks, 1)]
              for entry in world.cache.checkpoints.of_key(key)]
    return {"name": prefix_name(world.scope, prefix), "rows": _worst(rows), "states": _worst(states)}


def _worst(entries: list) -> list | None:
    """The first entry that is wrong, else the first."""
    return next((entry for entry in entries if not all(right for _, right in entry)), entries[0] if entries else None)


def _reads(world: World, request: int) -> list | None:
    """What a request needs to go on: for each row and state where it looks, what it should find and what it finds."""
    phase = world.phases[request]
    if phase in ("idle", "started"):
        return None
    running = world.cache.running[request]
    length = running.step.end if phase == "computed" else running.computed
    scope, (rows, *states) = world.scope, world.tables.tables[request]
    reads = []
    for position in range(length):
        block, prefix = rows[position // scope.page_tokens], scope.prefix(request, position + 1)
        cells = _cells(world, block)
        held = cells[position % scope.page_tokens] if len(cells) == scope.page_tokens else _held(world, block)
        reads.append({"row": position + 1, "group": 0, "block": block, "right": token_name(prefix), "held": held,
                      "ok": world.holds_row(block, position, prefix)})
    prefix = scope.prefix(request, length)
    for group, [block] in enumerate(states, 1):
        held = _held(world, block)
        right = world.holds_state(block, group, prefix)
        reads.append({"row": 0, "group": group, "block": block, "right": prefix_name(scope, prefix),
                      "held": prefix_name(scope, prefix) if right else held, "ok": right})
    return reads


def _held(world: World, block: int) -> str:
    """A block's content where something else was expected."""
    content, cells = world.content.get(block), " ".join(_cells(world, block))
    if content is None or content == ZERO:
        return cells
    return f"{'R' if content[0] == 'rows' else f'K{content[0]}'} {cells}"


def wrong_entries(frame: dict) -> int:
    """Positions in the index that do not hold what they stand for."""
    return sum(not right for entry in frame["index"] for found in (entry["rows"], entry["states"])
               for _, right in found or ())


def captions(frames: list[dict], rules_off: bool, scope: Scope) -> list:
    """One or two sentences per frame."""
    said = [Text("An empty pool of {blocks} blocks. Every action that follows is one step of the real cache; blocks "
                 "hold the name of the prefix that was written into them.", blocks=scope.blocks)]
    for frame in frames[1:]:
        words = _action(frame)
        if frame["facts"]["lost"] and frame["event"][0] == "schedule":
            words = Text("{said} To make room, what an idle block held was evicted; no longer found: {lost}.",
                         said=words, lost=_lost(frame["facts"]["lost"]))
        said.append(words)
    if frames[-1]["misread"] or wrong_entries(frames[-1]):
        said[-1] = Text("{said} {problem}", said=said[-1], problem=_problem(frames[-1]))
    elif rules_off:
        said[-1] = Text("{said} A rule is off, yet no order of actions in this scope goes wrong: the failure needs "
                        "more room.", said=said[-1])
    return said


def _problem(frame: dict) -> Text:
    """What is wrong in the last frame, right and wrong side by side."""
    if frame["misread"]:
        who = frame["event"][1]
        bad = next(read for read in frame["reads"][who] if not read["ok"])
        return Text("{who} should read {right} in block {block} and reads {held}. No error is raised; every later "
                    "token of {who} is computed from it.", who=NAMES[who], right=bad["right"], block=bad["block"],
                    held=bad["held"])
    entry = next(e for e in frame["index"] for f in (e["rows"], e["states"]) for _, right in f or () if not right)
    return Text("The prefix {name} can now be found in a block that does not hold it.", name=entry["name"])


def _action(frame: dict) -> Text:
    """What just happened."""
    (kind, request), facts = frame["event"], frame["facts"]
    who = NAMES[request] if request is not None else ""
    if kind == "schedule" and facts["starts"]:
        return _start(who, facts)
    if kind == "schedule":
        start, end = facts["step"]
        plan = (Text("{who} is given token {last} to compute.", who=who, last=end) if end == start + 1 else
                Text("{who} is given tokens {first} to {last} to compute.", who=who, first=start + 1, last=end))
        if not facts["saves"]:
            return plan
        return Text("{said} Blocks {blocks} are set aside for a checkpoint after token {end}.", said=plan,
                    blocks=_list(facts["saves"]), end=end)
    if kind == "copy":
        return Text("{who}'s copies have landed: its state is private, and the sources may go.", who=who)
    if kind == "forward":
        start, end = facts["step"]
        return Text("{who} computes up to token {end}: rows and states are written.", who=who, end=end)
    if kind == "commit":
        return Text("{who} commits: what was computed up to token {end} may be found by others.", who=who,
                    end=facts["computed"])
    if kind == "release" and facts["aborted"]:
        return Text("{who} is aborted; its blocks return to the pool.", who=who)
    if kind == "release":
        return Text("{who} is finished; its blocks return to the pool, what was published stays findable.", who=who)
    if facts["lost"]:
        return Text("Block {block} is evicted; no longer found: {lost}.", block=facts["block"],
                    lost=_lost(facts["lost"]))
    return Text("Block {block} is evicted, one part of a checkpoint; its sibling can still be found.",
                block=facts["block"])


def _start(who: str, facts: dict) -> Text:
    hit = [(source, target) for source, target in facts["copies"] if source]
    if facts["computed"]:
        said = Text("{who} starts with a hit: rows and a state of every group up to token {hit}. Copies under way: "
                    "{copies}.", who=who, hit=facts["computed"],
                    copies=", ".join(f"{source} → {target}" for source, target in hit))
        lost = [target for index, (_, target) in enumerate(hit) if target in [source for source, _ in hit[index + 1:]]]
        return Text("{said} Block {block} is overwritten by one copy before the next reads it.", said=said,
                    block=lost[0]) if lost else said
    return Text("{who} starts: the lookup finds no position with rows and a state of every group, so blocks {blocks} "
                "are cleared for its states.", who=who, blocks=_list([target for _, target in facts["copies"]]))


def _lost(entries: list) -> Text:
    """Entries that are found no more, in words."""
    kind, name = entries[0]
    first = Text("rows of {name}", name=name) if kind == "rows" else Text("checkpoint of {name}", name=name)
    return Text("{first}; {rest}", first=first, rest=_lost(entries[1:])) if entries[1:] else first


def _list(numbers: list) -> str:
    return ", ".join(map(str, numbers))
