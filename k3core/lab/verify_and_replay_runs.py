"""The runs of `verify-and-replay`: interrupted and resumed, deviated and corrected, segments composed.

A run is a list of moments, one per tick of the scene's clock: what it had read, and what just happened.
"""

import numpy as np

from k3core.kda import compose_segments, kda_step, kda_update
from k3core.replayssm import Checkpoint, in_order, make_records, verify_and_replay

TOKENS = 48
DK, DV = 10, 14  # the state of the one head whose stream is drawn
DEVIATION = 0.1  # of the state's root mean square


def plan(p, rng, shape: tuple = (1, DK, DV)) -> dict:
    """What chance decides, once for all precisions: order of records and nodes, the deviation's noise.

    shape: of the state."""
    checkpoint = (p.cut - 1) // p.every * p.every  # the last one before the interruption
    numbers = list(range(checkpoint, p.cut))
    mixed = rng.permutation(len(numbers) * 2) % len(numbers)
    arrival = {"ordered": numbers, "reordered": [numbers[i] for i in dict.fromkeys(mixed.tolist())],
               "late": numbers[1:] + numbers[:1], "twice": [numbers[i] for i in mixed.tolist()]}[p.delivery]
    nodes = -(-TOKENS // p.piece)
    return {"checkpoint": checkpoint, "arrival": arrival, "order": rng.permutation(nodes).tolist(),
            "noise": rng.standard_normal(shape)}


def states_of(stream: tuple, start) -> list:
    """The state before the first token and after every one, a `kda_step` per token."""
    states = [start]
    for q, k, v, g, beta in zip(*stream):
        states.append(kda_step(q, k, v, g, beta, states[-1])[1])
    return states


def interrupted(p, stream: tuple, states: list, plan: dict) -> dict:
    """The state is lost after token `cut`; a checkpoint and the records since, as they arrive, restore it."""
    _, *inputs = stream
    records = make_records(*inputs)
    checkpoint = Checkpoint(plan["checkpoint"], states[plan["checkpoint"]])
    moments = [moment("read", t, states[t], states) for t in range(p.cut + 1)]
    moments.append(moment("lost", checkpoint.seq, checkpoint.state, states))
    arrange = replay_middle_twice if p.replay_twice else in_order
    arrived, largest = [], 0.0
    for seq in plan["arrival"]:
        arrived.append(records[seq])
        replay = verify_and_replay(checkpoint, arrived, arrange=arrange)
        read = checkpoint.seq + len(in_order(arrived, checkpoint.seq))
        here = {record.seq for record in arrived[:-1]}
        delivery = {"seq": seq, "again": seq in here, "arrived": sorted(here | {seq})}
        moments.append(moment("arrival", read, replay.state, states) | delivery)
        largest = max(largest, moments[-1]["off"])
    state = replay.state
    for t in range(p.cut, len(records)):
        state, _ = kda_update(*records[t][1:], state)
        moments.append(moment("resumed", t + 1, state, states))
        largest = max(largest, moments[-1]["off"])
    return {"moments": moments, "state": state, "largest": largest}


def replay_middle_twice(records: list, seq: int) -> list:
    """`in_order`, but the record in the middle comes two times: what a missing sequence number leads to."""
    ready = in_order(records, seq)
    middle = len(ready) // 2
    return ready[: middle + 1] + ready[middle:]


def deviated(p, stream: tuple, states: list, plan: dict) -> dict:
    """Noise is added to the state once; every `every` tokens a replay from the last checkpoint verifies it.

    The replay compares its own state with the one claimed. Where they differ by more than the tolerance, its
    state takes the place of the run's. Either way it is the next checkpoint.
    """
    _, *inputs = stream
    records = make_records(*inputs)
    state, good = states[0], Checkpoint(0, states[0])
    moments, detected_at = [moment("read", 0, state, states)], None
    for t, record in enumerate(records, start=1):
        state, _ = kda_update(*record[1:], state)
        if t == p.deviation_at:
            state = state + (DEVIATION * np.sqrt(np.mean(state * state)) * plan["noise"]).astype(state.dtype)
        moments.append(moment("hurt" if t == p.deviation_at else "read", t, state, states))
        if t % p.every and t < len(records):
            continue
        replay = verify_and_replay(good, records[good.seq : t], {t: state}, float(p.tolerance))
        if replay.detected_at is not None:
            state, detected_at = replay.state, replay.detected_at
            found = {"was_off": moments[-1]["off"], "from": good.seq}
            moments.append(moment("caught", t, state, states) | found)
        else:
            moments[-1] |= {"verified": True}
        good = Checkpoint(t, replay.state)
    return {"moments": moments, "state": state, "detected_at": detected_at}


def moment(kind: str, read: int, state, states: list) -> dict:
    """One tick of a run that has read `read` tokens, beside the straight run at the same token."""
    difference = np.abs(state - states[read])
    off = float(difference.max())
    return {"kind": kind, "read": read, "off": off, "state": state, "difference": difference}


def compose_tree(segments: dict, order: list) -> dict:
    """Compose segments in pairs, each pair as soon as both are there: {"root": (M, S_local), "events": ...}.

    segments: {node: (M, S_local)}; order: nodes as they finish. What covers nodes a .. b - 1 is span (a, b);
    an event is ("node", span) or ("join", span).
    """
    ready, events = {}, []
    for node in order:
        span = (node, node + 1)
        ready[span] = segments[node]
        events.append(("node", span))
        while parent := parent_of(span, len(segments)):
            left, right = halves(parent)
            if left not in ready or right not in ready:
                break
            ready[parent] = compose_segments(ready[left], ready[right])
            events.append(("join", parent))
            span = parent
    return {"root": ready[0, len(segments)], "events": events, "parts": ready}


def halves(span: tuple) -> tuple:
    """The two spans that a span of nodes is composed from; the left one is the larger power of two."""
    begin, end = span
    middle = begin + (1 << (end - begin - 1).bit_length() - 1)
    return (begin, middle), (middle, end)


def parent_of(span: tuple, nodes: int) -> tuple | None:
    """The span that `span` is a half of, in the tree over all nodes; None for the whole."""
    at = (0, nodes)
    while at != span:
        left, right = halves(at)
        inside = left if span[1] <= left[1] else right
        if inside == span:
            return at
        at = inside
    return None
