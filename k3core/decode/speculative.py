"""Speculative decoding: drafts are read in one window, the wrong ones are taken back.

The text is the same as without drafts, whatever they are: a draft is kept only where it is the token that
plain decoding would have chosen, greedily or with the noise of that position. Source of the round: Leviathan, Kalman,
Matias 2022 (arXiv 2211.17192), section 2; as the noise is fixed, equality takes the place of its random test.
"""

from dataclasses import dataclass

from .decoder import KDAMemory
from .sampling import Greedy


@dataclass(frozen=True)
class Round:
    """One verify round. The window read was `pending` and then `drafted`."""

    position: int  # tokens read before the window
    pending: int  # the last token chosen, not read before
    drafted: tuple[int, ...]
    chosen: tuple[int, ...]  # after each token of the window; behind a rejected draft they mean nothing
    accepted: int  # drafts that were right, before the first wrong one
    margin: float  # smallest lead of a kept choice over the second-best score

    @property
    def rejected(self):
        """The drafts taken back: the first wrong one and all behind it."""
        return self.drafted[self.accepted :]

    @property
    def bonus(self):
        """The token gained beyond the accepted drafts: the choice after the last right one."""
        return self.chosen[self.accepted]

    @property
    def tokens(self):
        """The new tokens of this round: accepted drafts and bonus."""
        return self.chosen[: self.accepted + 1]


class Speculation:
    """Speculative decoding of one prompt, a round at a time.

        s = Speculation(decoder, prompt, draft, SnapshotStore, num_drafts=3)
        while len(s.tokens) < n:
            r = s.verify(n - len(s.tokens) - 1)     # reads the window; s.stores hold it
            s.commit(r)                             # rolls back to what was accepted

    draft.propose(ids, n) returns up to n guesses at what follows ids. make_store(state, conv, window) makes
    the store that stands in for each KDA layer's memory (see k3core.replayssm). sampler chooses the tokens.
    prefill: what decoder.prefill(ids) gave, where the prompt has been read before; its state is taken over.
    Raises ValueError where num_drafts is negative.
    """

    def __init__(self, decoder, ids, draft, make_store, num_drafts, sampler=Greedy(), prefill=None):
        if num_drafts < 0:
            raise ValueError(f"num_drafts must not be negative, but is {num_drafts}")
        self.decoder, self.draft, self.num_drafts, self.sampler = decoder, draft, num_drafts, sampler
        logits, self.state = prefill or decoder.prefill(ids)
        self.prompt = [int(i) for i in ids]
        self.tokens = [sampler.choose(logits[-1], self.state.length)]  # new; the last has not been read yet
        self.state.memories = [
            make_store(m.state, m.conv, num_drafts + 1) if isinstance(m, KDAMemory) else m
            for m in self.state.memories
        ]

    @property
    def stores(self):
        """The stores of the KDA layers, from the input up."""
        return [m for m, kind in zip(self.state.memories, self.decoder.config.layers) if kind == "kda"]

    @property
    def caches(self):
        """The latent caches of the MLA layers, from the input up."""
        return [m for m, kind in zip(self.state.memories, self.decoder.config.layers) if kind == "mla"]

    def verify(self, limit=None):
        """Draft (at most `limit` tokens) and read the window -> Round. Nothing is taken back yet."""
        n = self.num_drafts if limit is None else min(limit, self.num_drafts)
        drafted = [int(i) for i in self.draft.propose(self.prompt + self.tokens, n)][:n] if n > 0 else []
        position, pending = self.state.length, self.tokens[-1]
        logits = self.decoder.forward([pending, *drafted], self.state)
        choices = [self.sampler.choose_with_margin(row, position + 1 + i) for i, row in enumerate(logits)]
        chosen, margins = zip(*choices)
        accepted = 0
        while accepted < len(drafted) and drafted[accepted] == chosen[accepted]:
            accepted += 1
        return Round(position, pending, tuple(drafted), chosen, accepted, min(margins[: accepted + 1]))

    def commit(self, round):
        """Take back what the round rejected, in every layer, and add its tokens."""
        kept = self.count_to_keep(round)
        for store in self.stores:
            store.commit(kept)
        for cache in self.caches:
            cache.truncate(round.position + kept)
        self.state.length = round.position + kept
        self.tokens += round.tokens

    def count_to_keep(self, round):
        """How many tokens of the window stay read: the pending one and the accepted drafts."""
        return 1 + round.accepted

    def run(self, n):
        """Decode until there are n new tokens -> the rounds it took."""
        rounds = []
        while len(self.tokens) < n:
            rounds.append(self.verify(n - len(self.tokens) - 1))
            self.commit(rounds[-1])
        return rounds


def acceptance_by_position(rounds):
    """How often the first, second, ... draft of a round was right: list of (accepted, drafted) counts.

    A draft counts as accepted where it and all before it in its round were; rounds that drafted fewer tokens
    do not count at the later positions. Mean tokens per round: sum(len(r.tokens)) / len(rounds).
    """
    longest = max((len(r.drafted) for r in rounds), default=0)
    return [
        (sum(r.accepted > i for r in rounds), sum(len(r.drafted) > i for r in rounds)) for i in range(longest)
    ]


class PromptLookup:
    """Drafts what followed the last few tokens when they last occurred, trying longer matches first.

    longest: tokens of the longest match tried. Source: apoorvumang/prompt-lookup-decoding, which takes the first
    occurrence; the latest one is nearer to what is being written.
    """

    def __init__(self, longest=3):
        if longest < 1:
            raise ValueError(f"longest must be at least 1 token, not {longest}")
        self.longest = longest

    def propose(self, ids, n):
        """Up to n guesses at what follows ids (a list of token ids)."""
        ids = list(ids)
        for size in range(min(self.longest, len(ids) - 1), 0, -1):
            for start in range(len(ids) - size - 1, -1, -1):
                if ids[start : start + size] == ids[-size:]:
                    return ids[start + size : start + size + n]
        return []


class NoisyOracle:
    """Drafts the true continuation, each token right with a chosen probability: acceptance at will.

    truth is prompt and continuation as plain decoding gives them; behind its end nothing is drafted. rng is a
    numpy.random.Generator.
    """

    def __init__(self, truth, acceptance, vocab_size, rng):
        if not 0 <= acceptance <= 1:
            raise ValueError(f"acceptance must be 0 to 1, not {acceptance}")
        self.truth = [int(i) for i in truth]
        self.acceptance, self.vocab_size, self.rng = acceptance, vocab_size, rng

    def propose(self, ids, n):
        """Up to n guesses at what follows ids; ids must be a prefix of the truth for them to be right."""
        drafts = []
        for right in self.truth[len(ids) : len(ids) + n]:
            wrong = (right + 1 + int(self.rng.integers(self.vocab_size - 1))) % self.vocab_size
            drafts.append(right if self.rng.random() < self.acceptance else wrong)
        return drafts
