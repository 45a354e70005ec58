"""Requests of real text, served one after another by the trained model on pages with a prefix cache."""

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace

import numpy as np

from k3core.decode import DecoderState, Greedy, encode
from k3core.lab import tiny_text
from k3core.lab.contract import Check, Progress
from k3core.lab.display import number
from k3core.lab.params import Param, ParamError
from k3core.lab.prefix_requests import Served, Server
from k3core.lab.text import Text
from k3core.paged_cache.pages import RowPage, StatePage
from k3core.prefix_cache import Extra, Policy, PrefixCache
from k3core.prefix_cache.serving import CachedDecoder

BLOCKS = 64  # more than any run here takes, so that nothing is evicted unasked
OTHER = "0x1F, "  # shorter than a hash block, so that it leaves nothing behind but what it overwrote
MOST_REMEMBERED = 24
_REMEMBERED = {}

COUNTED, TEXT = ("source", ("counted",)), ("source", ("text",))
SOURCE = tiny_text.source_param(("counted", Text("counting")))
CHOOSING = replace(tiny_text.CHOOSING, when=TEXT)
ANSWER = Param("answer", Text("Characters per answer"), "int", 16, 4, 32, 1, when=TEXT)
BLOCK = Param("block", Text("Hash block, in characters"), "int", 16, 8, 32, 4, when=TEXT)


def text_param(name: str, label: Text, default: str, most: int = 120, words: Text | None = None) -> Param:
    """A text for the trained model."""
    return Param(name, label, "text", default, max_length=most, multiline=True, help=words, when=TEXT)


def pages(config) -> tuple:
    """(bytes of a KDA layer's state, bytes of an MLA layer's row) of a decoder in float32."""
    state = StatePage(config.kda_heads, config.kda_key_dim, config.kda_value_dim, config.conv_kernel - 1, "float32")
    return state.nbytes, RowPage(1, config.kv_lora_rank + config.qk_rope_head_dim, "float32").nbytes


def sized(p: SimpleNamespace, page_blocks: int) -> SimpleNamespace:
    """Parameters with the text's hash block in place of that of counted tokens. Raises ParamError, Needs."""
    state, row = pages(tiny_text.model().config)
    least = -(-state // row)
    if p.block * page_blocks < least:
        raise ParamError("page", Text("page is {page} hash blocks of {block} characters; the trained model's KDA state "
                                      "takes as much as {rows} rows, so take {least} hash blocks or more",
                                      page=page_blocks, block=p.block, rows=least, least=-(-least // p.block)))
    return SimpleNamespace(**vars(p) | {"hash_block": p.block})


def go_on(read: Callable, state: DecoderState, known: list, total: int,
          sampler: Greedy) -> Generator[Progress, None, float]:
    """Read the token ids `known` from where `state` is, and choose more until there are `total`; they join `known`.

    read: token ids -> logits [T, vocab]; `state` takes them in. Yields Progress with the text so far; returns the
    smallest margin of a choice.
    """
    margins = []
    while len(known) < total:
        logits = read(known[state.length : state.length + tiny_text.READ_AT_ONCE])[-1]
        if state.length == len(known):
            token, margin = sampler.choose_with_margin(logits, state.length)
            known.append(token)
            margins.append(margin)
        yield Progress(state.length, total, tiny_text.text_of(known[: state.length + 1]))
    return min(margins)


@dataclass(frozen=True)
class Uncached:
    """Decoding without a cache: the new tokens, the state that has `read` all but the last, their smallest margin."""

    read: list
    tokens: list
    state: DecoderState
    margin: float


def uncached(ids: list, count: int, choosing: str, seed: int) -> Generator[Progress, None, Uncached]:
    """Decode `count` tokens behind ids without a cache. Yields Progress with the text so far.

    Remembered. What begins with all that an earlier run read goes on from its state: an uninterrupted run.
    """
    how = choosing, seed if choosing == "sampled" else 0
    key = how, count, tuple(ids)
    if key not in _REMEMBERED:
        if len(_REMEMBERED) == MOST_REMEMBERED:
            _REMEMBERED.pop(next(iter(_REMEMBERED)))
        earlier = [run for (its, *_), run in _REMEMBERED.items()
                   if its == how and len(run.read) < len(ids) and run.read == ids[: len(run.read)]]
        before = max(earlier, key=lambda run: len(run.read), default=None)
        model, known = tiny_text.model(), list(ids)
        state = before.state.copy() if before else model.new_state()
        margin = yield from go_on(partial(model.forward, state=state), state, known, len(ids) + count,
                                  tiny_text.sampler(choosing, seed))
        _REMEMBERED[key] = Uncached(known[:-1], known[len(ids) :], state, margin)
    return _REMEMBERED[key]


@dataclass(frozen=True)
class Answered(Served):
    """A request and its answer. Its prompt is the first `tokens` of ids; the answer's last token was not read.

    right: the answer without a cache, its tokens leading by `margin` or more. differing: how many of the `numbers` in
    all states and rows are not, to the bit, those of a run without a cache.
    """

    ids: list
    right: list
    margin: float
    differing: int
    numbers: int

    @property
    def answer(self) -> list:
        return self.ids[self.tokens :]

    @property
    def same(self) -> bool:
        """Whether text, states and rows are those of a run without a cache."""
        return self.answer == self.right and not self.differing


class TextServer(Server):
    """The trained model on a page pool, and its only request at a time. Sizes as for Server."""

    def _cache(self, policy: Policy, grain: int, options: dict) -> PrefixCache:
        self.decoder = CachedDecoder(tiny_text.model(), BLOCKS, self.page, self.hash_block, policy, grain,
                                     decode=policy.kind == "dense", **options)
        return self.decoder.cache

    def answer(self, ids: list, p, seed: int, extra: Extra | None = None) -> Generator[Progress, None, Answered]:
        """Serve a request and compare it with a run without a cache. Yields Progress with the text so far.

        p has the values of ANSWER and CHOOSING."""
        reference = yield from uncached(ids, p.answer, p.choosing, seed)
        decoder, name, extra = self.decoder, self.requests, extra or Extra()
        self.requests += 1
        self.asked.clear()
        self.cache.checkpoints.added.clear()
        hit = decoder.start(name, ids, extra)
        asked, wrong = self._stages(len(ids)), self._wrong(hit, ids, extra)
        known, state = list(ids), decoder.states[name]
        yield from go_on(partial(decoder.forward, name), state, known, len(ids) + p.answer,
                         tiny_text.sampler(p.choosing, seed))
        pairs = list(zip(state.arrays(), reference.state.arrays(), strict=True))
        saves = self._note(name, None if wrong else (extra, known), state.length, len(hit.pages))
        decoder.release(name)
        return Answered(len(ids), hit, asked, saves, wrong, known, reference.tokens, reference.margin,
                        sum(int(np.count_nonzero(a != b)) for a, b in pairs), sum(a.size for a, _ in pairs))

    def evict_checkpoint(self, tokens: list, groups: tuple, extra: Extra | None = None) -> int:
        """As for Server; another request then takes the blocks that this frees."""
        lost = super().evict_checkpoint(tokens, groups, extra)
        if lost:
            self.decoder.start("other", encode(OTHER))
            self.decoder.forward("other", encode(OTHER))
            self.decoder.release("other")
        return lost

    def _note(self, name: int, content: tuple | None, length: int, shared: int) -> tuple:
        """Write down what the request leaves in pages of its own and in checkpoints -> where these lie."""
        for index, block in enumerate(self.decoder.tables.tables[name][0][shared:], shared):
            self.holds[block] = content and (*content, min(length, (index + 1) * self.page))
        added = self.cache.checkpoints.added
        for entry in added:
            self.holds |= {block: content and (*content, entry.link.end) for block in entry.blocks}
        return tuple(entry.link.end for entry in added)


def check(served: list) -> Check:
    """That the cache changed nothing: in place of the check of contents for counted tokens."""
    differing, numbers = sum(turn.differing for turn in served), sum(turn.numbers for turn in served)
    lead = number(min(turn.margin for turn in served), 2)
    return Check("content", Text("text, states and rows are, to the bit, those of a run without a cache"),
                 all(turn.same for turn in served),
                 Text("{differing} of {numbers} numbers differ; tokens were chosen with a lead of {lead} or more",
                      differing=number(differing), numbers=number(numbers), lead=lead),
                 Text("no difference"))
