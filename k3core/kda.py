"""Kimi Delta Attention: gates, short convolution, and the recurrence as step, loop, chunks and segments.

Shapes: T tokens, H query/key heads, HV value heads (a multiple of H; query and key heads are repeated, each
HV / H times in a row), dk and dv the head sizes. Per value head the state S is [dk, dv], and one token does

    S <- Diag(exp(g)) S            decay first
    u  = beta (v - S^T k)          then the delta rule on the decayed state
    S <- S + k u^T
    o  = S^T (scale q)             read after the update

Sources: Kimi Linear (arXiv 2510.26692), Kimi K3 report (arXiv 2607.24653) section 2.1.1, fla-org/
flash-linear-attention fla/ops/kda/naive.py. `kda_recurrent` is the specification; every other form must equal
it.
"""

from typing import NamedTuple

import numpy as np

from .ops import sigmoid, silu

TILE = 16  # tokens whose pairwise decays the chunk form factors into one matrix product
GROUP = 8  # chunks worked on at once: enough to vectorise, few enough to stay in the processor's cache
MAX_FACTORED_DECAY = 80.0  # exp(80) = 5.5e34 still fits float32: 16 tokens at K3's lower bound of -5


class KDATokens(NamedTuple):
    """T tokens as the recurrence of one layer reads them; q and k are l2-normalised."""

    q: np.ndarray  # [T, H, dk]
    k: np.ndarray  # [T, H, dk]
    v: np.ndarray  # [T, HV, dv]
    g: np.ndarray  # [T, HV, dk], log decay
    beta: np.ndarray  # [T, HV]
    conv_inputs: np.ndarray  # [T, D], q, k and v before the short convolution


# --- what happens before the recurrence ---


def gate_lower_bound(z, A_log, lower_bound=-5.0):
    """Log decay of Kimi K3: lower_bound * sigmoid(exp(A_log) * z), inside (lower_bound, 0).

    z [..., HV, dk] is the projection with its bias added, A_log [HV]. A different activation, not a clamp.
    Source: Kimi K3 report eq. 5. Raises ValueError unless lower_bound is negative and finite.
    """
    if not -np.inf < lower_bound < 0:
        raise ValueError(f"lower_bound must be a negative number, not {lower_bound}")
    z, rate = _gate_inputs(z, A_log)
    return lower_bound * sigmoid(rate * z)


def gate_softplus(z, A_log):
    """Log decay of Kimi Linear: -exp(A_log) * softplus(z), below 0 and unbounded.

    z [..., HV, dk] is the projection with its bias added, A_log [HV]. Source: Kimi Linear, section 3.
    """
    z, rate = _gate_inputs(z, A_log)
    return -rate * (np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z))))


def _gate_inputs(z, A_log):
    z, A_log = np.asarray(z), np.asarray(A_log)
    if z.ndim < 2 or A_log.shape != (z.shape[-2],):
        raise ValueError(f"A_log must hold one number per head of z {z.shape}, not {A_log.shape}")
    return z, np.exp(A_log)[:, None]


def l2norm(x, eps=1e-6):
    """Divide by sqrt(sum(x^2) + eps) over the last axis: eps inside, sum not mean (FLA l2norm.py)."""
    return x / np.sqrt(np.sum(x * x, axis=-1, keepdims=True) + eps)


def short_conv(x, weight, window=None):
    """Causal depthwise convolution over a sequence, then SiLU.

    x [T, D], weight [W, D] (row W-1 meets the current token), window [W-1, D] the inputs just before x (zeros
    if None) -> (y [T, D], window [W-1, D] after x). Source: Kimi K3 report eq. 2; D channels, no bias.
    """
    T, W = len(x), len(weight)
    if window is None:
        window = np.zeros((W - 1, x.shape[1]), x.dtype)
    if weight.shape[1:] != x.shape[1:] or window.shape != (W - 1, *x.shape[1:]):
        raise ValueError(
            f"x {x.shape} needs weight [W, D] and window [W-1, D], not {weight.shape}, {window.shape}"
        )
    inputs = np.concatenate([window, x])
    y = inputs[:T] * weight[0]
    for j in range(1, W):
        y = y + inputs[j : j + T] * weight[j]
    return silu(y), inputs[T:]


def short_conv_step(x, weight, window):
    """`short_conv` for one token: x [D], window [W-1, D] -> (y [D], window [W-1, D])."""
    y, window = short_conv(x[None], weight, window)
    return y[0], window


# --- one token at a time ---


def kda_update(k, v, g, beta, state):
    """Absorb one token -> (state [HV, dk, dv], u [HV, dv]).

    k [HV, dk], v [HV, dv], g [HV, dk], beta [HV], state [HV, dk, dv];
    u = beta (v - S^T k) on the decayed state is the corrected value that is written. The old state is not
    changed.
    """
    decayed = state * np.exp(g)[:, :, None]
    u = beta[:, None] * (v - np.einsum("hkv,hk->hv", decayed, k))
    return decayed + k[:, :, None] * u[:, None, :], u


def kda_read(q, state, scale):
    """Read the state: q [HV, dk], state [HV, dk, dv] -> o [HV, dv] = S^T (scale q)."""
    return np.einsum("hkv,hk->hv", state, q * scale)


def kda_step(q, k, v, g, beta, state, scale=None):
    """One token of the recurrence -> (o [HV, dv], state).

    q, k [HV, dk], v [HV, dv], g [HV, dk], beta [HV], state [HV, dk, dv]; scale, default dk^-0.5, multiplies
    q.
    """
    state, _ = kda_update(k, v, g, beta, state)
    return kda_read(q, state, q.shape[-1] ** -0.5 if scale is None else scale), state


def kda_recurrent(q, k, v, g, beta, state=None, scale=None):
    """The recurrence, token by token: the specification of this module.

    q, k [T, H, dk], v [T, HV, dv], g [T, HV, dk] log decay <= 0 (already activated), beta [T, HV], state
    [HV, dk, dv] or None for zeros; float32 or float64 -> (o [T, HV, dv], state [HV, dk, dv]). scale, default
    dk^-0.5, multiplies q. Does not normalise q and k. Raises ValueError on shapes that do not fit or values
    that are not finite. Source: FLA fla/ops/kda/naive.py, naive_recurrent_kda.
    """
    q, k, v, g, beta, state, scale = check_inputs(q, k, v, g, beta, state, scale)
    o = np.empty(v.shape, state.dtype)
    for t in range(len(v)):
        o[t], state = kda_step(q[t], k[t], v[t], g[t], beta[t], state, scale)
    return o, _finite_state(state)


def kda_trace(q, k, v, g, beta, state=None, scale=None):
    """`kda_recurrent` token by token, with its bits: yields (o [HV, dv], u [HV, dv], state) after each."""
    q, k, v, g, beta, state, scale = check_inputs(q, k, v, g, beta, state, scale)
    for t in range(len(v)):
        state, u = kda_update(k[t], v[t], g[t], beta[t], state)
        yield kda_read(q[t], state, scale), u, state
    _finite_state(state)


def check_inputs(q, k, v, g, beta, state=None, scale=None):
    """The inputs of `kda_recurrent`: checked, in one dtype, heads repeated to HV, defaults filled in."""
    names = ("q", "k", "v", "g", "beta")
    arrays = [np.asarray(x) for x in (q, k, v, g, beta)]
    q, k, v, g, beta = arrays
    if q.ndim != 3 or k.shape != q.shape or v.ndim != 3 or len(v) != len(q):
        raise ValueError(
            f"q and k must be [T, H, dk] and v [T, HV, dv], not {q.shape}, {k.shape} and {v.shape}"
        )
    (T, H, dk), (_, HV, dv) = q.shape, v.shape
    if H == 0 or HV == 0 or HV % H:
        raise ValueError(f"the value heads of v ({HV}) must be a multiple of the heads of q and k ({H})")
    if g.shape != (T, HV, dk) or beta.shape != (T, HV):
        raise ValueError(f"g must be {(T, HV, dk)} and beta {(T, HV)}, not {g.shape} and {beta.shape}")
    if state is not None and np.shape(state) != (HV, dk, dv):
        raise ValueError(f"state must be [HV, dk, dv] = {(HV, dk, dv)}, not {np.shape(state)}")
    if state is None:
        dtype = np.result_type(*arrays)
        state = np.zeros((HV, dk, dv), dtype)
    else:
        dtype = np.result_type(*arrays, np.asarray(state))
        arrays, names = [*arrays, np.asarray(state)], (*names, "state")
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"the arrays must be float32 or float64, not {dtype}")
    for name, x in zip(names, arrays):
        if x.size and not -np.inf < x.min() <= x.max() < np.inf:  # False for NaN too
            raise ValueError(f"{name} holds a value that is not finite")
    if T and g.max() > 0:
        raise ValueError(f"g is a log decay and must not be positive, but reaches {float(g.max())}")
    if HV != H:
        q, k = np.repeat(q, HV // H, axis=1), np.repeat(k, HV // H, axis=1)
    q, k, v, g, beta, state = (np.ascontiguousarray(x, dtype) for x in (q, k, v, g, beta, state))
    return q, k, v, g, beta, state, dtype.type(dk**-0.5 if scale is None else scale)


def _finite_state(state):
    if not np.isfinite(state).all():
        raise ValueError(
            "the state is no longer finite: are the keys normalised (l2norm) and beta within [0, 2]?"
        )
    return state


# --- many tokens at a time ---


def kda_chunk(q, k, v, g, beta, state=None, scale=None, chunk_size=64):
    """The recurrence in chunks: equal to `kda_recurrent` in algebra, not in the last bits.

    Arguments and result as for `kda_recurrent`; chunk_size is any positive number. Inside a chunk the updates
    form a unit lower triangular system (WY form); only the state goes from chunk to chunk. Safe for every
    gate: a decay is split into factors exp(<= 0), or inside a 16-token tile into a pair within exp(+-80);
    where a gate is too strong for that, it is taken pair by pair. Source: Kimi Linear section 3 and FLA
    fla/ops/kda (naive_chunk_kda, chunk_intra.py).
    """
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, not {chunk_size}")
    q, k, v, g, beta, state, scale = check_inputs(q, k, v, g, beta, state, scale)
    o = np.empty_like(v)
    T = len(v)
    whole, group = T - T % chunk_size, GROUP * chunk_size
    # Equal chunks in groups, then what is left as one short chunk.
    for start in [*range(0, whole, group), whole]:
        part = slice(start, min(start + group, whole) if start < whole else T)
        if part.start < part.stop:
            size = min(chunk_size, part.stop - start)
            chunks = (
                x[part].reshape(-1, size, *x.shape[1:]).swapaxes(1, 2) for x in (q, k, v, g, beta[..., None])
            )
            reads, state = _solve_chunks(*chunks, state)
            np.multiply(reads.swapaxes(1, 2), scale, out=o[part].reshape(-1, size, *v.shape[1:]))
    return o, _finite_state(state)


def _solve_chunks(q, k, v, g, beta, state):
    """N chunks of C tokens: q, k, g [N, HV, C, dk], v [N, HV, C, dv], beta [N, HV, C, 1] -> (o, state)."""
    from_start, keys_to_end, fade, products = _decayed(q, k, g)
    queries, keys = from_start[:, :, 0], from_start[:, :, 1]
    # Token i meets what the tokens j < i of its chunk wrote: (I + beta overlap) u = beta (v - S^T k).
    solve = _unit_lower_inverse(products[:, :, 1] * beta) * beta.swapaxes(2, 3)
    keys_to_end = keys_to_end.swapaxes(2, 3)
    u, states = np.empty(v.shape, v.dtype), np.empty((len(v), *state.shape), v.dtype)
    for n in range(len(v)):
        states[n] = state
        u[n] = solve[n] @ (v[n] - keys[n] @ state)
        state = state * fade[n] + keys_to_end[n] @ u[n]
    return queries @ states + products[:, :, 0] @ u, state


def _decayed(q, k, g):
    """Decays inside chunks; q, k, g [N, HV, C, dk].

    With G the cumulative log decay: q_i and k_i exp(G_i) [N, HV, 2, C, dk]; k_j exp(G_C - G_j)
    [N, HV, C, dk]; exp(G_C) [N, HV, dk, 1]; and products [N, HV, 2, C, C], x_i . k_j exp(G_i - G_j) with
    x = q for j <= i and with x = k for j < i.
    """
    N, HV, C, dk = g.shape
    n = min(TILE, C)
    m = -(-C // n)
    q, k, g = (_tiles(x, m, n) for x in (q, k, g))
    to_tile_start = np.tri(n, dtype=g.dtype) @ g
    to_tile_end = np.tri(n, k=-1, dtype=g.dtype).T @ g  # its own sum: a difference would lose the last bits
    end = to_tile_start[..., -1:, :]
    fall = np.exp(np.maximum(to_tile_start, -MAX_FACTORED_DECAY))
    rows = _stack_rows(q, k, fall)
    keys = k * _exp(to_tile_end)
    if -end.min() <= MAX_FACTORED_DECAY:  # exp(-G) cannot overflow
        near = rows @ (k / fall).swapaxes(3, 4)[:, :, None]
    else:
        near = _pairwise_products(q, k, g)
    near *= np.stack([np.tri(n, dtype=g.dtype), np.tri(n, k=-1, dtype=g.dtype)])[:, None]
    rows *= (fall > _tiny(g.dtype))[:, :, None]
    products = np.zeros((N, HV, 2, m, n, m, n), g.dtype)
    gap = np.zeros_like(end)  # log decay from the end of each earlier tile to the start of tile a
    for a in range(m):
        products[:, :, :, a, :, a] = near[:, :, :, a]
        if a:
            gap[:, :, : a - 1] += end[:, :, a - 1, None]
            past = (keys[:, :, :a] * _exp(gap[:, :, :a])).reshape(N, HV, a * n, dk)
            far = rows[:, :, :, a].reshape(N, HV, 2 * n, dk) @ past.swapaxes(2, 3)
            products[:, :, :, a, :, :a] = far.reshape(N, HV, 2, n, a, n)
    gap[:, :, : m - 1] += end[:, :, m - 1, None]
    keys *= _exp(gap)
    rows *= _exp(np.cumsum(end, axis=2) - end)[:, :, None]
    fade = _exp(np.sum(end, axis=2)).swapaxes(2, 3)
    rows, keys = rows.reshape(N, HV, 2, m * n, dk), keys.reshape(N, HV, m * n, dk)
    return rows[..., :C, :], keys[..., :C, :], fade, products.reshape(N, HV, 2, m * n, m * n)[..., :C, :C]


def _tiles(x, m, n):
    """[N, HV, C, d] -> [N, HV, m, n, d], padded with zeros: no key, no decay."""
    N, HV, C, d = x.shape
    if C < m * n:
        x = np.concatenate([x, np.zeros((N, HV, m * n - C, d), x.dtype)], axis=2)
    return x.reshape(N, HV, m, n, d)


def _stack_rows(q, k, factor):
    """q * factor and k * factor: three arrays [N, HV, m, n, dk] -> [N, HV, 2, m, n, dk]."""
    rows = np.empty((*k.shape[:2], 2, *k.shape[2:]), k.dtype)
    np.multiply(q, factor, out=rows[:, :, 0])
    np.multiply(k, factor, out=rows[:, :, 1])
    return rows


def _tiny(dtype):
    """The cube root of the smallest normal number (float32: 2e-13), below which a factor counts as 0.

    Beside 1 that is nothing, and products of three stay normal: subnormal numbers make it all much slower.
    """
    return np.cbrt(np.finfo(dtype).tiny)


def _exp(x):
    """exp of a log decay, with `_tiny` taken off so that nothing smaller is left of it."""
    lowest = np.log(_tiny(x.dtype))
    e = np.maximum(x, lowest)
    np.exp(e, out=e)
    e -= np.exp(lowest)
    return e


def _pairwise_products(q, k, g):
    """x_i . k_j exp(G_i - G_j) inside tiles, right for j <= i: [N, HV, m, n, dk] -> [N, HV, 2, m, n, n]."""
    G = np.cumsum(g, axis=3, dtype=np.float64)
    # Where j > i the difference is positive and the entry unused: cut at 0 so that exp cannot overflow.
    gaps = np.minimum(G[..., :, None, :] - G[..., None, :, :], 0).astype(g.dtype)
    pairs = np.exp(gaps) * k[..., None, :, :]
    return np.stack([np.einsum("...id,...ijd->...ij", x, pairs) for x in (q, k)], axis=2)


def _unit_lower_inverse(lower):
    """(I + lower)^-1; lower [N, HV, C, C] strictly lower triangular.

    Joins blocks of 1, 2, 4, ... rows: the inverse of [[A, 0], [B, D]] is [[A', 0], [-D' B A', D']].
    """
    C = lower.shape[-1]
    size = 1 << (C - 1).bit_length()
    whole = np.zeros((*lower.shape[:2], size, size), lower.dtype)
    whole[..., :C, :C] = lower
    whole = _no_tiny(whole)
    inverse = np.zeros_like(whole)
    inverse[:] = np.eye(size)
    s = 1
    while s < size:
        m = size // (2 * s)
        i = np.arange(m)
        shape = (*lower.shape[:2], m, 2, s, m, 2, s)
        blocks, b = inverse.reshape(shape), whole.reshape(shape)[:, :, i, 1, :, i, 0]
        new = blocks[:, :, i, 1, :, i, 1] @ (b @ blocks[:, :, i, 0, :, i, 0])
        blocks[:, :, i, 1, :, i, 0] = -_no_tiny(new)
        s *= 2
    return inverse[..., :C, :C]


def _no_tiny(x):
    """x with 0 for what is smaller than `_tiny`."""
    return x * (np.abs(x) > _tiny(x.dtype))


# --- segments: context parallelism ---


def kda_segment(k, v, g, beta):
    """What a run of tokens does to any state: S_out = M S_in + S_local.

    k [T, H, dk], v [T, HV, dv], g [T, HV, dk], beta [T, HV] -> (M [HV, dk, dk], S_local [HV, dk, dv]); M is
    the product of (I - beta k k^T) Diag(exp(g)). Source: Kimi K3 report section 5.1.2.
    """
    k, v, g = np.asarray(k), np.asarray(v), np.asarray(g)
    if g.ndim != 3 or v.ndim != 3 or v.shape[:2] != g.shape[:2]:
        raise ValueError(f"g must be [T, HV, dk] and v [T, HV, dv], not {g.shape} and {v.shape}")
    # The columns of a state evolve apart, so both run at once: M as a state that starts at I and sees v = 0.
    dk = g.shape[-1]
    dtype = np.result_type(k, v, g, beta)
    start = np.zeros((v.shape[1], dk, dk + v.shape[2]), dtype)
    start[:, :, :dk] = np.eye(dk)
    _, end = kda_recurrent(k, k, np.concatenate([np.zeros_like(g), v], axis=-1), g, beta, start)
    return end[..., :dk], end[..., dk:]


def compose_segments(first, second):
    """The segment that does `first`, then `second`, each (M, S_local) as from `kda_segment`; associative."""
    (m1, s1), (m2, s2) = first, second
    return m2 @ m1, m2 @ s1 + s2


def apply_segment(segment, state):
    """S_out = M S_in + S_local for a segment (M, S_local) and state [HV, dk, dv]."""
    m, local = segment
    return m @ state + local
