"""What can stand behind a KDA layer while drafts are verified, so that rejected tokens can be taken back.

One interface, four designs. `advance` runs a window of tokens (one committed token and the drafts after it)
from the committed state; `commit(accepted)` keeps the first `accepted` of them and forgets the rest.

    store           keeps per window token      commit                           committed state
    SnapshotStore   the state after it          picks one                        bit-equal to plain decoding
    ProjectionStore k, v, g, beta               replays them one by one          bit-equal to plain decoding
    CorrectedStore  k, u, g                     one weighted sum (parallel)      equal within rounding
    RingStore       k, u, g, of past windows    moves a cursor                   equal within rounding

All keep the convolution inputs of the window (3 d per head) beside it. Sources: vllm #49887 and #51855,
sglang #28695, Kimi K3 report (arXiv 2607.24653) section 5.4.2.
"""

import numpy as np

from ..kda import kda_trace, kda_update


class StateStore:
    """Base of the stores: the window, the convolution inputs, and the order advance, commit, advance, commit.

    state [HV, dk, dv] and conv [kernel - 1, D] are what the layer has read so far; window is the largest
    number of tokens that `advance` takes at once, drafts + 1. A store has the place of a KDAMemory in the
    decoder's state.
    """

    def __init__(self, state, conv, window):
        if window < 1:
            raise ValueError(f"window must be at least 1 token, not {window}")
        self.window = window
        self.checkpoint = state.copy()
        self.conv_rows = np.zeros((len(conv) + window, conv.shape[1]), conv.dtype)
        self.conv_rows[: len(conv)] = conv
        self.pending = 0  # tokens verified and not yet committed

    @property
    def conv(self):
        """The convolution window [kernel - 1, D] before the next token."""
        return self.conv_rows[: len(self.conv_rows) - self.window]

    @property
    def state(self):
        """The committed state [HV, dk, dv]."""
        return self.checkpoint

    def held(self):
        """The arrays kept for rolling back, by name, without the checkpoint and the convolution rows."""
        raise NotImplementedError

    def advance(self, tokens):
        """Run up to `window` tokens (KDATokens) from the committed state -> o [T, HV, dv]."""
        T = len(tokens.v)
        if self.pending:
            raise ValueError(f"commit the last window of {self.pending} tokens before the next one")
        if not 1 <= T <= self.window:
            raise ValueError(f"a window takes 1 to {self.window} tokens, not {T}")
        before = len(self.conv)
        self.conv_rows[before : before + T] = tokens.conv_inputs
        self.pending = T
        return self.verify(tokens)

    def commit(self, accepted):
        """Keep the first `accepted` pending tokens, at least 1: the one before the drafts is always right."""
        if not 1 <= accepted <= self.pending:
            raise ValueError(f"accepted must be 1 to {self.pending}, not {accepted}")
        self.keep(accepted)
        self.shift_conv(accepted)
        self.pending = 0

    def verify(self, tokens):
        """Compute the window and note what `keep` will need -> o [T, HV, dv]."""
        raise NotImplementedError

    def keep(self, accepted):
        """Bring the state to what it is after the first `accepted` tokens of the window."""
        raise NotImplementedError

    def shift_conv(self, accepted):
        """Move the convolution window on by the accepted tokens."""
        before = len(self.conv)
        self.conv_rows[:before] = self.conv_rows[accepted : accepted + before].copy()


class SnapshotStore(StateStore):
    """One full state per window position; commit picks one (vLLM's and SGLang's native way)."""

    def __init__(self, state, conv, window):
        super().__init__(state, conv, window)
        self.states = np.zeros((window, *state.shape), state.dtype)

    def held(self):
        return {"states": self.states}

    def verify(self, tokens):
        o = np.empty_like(tokens.v)
        for t, (read, _, state) in enumerate(kda_trace(*tokens[:5], self.checkpoint)):
            o[t], self.states[t] = read, state
        return o

    def keep(self, accepted):
        self.checkpoint[:] = self.states[accepted - 1]


class ProjectionStore(StateStore):
    """The inputs of the recurrence; commit replays the accepted ones with the bits of plain decoding."""

    def __init__(self, state, conv, window):
        super().__init__(state, conv, window)
        HV, dk, dv = state.shape
        self.k, self.g = np.zeros((2, window, HV, dk), state.dtype)
        self.v, self.beta = np.zeros((window, HV, dv), state.dtype), np.zeros((window, HV), state.dtype)

    def held(self):
        return {"k": self.k, "v": self.v, "g": self.g, "beta": self.beta}

    def verify(self, tokens):
        T = len(tokens.v)
        self.k[:T] = per_value_head(tokens.k, self.k)
        self.v[:T], self.g[:T], self.beta[:T] = tokens.v, tokens.g, tokens.beta
        return np.stack([o for o, _, _ in kda_trace(*tokens[:5], self.checkpoint)])

    def keep(self, accepted):
        state = self.checkpoint
        for t in self.replayed(accepted):
            state, _ = kda_update(self.k[t], self.v[t], self.g[t], self.beta[t], state)
        self.checkpoint[:] = state

    def replayed(self, accepted):
        """The window positions to replay, in order."""
        return range(accepted)


class CorrectedStore(StateStore):
    """Keys, gates and the corrected values u = beta (v - S^T k); commit adds the accepted ones up at once.

    u already contains the state it met, so no record depends on another (vLLM's RecoverSSM, vllm #51855).
    """

    def __init__(self, state, conv, window):
        super().__init__(state, conv, window)
        self.k, self.u, self.g = new_records(window, state)

    def held(self):
        return {"k": self.k, "u": self.u, "g": self.g}

    def verify(self, tokens):
        T = len(tokens.v)
        self.k[:T], self.g[:T] = per_value_head(tokens.k, self.k), tokens.g
        o = np.empty_like(tokens.v)
        for t, (read, update, _) in enumerate(kda_trace(*tokens[:5], self.checkpoint)):
            o[t], self.u[t] = read, update
        return o

    def keep(self, accepted):
        self.checkpoint[:] = fold(self.checkpoint, self.k[:accepted], self.u[:accepted], self.g[:accepted])


def new_records(n, state):
    """Room for n records of a state [HV, dk, dv]: k [n, HV, dk], u [n, HV, dv], g [n, HV, dk]."""
    HV, dk, dv = state.shape
    return tuple(np.zeros((n, HV, d), state.dtype) for d in (dk, dv, dk))


def fold(state, k, u, g):
    """The state after n records at once: exp(G_n) S + sum_j exp(G_n - G_j) k_j u_j^T, G the running sum of g.

    state [HV, dk, dv], k [n, HV, dk], u [n, HV, dv], g [n, HV, dk] -> a new state. Bit-equal to n single
    updates for n <= 1, else equal within rounding. Source: ATOM #1883.
    """
    if not len(k):
        return state.copy()
    rest = np.cumsum(g[::-1], axis=0)[::-1]
    after = np.concatenate([rest[1:], np.zeros_like(g[:1])])
    return state * np.exp(rest[0])[:, :, None] + np.einsum("nhk,nhv->hkv", k * np.exp(after), u)


def per_value_head(k, like):
    """Keys [T, H, dk] repeated to the value heads of `like` [n, HV, dk]."""
    return np.repeat(k, like.shape[1] // k.shape[1], axis=1)
