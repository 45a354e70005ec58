"""The hybrid decoder on a prefix cache: requests resume from what others computed, with the same bits."""

from collections.abc import Hashable, Sequence

import numpy as np

from ..decode import DecoderState, Greedy, HybridDecoder
from ..paged_cache.decoding import PagedDecoder
from .cache import Copy, Hit, PrefixCache
from .hashing import Extra
from .policy import Policy


class CachedDecoder(PagedDecoder):
    """Requests of one decoder over one pool, with a prefix cache; `options` go to PrefixCache.

    In exact mode a request that resumes from a hit has the logits and states, to the bit, of one that read
    every token: both do the same operations per token, wherever a step was cut.
    """

    def __init__(self, decoder: HybridDecoder, num_blocks: int, block_size: int, hash_block: int,
                 policy: Policy, grain: int | None = None, **options):
        super().__init__(decoder, num_blocks, block_size)
        if self.mla_groups != 1:
            raise ValueError(f"the decoder's MLA layers make {self.mla_groups} groups; a prefix cache has "
                             "one of rows")
        self.cache = PrefixCache(self.tables, block_size, hash_block, policy, grain, **options)

    def start(self, request: Hashable, ids: Sequence[int], extra: Extra | None = None) -> Hit:
        """Begin a request with a prompt; tokens behind the hit are still to be read. Raises PoolExhausted."""
        hit, copies = self.cache.start(request, self.decoder.check_ids(ids), extra)
        self._copy(copies)
        self.cache.landed(request)
        self.states[request] = DecoderState(hit.tokens, self._memories(request, hit.tokens))
        return hit

    def forward(self, request: Hashable, ids: Sequence[int]) -> np.ndarray:
        """Read more tokens of a request, in as many steps as checkpoints need -> logits [T, vocab].

        When the pool is exhausted midway PoolExhausted is raised; `states[request].length` says how far it
        came.
        """
        ids = self.decoder.check_ids(ids)
        logits = []
        while len(ids):
            step = self.cache.plan(request, len(ids))
            part, ids = ids[: step.end - step.start], ids[step.end - step.start :]
            logits.append(self.decoder.forward(part, self.states[request]))
            self._copy(step.saves)
            self.cache.commit(request, part.tolist())
        return np.concatenate(logits)

    def generate(self, request: Hashable, ids: Sequence[int], count: int,
                 extra: Extra | None = None, sampler: Greedy = Greedy()) -> list[int]:
        """Serve a request from its start to its end -> its answer of `count` tokens, greedy by default."""
        hit = self.start(request, ids, extra)
        answer: list[int] = []
        try:
            logits = self.forward(request, ids[hit.tokens :])
            for _ in range(count):
                if answer:
                    logits = self.forward(request, answer[-1:])
                answer.append(sampler.choose(logits[-1], self.states[request].length))
        finally:
            self.release(request)
        return answer

    def fork(self, request: Hashable, new_request: Hashable) -> None:
        """Continue a request in two ways."""
        self._copy(self.cache.fork(request, new_request))
        self.cache.landed(new_request)
        length = self.states[request].length
        self.states[new_request] = DecoderState(length, self._memories(new_request, length))

    def release(self, request: Hashable) -> None:
        """End, abort or preempt a request; what it published stays in the cache."""
        self.cache.release(request)
        del self.states[request]

    def _copy(self, copies: Sequence[Copy]) -> None:
        for copy in copies:
            self.storage.copy_block(copy.source, copy.target)
