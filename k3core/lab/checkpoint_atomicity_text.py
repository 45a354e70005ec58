"""What the reader would have got: the states and rows that an interleaving left, read by the trained model.

Each token of the small world stands for a piece of the reader's text. The model computes the states and rows of every
prefix once; a request then goes on from those that its blocks, or the blocks that it finds, really hold.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from k3core.decode import START, DecoderState, KDAMemory
from k3core.lab import prefix_text, tiny_text
from k3core.lab.checkpoint_atomicity_log import NAMES, prefix_name, token_name
from k3core.lab.contract import Check, Progress
from k3core.lab.display import number
from k3core.lab.params import ParamError
from k3core.lab.text import Text
from k3core.mla import LatentCache
from k3core.paged_cache import NULL
from k3core.prefix_cache.model_checker import after
from k3core.prefix_cache.world import ZERO, Scope, World


@dataclass(frozen=True)
class Found:
    """What a request goes on from, as names: after `length` tokens of the small world, rows by position and a state by
    group. Each is what a block holds: None (nobody wrote it), ZERO, ("rows", ...) or (group, prefix)."""

    request: int
    length: int
    rows: list
    states: list


@dataclass(frozen=True)
class Said:
    """The right continuation and the one from what was found. differing: of all `numbers` that it went on from."""

    captions: list
    log: dict
    differing: int
    numbers: int
    margin: float
    same: bool

    def check(self, own: Check) -> Check:
        """The tab's check of prefixes, with what the model made of it."""
        return Check("own_prefix", Text("nothing is found or read but the prefix it stands for, and the text is right"),
                     own.passed and self.same,
                     Text("{differing} of {numbers} numbers differ; tokens were chosen with a lead of {lead} or more",
                          differing=number(self.differing), numbers=number(self.numbers), lead=number(self.margin, 2)),
                     Text("no difference"))


def continued(p, seed: int, scope: Scope, events: list, frame: int):
    """Let the model go on from what the interleaving left at this frame. Yields Progress; raises ParamError, Needs."""
    pieces = pieces_of(p, scope)
    found = found_at(scope, events, frame)
    prompt = [START, *(token for piece in pieces[found.request] for token in piece)]
    ends = [1 + sum(map(len, pieces[found.request][: at + 1])) for at in range(scope.tokens)]  # START is in the first
    right = yield from prefix_text.uncached(prompt, p.answer, p.choosing, seed)
    kept = yield from _states(scope, pieces, found)
    state = _memory(found, kept, ends)
    before = state.length
    reference = kept[scope.prefix(found.request, found.length)] if found.length else tiny_text.model().new_state()
    pairs = list(zip(state.arrays(), reference.arrays(), strict=True))
    differing = sum(int(np.count_nonzero(a != b)) for a, b in pairs)
    known, numbers = list(prompt), sum(a.size for a, _ in pairs)
    yield from prefix_text.go_on(partial(tiny_text.model().forward, state=state), state, known, len(prompt) + p.answer,
                                 tiny_text.sampler(p.choosing, seed))
    tokens = known[len(prompt) :]
    log = _log(scope, found, ends, prompt, before, tokens, right.tokens)
    return Said(_captions(log, differing, numbers), log, differing, numbers, right.margin,
                tokens == right.tokens and not differing)


def pieces_of(p, scope: Scope) -> list:
    """For each request the pieces of text, as token ids, that its tokens stand for. Raises ParamError."""
    shared, ends = tiny_text.ids_of("text", p.text), p.ends.split("\n")
    if len(shared) < scope.shared:
        raise ParamError("text", Text("text has {count} characters; it takes one or more for each shared token",
                                      count=len(shared)))
    if len(ends) != 2 or not all(ends):
        raise ParamError("ends", Text("ends takes 2 lines with text, how A and B go on; given: {count}",
                                      count=sum(map(bool, ends))))
    cut = (len(shared) // 2,) if scope.shared == 2 else ()
    parts = [list(part) for part in np.split(np.array(shared), cut)]
    return [[*parts, tiny_text.ids_of("ends", end)] for end in ends[: scope.requests]]


def found_at(scope: Scope, events: list, frame: int) -> Found:
    """What a request goes on from: where it misreads, or what leads to a wrong entry, else whoever is at work."""
    world = after(scope, events[:frame])
    last = events[frame - 1] if frame else None
    if frame == len(events) and last.kind == "forward" and after(scope, events[:-1]).apply(last):
        world = after(scope, events[:-1])
    elif world.wrong_entry():
        return _entry(world)
    request = last.request if last and last.request is not None else 0
    if request not in world.cache.running:
        return Found(request, 0, [], [])
    return _table(world, request)


def _table(world: World, request: int) -> Found:
    """What a running request's own blocks hold."""
    running, (rows, *states) = world.cache.running[request], world.tables.tables[request]
    size = world.scope.page_tokens
    return Found(request, running.computed, [_row(world, rows[at // size], at) for at in range(running.computed)],
                 [world.content.get(block) for block, in states])


def _entry(world: World) -> Found:
    """What a request would take that hits the first prefix whose entry is wrong."""
    scope = world.scope
    for prefix, link in sorted(scope.links.items(), key=lambda item: (item[0][1], item[0][0])):
        request, length = max(prefix[0], 0), prefix[1]
        links = [scope.links[scope.prefix(request, end)] for end in range(1, length + 1)]
        rows = [world.cache.rows.of_key(each.key) for each in links]
        states = world.cache.checkpoints.of_key(link.key)
        held = [_row(world, entries[0].blocks[0], at) if entries else None for at, entries in enumerate(rows)]
        kept = [world.content.get(block) for block in states[0].blocks] if states else [
            (group, prefix) for group in range(1, scope.state_groups + 1)]
        right = [scope.prefix(request, at + 1) for at in range(length)]
        if (rows[-1] and held != right) or kept != [(group, prefix) for group in range(1, scope.state_groups + 1)]:
            return Found(request, length, held, kept)
    raise AssertionError("there is a wrong entry, but no prefix leads to it")


def _row(world: World, block: int, at: int):
    """The prefix whose last row stands in a page where the row of a position should be."""
    content = world.content.get(block) if block != NULL else None
    return content[1][at % world.scope.page_tokens] if content and content[0] == "rows" else None


def _states(scope: Scope, pieces: list, found: Found):
    """prefix -> the model's state after it, for all that was found. Yields Progress."""
    wanted = {content[1] for content in found.states if content and content != ZERO and content[0] != "rows"}
    wanted |= {row for row in found.rows if row}
    wanted |= {scope.prefix(found.request, found.length)} if found.length else set()
    kept = {}
    for request, length in sorted(wanted):
        ids = [START, *(token for piece in pieces[max(request, 0)][:length] for token in piece)]
        state = tiny_text.model().new_state()
        while state.length < len(ids):
            tiny_text.model().forward(ids[state.length : state.length + tiny_text.READ_AT_ONCE], state)
            yield Progress(state.length, len(ids), tiny_text.text_of(ids[: state.length]))
        kept[request, length] = state
    return kept


def _memory(found: Found, kept: dict, ends: list) -> DecoderState:
    """The model's memory made of what was found. KDA layers are shared out to the groups in order; what nobody wrote is
    zero."""
    model = tiny_text.model()
    state = model.new_state()
    if not found.length:
        return state
    layers = [i for i, kind in enumerate(model.config.layers) if kind == "kda"]
    shares = np.array_split(layers, len(found.states))
    for group, content in enumerate(found.states):
        if content and content != ZERO and content[0] != "rows":
            theirs, source = shares[content[0] - 1], kept[content[1]]
            for place, layer in enumerate(shares[group]):
                memory = source.memories[theirs[place % len(theirs)]]
                state.memories[layer] = KDAMemory(memory.state.copy(), memory.conv.copy(), memory.exact)
    for layer, memory in enumerate(state.memories):
        if isinstance(memory, LatentCache):
            rows = np.zeros((ends[found.length - 1], memory.rows.shape[1]), np.float32)
            for at, row in enumerate(found.rows):  # a row stands in the page at its own position, whoever wrote it
                start, end = ends[at - 1] if at else 0, ends[at]
                theirs = kept[row].memories[layer].rows[start:end] if row else rows[:0]
                rows[start : start + len(theirs)] = theirs
            memory.append(rows)
    state.length = ends[found.length - 1]
    return state


def _log(scope: Scope, found: Found, ends: list, prompt: list, before: int, tokens: list, right: list) -> dict:
    """Plain data for the drawing."""
    names = [scope.prefix(found.request, end) for end in range(1, scope.tokens + 1)]
    prefix = scope.prefix(found.request, found.length)
    reads = [{"group": 0, "right": prefix_name(scope, prefix), "ok": found.rows == names[: found.length],
              "held": " ".join(token_name(row) if row else "?" for row in found.rows) or "0"}]
    for group, content in enumerate(found.states, 1):
        ok = content == (group, prefix) or (content == ZERO and not found.length)
        reads.append({"group": group, "right": prefix_name(scope, prefix), "ok": ok,
                      "held": prefix_name(scope, prefix) if ok else _state_name(scope, content)})
    return {"who": NAMES[found.request], "glyphs": tiny_text.glyphs(prompt), "before": before, "ends": ends,
            "wrong": tiny_text.glyphs(tokens), "right": tiny_text.glyphs(right),
            "names": [token_name(name) for name in names], "reads": reads}


def _state_name(scope: Scope, content) -> str:
    if content is None or content == ZERO or content[0] == "rows":
        return "?" if content is None else "0"
    return f"K{content[0]} {prefix_name(scope, content[1])}"


def _captions(log: dict, differing: int, numbers: int) -> list:
    first = Text("The same for the trained model: each name stands for a piece of the text. {who} goes on after "
                 "{count} tokens, from {differing} wrong numbers out of {numbers}. What nobody wrote is zero here; an "
                 "engine would find what was there before.", who=log["who"], count=log["before"],
                 differing=number(differing),
                 numbers=number(numbers))
    if not differing:
        first = Text("The same for the trained model: each name stands for a piece of the text. {who} goes on after "
                     "{count} tokens, and all {numbers} numbers that it goes on from are right.", who=log["who"],
                     count=log["before"], numbers=number(numbers))
    if log["wrong"] != log["right"]:
        count = sum(a != b for a, b in zip(log["wrong"], log["right"]))
        second = Text("The reader gets {text} where {right} is right: {count} characters differ, and no error is "
                      "raised.", text=log["wrong"], right=log["right"], count=count)
    elif differing:
        second = Text("The reader gets {text}, by luck the right text: the states it comes from stay wrong.",
                      text=log["wrong"])
    else:
        second = Text("The reader gets {text}, which is right to the bit.", text=log["wrong"])
    return [first, second]
