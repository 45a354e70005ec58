"""ReplaySSM's ring for speculative decoding: records of the last commits instead of a state per position.

Sources: dao-lab.ai/blog/2026/replayssm, Johnny-Liou/ReplaySSM (config/vllm.py, config/cache.py), vllm #49887.
"""

import numpy as np

from ..kda import kda_trace
from .stores import StateStore, per_value_head, fold, new_records


class RingStore(StateStore):
    """Records k, u, g in a ring of fixed size; the state is written only when the ring is nearly full.

    buffer B >= window T. Live records never exceed the capacity L = B + T; the arrays have the next power of
    two slots, so that a slot is a masked index. Record i of the history since `checkpoint` is in slot (base +
    i) mod slots, for i < write_pos; the drafts of a window follow it. Rejected drafts are simply behind the
    cursor.

    A flush folds the history into the checkpoint, in the step whose window is the last to fit. The drafts of
    that step are in the ring by then, beside the history: so write_pos + T <= L must always hold, or they
    would write over it.
    """

    def __init__(self, state, conv, window, buffer=16):
        super().__init__(state, conv, window)
        if buffer < window:
            raise ValueError(f"buffer must be at least the window of {window} tokens, not {buffer}")
        self.capacity = buffer + window
        self.slots = 1 << (self.capacity - 1).bit_length()
        self.k, self.u, self.g = new_records(self.slots, state)
        self.base = self.write_pos = 0
        self.flushing = self.must_flush()

    def held(self):
        return {"k": self.k, "u": self.u, "g": self.g}

    @property
    def state(self):
        return self._after(self.write_pos)

    def must_flush(self):
        """Whether the next step has to flush: after it, another whole window would no longer fit."""
        return self.write_pos + 2 * self.window > self.capacity

    def slots_of(self, start, stop):
        """The slots of logical records start .. stop - 1."""
        return (self.base + np.arange(start, stop)) % self.slots

    def verify(self, tokens):
        slots = self.slots_of(self.write_pos, self.write_pos + len(tokens.v))
        self.k[slots], self.g[slots] = per_value_head(tokens.k, self.k), tokens.g
        o = np.empty_like(tokens.v)
        for t, (read, update, _) in enumerate(kda_trace(*tokens[:5], self.state)):
            o[t], self.u[slots[t]] = read, update
        return o

    def keep(self, accepted):
        if self.flushing:
            self.checkpoint[:] = self._after(self.write_pos)
            self.base = (self.base + self.write_pos) % self.slots
            self.write_pos = 0
        self.write_pos += accepted
        self.flushing = self.must_flush()

    def _after(self, n):
        slots = self.slots_of(0, n)
        return fold(self.checkpoint, self.k[slots], self.u[slots], self.g[slots])
