"""Multi-head latent attention: one cached row per token, absorbed decode, and the prefill form.

A token's cache row is [c, k_r]: the normed latent (rank r, shared by all heads) and a key slice of width p
that heads share too. Kimi Linear and K3 rotate nothing (mla_use_nope), so the row is the same at every
position. Sources: DeepSeek-V2 (arXiv 2405.04434) section 2.1, Kimi K3 report (arXiv 2607.24653) section
2.1.2, vLLM mla.py.
"""

import numpy as np

from .ops import rms_norm, softmax


class LatentCache:
    """The cached rows [n, r + p] of one layer: append at the end, truncate to roll back."""

    def __init__(self, width, dtype):
        self._rows = np.empty((16, width), dtype)
        self.length = 0

    @property
    def rows(self):
        """The rows held, [length, r + p]."""
        return self._rows[: self.length]

    def append(self, rows):
        """Add rows [T, r + p]."""
        end = self.length + len(rows)
        if end > len(self._rows):
            grown = np.empty((2 * end, self._rows.shape[1]), self._rows.dtype)
            grown[: self.length] = self.rows
            self._rows = grown
        self._rows[self.length : end] = rows
        self.length = end

    def truncate(self, length):
        """Keep the first `length` rows; ValueError if there are fewer."""
        if not 0 <= length <= self.length:
            raise ValueError(f"length must be 0 to {self.length}, not {length}")
        self.length = length

    def copy(self):
        """An independent cache with the same rows."""
        other = LatentCache(self._rows.shape[1], self._rows.dtype)
        other.append(self.rows)
        return other


def latent_rows(compressed, norm, eps):
    """Cache rows from the down-projection, both [T, r + p]: RMSNorm (weight [r]) on the first r channels."""
    rank = len(norm)
    return np.concatenate([rms_norm(compressed[:, :rank], norm, eps), compressed[:, rank:]], axis=1)


def mla_decode(q, rows, w_uk, w_uv):
    """One query in absorbed form: attends in the latent space, never building keys or values.

    q [H, d + p] (d without and p with the shared slice), rows [n, r + p], w_uk [H, d, r], w_uv [H, r, v]
    -> [H, v]. Softmax scale (d + p)^-0.5. Its bits depend on nothing but these n rows.
    """
    d, rank = w_uk.shape[1:]
    latent_q = np.concatenate([np.einsum("hd,hdr->hr", q[:, :d], w_uk), q[:, d:]], axis=1)
    weights = softmax(np.einsum("hc,nc->hn", latent_q, rows) * q.dtype.type(q.shape[1] ** -0.5))
    latent = np.einsum("hn,nr->hr", weights, rows[:, :rank])
    return np.einsum("hr,hrv->hv", latent, w_uv)


def mla_prefill(q, rows, w_uk, w_uv):
    """T queries at once in multi-head form: keys and values of every head are built from the rows.

    q [T, H, d + p] belong to the last T of the n rows [n, r + p]; w_uk [H, d, r], w_uv [H, r, v] -> [T, H,
    v]. Equal to `mla_decode` on rows[: n - T + t + 1] for each t in algebra, not in the last bits.
    """
    T, n = len(q), len(rows)
    d, rank = w_uk.shape[1:]
    q, latent = q.swapaxes(0, 1), rows[:, :rank]
    scores = q[:, :, :d] @ (latent @ w_uk.swapaxes(1, 2)).swapaxes(1, 2) + q[:, :, d:] @ rows[:, rank:].T
    future = np.arange(n) > np.arange(n - T, n)[:, None]
    weights = softmax(np.where(future, -np.inf, scores * q.dtype.type(q.shape[2] ** -0.5)))
    return (weights @ (latent @ w_uv)).swapaxes(0, 1)
