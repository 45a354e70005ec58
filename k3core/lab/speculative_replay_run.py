"""What the tab `speculative-replay` computes: plain decoding, then verify rounds with four stores at once."""

from functools import cache

import numpy as np

from k3core.decode import HybridDecoder, Speculation
from k3core.lab import tiny_text
from k3core.lab.contract import Progress
from k3core.lab.params import ParamError, shown
from k3core.lab.text import Text
from k3core.replayssm import CorrectedStore, ProjectionStore, RingStore, SnapshotStore
from k3core.replayssm.stores import StateStore

ALPHABET = "abcdefghijklmnopqrstuvwxyz ,.'-?"  # one token per character
# dk = dv -> seed of the weights, picked so that the default prompt's text varies and no choice is nearly tied
WEIGHT_SEEDS = {16: 4, 32: 48, 64: 39, 128: 18}
RING_BUFFER = 8
LONGEST_RANDOM = 32  # characters of a prompt that the random weights read


class SmallRing(RingStore):
    """The ring with a buffer so short that it flushes within a few rounds."""

    def __init__(self, state, conv, window):
        super().__init__(state, conv, window, buffer=RING_BUFFER)


STORES = {"snapshots": SnapshotStore, "projections": ProjectionStore, "corrected": CorrectedStore,
          "ring": SmallRing}


class ForgetsConv:
    """Mistake: the recurrent state is rolled back, but nobody moves the convolution's window on."""

    def shift_conv(self, accepted):
        pass


class KeepsColumnZero:
    """Mistake: the next round starts from the state after the window's first token, whatever was accepted."""

    def keep(self, accepted):
        super().keep(1)


class AdvancesByDrafted(Speculation):
    """Mistake: the memories advance by what was drafted, the text by what was accepted."""

    def count_to_keep(self, round):
        return 1 + len(round.drafted)


MISTAKES = {"conv": (ForgetsConv,), "column": (KeepsColumnZero,)}  # mixed into every store


class SideBySide:
    """The four stores behind one KDA layer, all fed with the same tokens; the decoder hears `answering`."""

    def __init__(self, state, conv, window, answering, fault):
        mixed = MISTAKES.get(fault, ())
        self.stores = {name: type(name, (*mixed, store), {})(state, conv, window)
                       for name, store in STORES.items()}
        self.answering = answering

    @property
    def conv(self):
        return self.stores[self.answering].conv

    @property
    def state(self):
        """A copy: snapshots write theirs in place."""
        return self.stores[self.answering].state.copy()

    def advance(self, tokens):
        return {name: store.advance(tokens) for name, store in self.stores.items()}[self.answering]

    def commit(self, accepted):
        for store in self.stores.values():
            store.commit(accepted)


@cache
def model(size: int) -> HybridDecoder:
    """The decoder of this page, K3-shaped: 3 KDA layers and 1 MLA layer, one head, float32, exact mode."""
    rng = np.random.default_rng(WEIGHT_SEEDS[size])
    return HybridDecoder.random_k3(rng, hidden=32, heads=1, key_dim=size, value_dim=size, vocab=len(ALPHABET),
                                   dtype=np.float32)


def encode(prompt: str) -> list:
    """A prompt as token ids for the random weights. Raises ParamError."""
    if not 1 <= len(prompt) <= LONGEST_RANDOM:
        raise ParamError("prompt", Text("prompt has {count} characters; with random weights it takes 1 to {most}",
                                        count=len(prompt), most=LONGEST_RANDOM))
    for character in prompt:
        if character not in ALPHABET:
            raise ParamError("prompt", Text(
                "prompt holds {character}; the model knows only {alphabet} and the space",
                character=shown(character), alphabet=ALPHABET.replace(" ", "")))
    return [ALPHABET.index(character) for character in prompt]


def plain_once(p, seed: int):
    """Plain decoding of the prompt, remembered: a generator of Progress -> tiny_text.Plain."""
    if p.source == "text":
        return (yield from tiny_text.plain_once(p.prompt, p.tokens, p.choosing, seed))
    ids = encode(p.prompt)

    def start():
        return tiny_text.Continuation(model(p.head), ids, at_once=LONGEST_RANDOM)

    return (yield from tiny_text.once((p.head, p.prompt), start, p.tokens))


def decoder_of(p) -> HybridDecoder:
    """The random weights of the chosen size, or the trained model."""
    return tiny_text.model() if p.source == "text" else model(p.head)


def speculate(speculation: Speculation, plain: tiny_text.Plain, layer: int, aloud: bool):
    """Decode as many tokens in verify rounds, a generator of Progress -> (rounds, their log, deviations, states).

    deviations: for each store, the largest difference of its first layer's state from plain decoding after any
    round. states: the decoder's state of KDA layer `layer` after the prompt and after every round. aloud: reports
    say the text so far, which is then ASCII."""
    first, shown = speculation.stores[0].stores, speculation.stores[layer]
    ring, rounds, log, n = first["ring"], [], [], len(plain.tokens)
    deviations, states = dict.fromkeys(first, 0.0), [shown.state]
    while len(speculation.tokens) < n:
        read, before, flushing = len(speculation.tokens) - 1, (ring.base, ring.write_pos), ring.flushing
        round = speculation.verify(n - len(speculation.tokens) - 1)
        slots = ring.slots_of(ring.write_pos, ring.write_pos + 1 + len(round.drafted)).tolist()
        speculation.commit(round)
        rounds.append(round)
        log.append({
            "read": read, "window": [round.pending, *round.drafted], "choices": list(round.tokens),
            "accepted": round.accepted, "told": speculation.count_to_keep(round), "slots": slots,
            "before": before, "after": (ring.base, ring.write_pos), "flushed": flushing,
        })
        for name, store in first.items():
            off = float(np.max(np.abs(store.state - plain.states[len(speculation.tokens) - 1][0])))
            deviations[name] = max(deviations[name], off)
        states.append(shown.state)
        text = tiny_text.text_of([*plain.ids, *speculation.tokens]) if aloud else None
        yield Progress(n + len(speculation.tokens), 2 * n, text)
    return rounds, log, deviations, states


def held_bytes(store: StateStore) -> int:
    """Bytes that one layer's store keeps for taking drafts back: its arrays, and beside records the window's
    convolution inputs. Snapshots need those inputs too; they are charged to the records alone, whose claim to
    be small is the one at stake."""
    arrays = sum(array.nbytes for array in store.held().values())
    return arrays if "states" in store.held() else arrays + store.conv_rows[len(store.conv):].nbytes
