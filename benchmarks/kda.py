"""KDA kernels and state stores: time, and the bytes a store holds. float32, K3's bounded gate, one thread of Python."""

from time import perf_counter

import numpy as np

from k3core.kda import KDATokens, gate_lower_bound, kda_chunk, kda_recurrent, l2norm
from k3core.ops import sigmoid
from k3core.replayssm import CorrectedStore, ProjectionStore, RingStore, SnapshotStore

H, DK, DV = 8, 64, 64


def draw(T):
    """T random tokens of 8 heads, 64 x 64, as KDATokens."""
    rng = np.random.default_rng(0)
    q, k = l2norm(rng.standard_normal((2, T, H, DK), np.float32))
    g = gate_lower_bound(rng.standard_normal((T, H, DK), np.float32), np.zeros(H, np.float32))
    v, beta = rng.standard_normal((T, H, DV), np.float32), sigmoid(rng.standard_normal((T, H), np.float32))
    return KDATokens(q, k, v, g, beta, rng.standard_normal((T, H * (2 * DK + DV)), np.float32))


def milliseconds(call, repeats=9):
    """The median time of a call, after one to warm up."""
    call()
    times = []
    for _ in range(repeats):
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return 1e3 * sorted(times)[repeats // 2]


def kernels():
    """`kda_chunk` against `kda_recurrent`, 1,024 tokens."""
    inputs = draw(1024)[:5]
    recurrent = milliseconds(lambda: kda_recurrent(*inputs))
    print(f"  kda_recurrent            1,024 tokens {recurrent:8.1f} ms")
    for size in (16, 64):
        chunk = milliseconds(lambda size=size: kda_chunk(*inputs, chunk_size=size))
        print(f"  kda_chunk, chunk_size {size}  1,024 tokens {chunk:8.1f} ms   {recurrent / chunk:4.1f} times as fast")


def stores(window=8, accepted=3, rounds=32):
    """Verify and commit, per window token, with 3 of 8 tokens kept; a plain step beside it."""
    tokens = draw(window)
    state, conv = np.zeros((H, DK, DV), np.float32), np.zeros((3, H * (2 * DK + DV)), np.float32)
    plain = milliseconds(lambda: kda_recurrent(*tokens[:5], state)) / window
    print(f"  plain decoding           per token    {plain:8.3f} ms")
    for make in (SnapshotStore, ProjectionStore, CorrectedStore, RingStore):
        store = make(state, conv, window)
        verify = commit = 0.0
        for _ in range(rounds):
            start = perf_counter()
            store.advance(tokens)
            middle = perf_counter()
            store.commit(accepted)
            verify, commit = verify + middle - start, commit + perf_counter() - middle
        held = sum(array.nbytes for array in store.held().values())
        per_token = 1e3 / rounds / window
        print(
            f"  {make.__name__:<16} verify {verify * per_token:6.3f} ms, commit {commit * per_token:6.3f} ms"
            f" a window token; holds {held:9,} B"
        )


def main():
    """Print the measurements."""
    kernels()
    stores()
