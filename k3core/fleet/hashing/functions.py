"""Hash functions of the load balancers: XXH64, SplitMix64, MurmurHash3 and Ketama's four points of an MD5.

All arithmetic is on explicit uint64 arrays, which wrap silently and alike on 64-bit and 32-bit platforms.
"""

import hashlib
from collections.abc import Sequence

import numpy as np

U64 = np.uint64
GOLDEN = U64(0x9E3779B97F4A7C15)

_P1 = U64(0x9E3779B185EBCA87)
_P2 = U64(0xC2B2AE3D27D4EB4F)
_P3 = U64(0x165667B19E3779F9)
_P4 = U64(0x85EBCA77C2B2AE63)
_P5 = U64(0x27D4EB2F165667C5)


def _rotl(x, bits: int):
    return (x << U64(bits)) | (x >> U64(64 - bits))


def _shift_xor(x, bits: int):
    return x ^ (x >> U64(bits))


def _round(accumulator, lane):
    return _rotl(accumulator + lane * _P2, 31) * _P1


def xxh64_rows(rows: np.ndarray, seed: int = 0) -> np.ndarray:
    """XXH64 of every row.

    rows uint8 [K, L] (K texts of one length L bytes), seed 0 <= seed < 2**64 -> uint64 [K].
    Source: Cyan4973/xxHash doc/xxhash_spec.md, section XXH64.
    """
    count, length = rows.shape
    seeds = np.full(count, seed, dtype=U64)

    def lane(offset: int, kind: str):
        width = np.dtype(kind).itemsize
        return np.ascontiguousarray(rows[:, offset : offset + width]).view(kind)[:, 0].astype(U64)

    offset = 0
    if length >= 32:
        v = [seeds + _P1 + _P2, seeds + _P2, seeds.copy(), seeds - _P1]
        while offset + 32 <= length:
            v = [_round(v[i], lane(offset + 8 * i, "<u8")) for i in range(4)]
            offset += 32
        h = _rotl(v[0], 1) + _rotl(v[1], 7) + _rotl(v[2], 12) + _rotl(v[3], 18)
        for accumulator in v:
            h = (h ^ _round(np.zeros_like(h), accumulator)) * _P1 + _P4
    else:
        h = seeds + _P5
    h = h + U64(length)
    while offset + 8 <= length:
        h = _rotl(h ^ _round(np.zeros_like(h), lane(offset, "<u8")), 27) * _P1 + _P4
        offset += 8
    if offset + 4 <= length:
        h = _rotl(h ^ (lane(offset, "<u4") * _P1), 23) * _P2 + _P3
        offset += 4
    while offset < length:
        h = _rotl(h ^ (lane(offset, "u1") * _P5), 11) * _P1
        offset += 1
    h = _shift_xor(h, 33) * _P2
    h = _shift_xor(h, 29) * _P3
    return _shift_xor(h, 32)


def xxh64(texts: Sequence[str | bytes], seed: int = 0) -> np.ndarray:
    """XXH64 of texts of any lengths (str is taken as UTF-8) -> uint64 [len(texts)]."""
    data = [text.encode() if isinstance(text, str) else text for text in texts]
    lengths = np.array([len(item) for item in data], dtype=np.int64)
    result = np.empty(len(data), dtype=U64)
    for length in np.unique(lengths).tolist():
        where = np.flatnonzero(lengths == length)
        rows = np.frombuffer(b"".join(data[i] for i in where.tolist()), dtype=np.uint8)
        result[where] = xxh64_rows(rows.reshape(len(where), length), seed)
    return result


def mix64(x: np.ndarray) -> np.ndarray:
    """First output of SplitMix64 seeded with x: a bijective mixer, uint64 [...] -> uint64 [...].

    Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014), variant 13.
    """
    z = np.atleast_1d(np.asarray(x, dtype=U64)) + GOLDEN
    z = _shift_xor(z, 30) * U64(0xBF58476D1CE4E5B9)
    z = _shift_xor(z, 27) * U64(0x94D049BB133111EB)
    return _shift_xor(z, 31)


def splitmix64(seed: int, count: int) -> np.ndarray:
    """The first `count` outputs of the SplitMix64 generator with this seed -> uint64 [count]."""
    return mix64(np.full(count, seed, dtype=U64) + np.arange(count, dtype=U64) * GOLDEN)


def murmur3_32(data: bytes, seed: int = 0) -> int:
    """MurmurHash3_x86_32 as an unsigned int, the hash of Ray Serve's ConsistentHashRouter (ray PR #62906).

    Source: aappleby/smhasher src/MurmurHash3.cpp.
    """
    mask = 0xFFFFFFFF

    def rotl(x: int, bits: int) -> int:
        return ((x << bits) | (x >> (32 - bits))) & mask

    h = seed & mask
    padded = data + b"\0" * (-len(data) % 4)
    for offset in range(0, len(padded), 4):
        k = int.from_bytes(padded[offset : offset + 4], "little")
        h ^= rotl(k * 0xCC9E2D51 & mask, 15) * 0x1B873593 & mask
        if offset + 4 <= len(data):
            h = (rotl(h, 13) * 5 + 0xE6546B64) & mask
    h ^= len(data)
    h = (h ^ (h >> 16)) * 0x85EBCA6B & mask
    h = (h ^ (h >> 13)) * 0xC2B2AE35 & mask
    return h ^ (h >> 16)


def md5_points(texts: Sequence[str]) -> np.ndarray:
    """The four little-endian 32-bit words of each text's MD5 -> uint32 [len(texts), 4].

    Word 0 is Ketama's position of a key, all four are positions of a node (RJ/ketama libketama/ketama.c).
    """
    digests = b"".join(hashlib.md5(text.encode(), usedforsecurity=False).digest() for text in texts)
    return np.frombuffer(digests, dtype="<u4").reshape(len(texts), 4)
