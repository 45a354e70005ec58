"""Latent attention, its parts; that it is Kimi Linear's is checked through the decoder (test_decode.py)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3core.mla import LatentCache, latent_rows, mla_decode, mla_prefill


def draw(rng, n, H=3, d=6, p=4, rank=10, dv=5, dtype=np.float64):
    """Random q [n, H, d + p], rows [n, rank + p], w_uk [H, d, rank], w_uv [H, rank, dv]."""
    shapes = (n, H, d + p), (n, rank + p), (H, d, rank), (H, rank, dv)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def written_out(q, rows, w_uk, w_uv):
    """Attention of the last row head by head, with keys and values built: the unabsorbed definition."""
    H, d, rank = w_uk.shape
    outputs = []
    for h in range(H):
        scores = []
        for row in rows:
            key = np.concatenate([w_uk[h] @ row[:rank], row[rank:]])
            scores.append(q[h] @ key / np.sqrt(len(key)))
        weights = np.exp(scores) / np.sum(np.exp(scores))
        outputs.append(sum(weight * (row[:rank] @ w_uv[h]) for weight, row in zip(weights, rows)))
    return np.array(outputs)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(n=st.integers(1, 12), T=st.integers(1, 12), seed=st.integers(0, 99))
def test_absorbed_and_prefill_form_equal_the_definition(n, T, seed):
    T = min(T, n)
    q, rows, w_uk, w_uv = draw(np.random.default_rng(seed), n)
    together = mla_prefill(q[n - T :], rows, w_uk, w_uv)
    for t in range(T):
        length = n - T + t + 1
        expected = written_out(q[length - 1], rows[:length], w_uk, w_uv)
        np.testing.assert_allclose(mla_decode(q[length - 1], rows[:length], w_uk, w_uv), expected, atol=1e-12)
        np.testing.assert_allclose(together[t], expected, atol=1e-12)


def test_absorbed_equals_prefill_at_k3_head_sizes():
    rng = np.random.default_rng(1)
    q, rows, w_uk, w_uv = draw(rng, 20, H=2, d=128, p=64, rank=512, dv=128)
    w_uk, w_uv = w_uk / np.sqrt(512), w_uv / np.sqrt(512)
    assert rows.shape[1] == 576  # what a token of one layer costs
    together = mla_prefill(q, rows, w_uk, w_uv)
    assert np.abs(mla_decode(q[-1], rows, w_uk, w_uv) - together[-1]).max() <= 5e-15


def test_cache_row_norms_the_latent_only():
    compressed = np.array([[3.0, 4.0, 7.0]])
    rows = latent_rows(compressed, np.array([1.0, 10.0]), eps=0.0)
    np.testing.assert_allclose(rows, [[3 / np.sqrt(12.5), 40 / np.sqrt(12.5), 7]])


def test_decode_bits_do_not_depend_on_the_cache_around_the_rows():
    q, rows, w_uk, w_uv = draw(np.random.default_rng(2), 40, dtype=np.float32)
    cache = LatentCache(14, np.float32)
    for t, row in enumerate(rows):
        cache.append(row[None])
        alone = mla_decode(q[t], rows[: t + 1].copy(), w_uk, w_uv)
        np.testing.assert_array_equal(mla_decode(q[t], cache.rows, w_uk, w_uv), alone)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 40)), max_size=20))
def test_cache_behaves_like_a_list(steps):
    cache, model, count = LatentCache(2, np.float64), [], 0
    for grow, n in steps:
        if grow:
            new = [(count + i, -count - i) for i in range(n)]
            cache.append(np.array(new, float).reshape(-1, 2))
            model += new
            count += n
        else:
            before = cache.copy()
            cache.truncate(min(n, len(model)))
            assert before.length == len(model)
            del model[n:]
        assert cache.rows.tolist() == [list(row) for row in model]


def test_cache_cannot_be_cut_longer():
    cache = LatentCache(2, np.float64)
    with pytest.raises(ValueError, match="length must be 0 to 0, not 1"):
        cache.truncate(1)
