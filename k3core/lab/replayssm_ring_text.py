"""The verify steps of `replayssm-ring` on real text: the trained model decodes it with look-up drafts."""

from collections import Counter
from fractions import Fraction

from k3core.decode import PromptLookup, Speculation
from k3core.kda import KDATokens
from k3core.lab import tiny_text
from k3core.lab.contract import Progress
from k3core.lab.text import Text
from k3core.replayssm import ProjectionStore

NEW = 40  # tokens that are written
HEAD = tiny_text.head_param(Text("Head whose state is drawn"))


class Watched(ProjectionStore):
    """A layer's store that keeps every window it was given."""

    def __init__(self, state, conv, window):
        super().__init__(state, conv, window)
        self.windows = []

    def verify(self, tokens):
        self.windows.append(tokens)
        return super().verify(tokens)


def read_steps(p, seed: int, conv: int):
    """Decode NEW tokens in windows of `p.window`: a generator of Progress -> (state [1, dk, dv] behind the prompt,
    plain decoding's at the end, steps, new tokens, the smallest margin of a choice).

    A step is (KDATokens of one head for the window read, how many of them stay, their glyphs); conv: channels of the
    convolution inputs to keep. All tokens but the last have been read in the end."""
    plain = yield from tiny_text.plain_once(p.prompt, NEW, p.choosing, seed)
    layer, head = tiny_text.head_of(p.head)
    sampler = tiny_text.sampler(p.choosing, seed)
    run = Speculation(tiny_text.model(), plain.ids, PromptLookup(), Watched, p.window - 1, sampler, plain.prefill)
    rounds = []
    while len(run.tokens) < NEW:
        rounds.append(run.verify(NEW - len(run.tokens) - 1))
        run.commit(rounds[-1])
        yield Progress(NEW + len(run.tokens), 2 * NEW, plain.text)
    steps = []
    for round, window in zip(rounds, run.stores[layer].windows):
        tokens = KDATokens(*(x[:, head : head + 1] for x in window[:5]), window.conv_inputs[:, :conv])
        steps.append((tokens, 1 + round.accepted, tiny_text.glyphs([round.pending, *round.drafted])))
    before, behind = (plain.states[i][layer][head : head + 1] for i in (0, -1))
    return before, behind, steps, run.tokens, min(plain.margin, *(round.margin for round in rounds))


def law_of(steps: list) -> dict:
    """How often a step kept 1, 2, ... tokens: count -> exact share."""
    counts = Counter(kept for _, kept, _ in steps)
    return {kept: Fraction(counts[kept], len(steps)) for kept in sorted(counts)}
