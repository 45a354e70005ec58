"""Primitive hashes and schemes against published vectors."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3core.fleet.hashing import (
    Jump,
    Maglev,
    Ring,
    envoy_points,
    jump_hash,
    maglev_table,
    murmur3_32,
    node_names,
    splitmix64,
    xxh64,
)

PORTS = [f"127.0.0.1:{port}" for port in range(90, 96)]
few = settings(max_examples=40, deadline=None, derandomize=True)


def uints(*values):
    return np.array(values, dtype=np.uint64)


# --- primitive hashes ---------------------------------------------------------------------------------------


def test_xxh64_published_values():
    assert xxh64(["", "abc"]).tolist() == [0xEF46DB3751D8E999, 0x44BC2CF5AD770999]


def xxh64_loop(data: bytes, seed: int) -> int:
    """The specification in plain Python integers: the loop beside the vectorised form."""
    mask = 2**64 - 1
    p1, p2, p3, p4, p5 = (
        0x9E3779B185EBCA87,
        0xC2B2AE3D27D4EB4F,
        0x165667B19E3779F9,
        0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )

    def rotl(x, r):
        return ((x << r) | (x >> (64 - r))) & mask

    def step(acc, lane):
        return rotl((acc + lane * p2) & mask, 31) * p1 & mask

    words = [int.from_bytes(data[i : i + 8], "little") for i in range(0, len(data) // 8 * 8, 8)]
    i = 0
    if len(data) >= 32:
        acc = [(seed + p1 + p2) & mask, (seed + p2) & mask, seed, (seed - p1) & mask]
        while i + 4 <= len(words):
            acc = [step(a, w) for a, w in zip(acc, words[i : i + 4], strict=True)]
            i += 4
        h = sum(rotl(a, r) for a, r in zip(acc, (1, 7, 12, 18), strict=True)) & mask
        for a in acc:
            h = ((h ^ step(0, a)) * p1 + p4) & mask
    else:
        h = (seed + p5) & mask
    h = (h + len(data)) & mask
    for word in words[i:]:
        h = (rotl(h ^ step(0, word), 27) * p1 + p4) & mask
    tail = data[len(words) * 8 :]
    if len(tail) >= 4:
        h = (rotl(h ^ (int.from_bytes(tail[:4], "little") * p1 & mask), 23) * p2 + p3) & mask
        tail = tail[4:]
    for byte in tail:
        h = rotl(h ^ (byte * p5 & mask), 11) * p1 & mask
    h = (h ^ (h >> 33)) * p2 & mask
    h = (h ^ (h >> 29)) * p3 & mask
    return h ^ (h >> 32)


@few
@given(st.lists(st.binary(max_size=100), max_size=8), st.integers(0, 2**64 - 1))
def test_xxh64_equals_the_loop(texts, seed):
    assert xxh64(texts, seed).tolist() == [xxh64_loop(text, seed) for text in texts]


def test_splitmix64_published_sequence():
    expected = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert splitmix64(1234567, 5).tolist() == expected


def test_murmur3_published_values():
    assert murmur3_32(b"foo") == 2**32 - 156908512
    assert murmur3_32(b"", seed=1) == 0x514E28B7 == 1364076727


# --- jump ---------------------------------------------------------------------------------------------------


def test_jump_guava_golden_values():
    """google/guava HashingTest, consistentHash golden values."""
    golden = [0, 55, 62, 8, 45, 59, 86, 97, 82, 59, 73, 37, 17, 56, 86, 21, 90, 37, 38, 83]
    assert Jump(node_names(100)).assign(list(range(20))).tolist() == golden
    for key, buckets, bucket in [
        (10863919174838991, 11, 6),
        (2016238256797177309, 11, 3),
        (1673758223894951030, 11, 5),
        (2, 100001, 80343),
    ]:
        assert jump_hash(uints(key), buckets).tolist() == [bucket]


def test_jump_reference_cpp_values():
    """dgryski/go-jump jump_test.go, generated with the paper's C++."""
    by_key = {
        0: [0] * 19,
        1: [0] * 6 + [6] * 11 + [17] * 2,
        0xDEADBEEF: [0, 1, 2, 3, 3] + [5] * 11 + [16] * 3,
    }
    for key, expected in by_key.items():
        assert [int(jump_hash(uints(key), n)[0]) for n in range(1, 20)] == expected


def siphash_1_3(data: bytes) -> int:
    """SipHash-1-3 with a zero key, the default hasher of Rust."""
    mask = 2**64 - 1
    v = [0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573]

    def rotl(x, r):
        return ((x << r) | (x >> (64 - r))) & mask

    def sip_round():
        v[0] = (v[0] + v[1]) & mask
        v[2] = (v[2] + v[3]) & mask
        v[1], v[3] = rotl(v[1], 13) ^ v[0], rotl(v[3], 16) ^ v[2]
        v[0] = (rotl(v[0], 32) + v[3]) & mask
        v[2] = (v[2] + v[1]) & mask
        v[3], v[1] = rotl(v[3], 21) ^ v[0], rotl(v[1], 17) ^ v[2]
        v[2] = rotl(v[2], 32)

    padded = data + b"\0" * (7 - len(data) % 8) + bytes([len(data) % 256])
    for i in range(0, len(padded), 8):
        word = int.from_bytes(padded[i : i + 8], "little")
        v[3] ^= word
        sip_round()
        v[0] ^= word
    v[2] ^= 0xFF
    for _ in range(3):
        sip_round()
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def test_jump_rust_values():
    """jedisct1/rust-jumphash: a str is hashed with SipHash-1-3, closed by the byte 0xff."""
    for text, buckets, bucket in [
        ("test1", 10_000_000, 8970050),
        ("test2", 1000, 10),
        ("test3", 1000, 76),
        ("test4", 1000, 161),
        ("test5", 50, 33),
    ]:
        assert jump_hash(uints(siphash_1_3(text.encode() + b"\xff")), buckets).tolist() == [bucket]


# --- ring ---------------------------------------------------------------------------------------------------

ENVOY_RING = [  # envoyproxy/envoy ring_hash_lb_test.cc, test Basic
    (833437586790550860, 94),
    (928266305478181108, 92),
    (1033482794131418490, 90),
    (3551244743356806947, 95),
    (3851675632748031481, 93),
    (5583722120771150861, 91),
    (6311230543546372928, 91),
    (7700377290971790572, 93),
    (13144177310400110813, 95),
    (13444792449719432967, 92),
    (15516499411664133160, 94),
    (16117243373044804889, 90),
]

ENVOY_RING_OF_NAMES = [  # same file, test BasicWithHostname
    (1975508444536362413, 95),
    (2376063919839173711, 95),
    (2386806903309390596, 93),
    (6749904478991551885, 94),
    (6803900775736438537, 93),
    (7225015537174310577, 92),
    (8787465352164086522, 90),
    (11282020843382717940, 92),
    (13723418369486627818, 91),
    (13776502110861797421, 90),
    (14338313586354474791, 91),
    (15364271037087512980, 94),
]


@pytest.mark.parametrize("prefix, expected", [("127.0.0.1:", ENVOY_RING), ("", ENVOY_RING_OF_NAMES)])
def test_ring_envoy_points(prefix, expected):
    ring = Ring([f"{prefix}{port}" for port in range(90, 96)], ring_size=12)
    points = zip(ring.positions.tolist(), (90 + ring.owners).tolist(), strict=True)
    assert list(points) == expected


def test_ring_envoy_queries():
    queries = [0, 2**64 - 1, 3551244743356806947, 3551244743356806948, 16117243373044804880]
    assert Ring(PORTS, ring_size=12).assign(queries).tolist() == [4, 4, 5, 3, 0]


def test_ring_envoy_size_rounds_up_to_whole_points_of_the_lightest():
    assert envoy_points([1, 1, 1], 1024) == [342, 342, 342]
    assert envoy_points([1, 2], 12) == [4, 8]
    assert sum(envoy_points([2, 3, 5], 7)) >= 7


def test_ring_ketama_output_of_the_reference_test():
    """RJ/ketama libketama/test.sh: MD5 of the output of ketama_test.c over 1,000,000 keys."""
    servers = {1: 600, 2: 300, 3: 200, 4: 350, 5: 1000, 6: 800, 7: 950, 8: 100}
    nodes = [f"10.0.1.{i}:11211" for i in servers]
    ring = Ring(nodes, style="ketama", weights=list(servers.values()))
    md5, lines = hashlib.md5(b"\n"), 0
    for start in range(0, 1_000_000, 250_000):
        keys = np.arange(start, start + 250_000)
        entry, position = ring.entry(keys), ring.position(keys)
        columns = position.tolist(), ring.positions[entry].tolist(), ring.owners[entry].tolist()
        md5.update("".join(f"{h} {p} {nodes[o]}\n" for h, p, o in zip(*columns, strict=True)).encode())
        lines += len(keys)
    assert lines == 1_000_000
    assert md5.hexdigest() == "5672b131391f5aa2b280936aec1eea74"


# --- Maglev -------------------------------------------------------------------------------------------------


def test_maglev_envoy_table():
    """envoyproxy/envoy maglev_lb_test.cc, test Basic, and the offsets and skips that lead to it."""
    maglev = Maglev(PORTS, 7)
    assert list(zip(maglev.offsets.tolist(), maglev.skips.tolist(), strict=True)) == [
        (2, 4),
        (3, 6),
        (0, 2),
        (3, 3),
        (1, 3),
        (1, 5),
    ]
    assert maglev.table.tolist() == [2, 4, 0, 1, 5, 0, 3]
    assert maglev.assign(list(range(21))).tolist() == [2, 4, 0, 1, 5, 0, 3] * 3


def test_maglev_envoy_table_of_names():
    """Same file, test BasicWithHostName; the order in which nodes are given does not matter."""
    assert Maglev(["90", "91", "92", "93", "94", "95"], 7).table.tolist() == [2, 5, 0, 3, 4, 1, 0]
    assert Maglev(["95", "91", "92", "93", "94", "90"], 7).table.tolist() == [2, 0, 5, 3, 4, 1, 5]


def test_maglev_envoy_weights():
    """Same file, tests Weighted and LocalityWeightedLopsided, and the shares in Envoy's documentation."""
    expected = [1, 0, 0, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 0, 1]
    assert Maglev(PORTS[:2], 17, weights=[1, 2]).table.tolist() == expected
    assert np.bincount(Maglev(["a", "b"], 65537, weights=[1, 2]).table).tolist() == [21846, 43691]
    lopsided = Maglev(node_names(1024), 65537, weights=[127 * 1023] + [1] * 1023)
    assert np.bincount(lopsided.table).tolist() == [65537 - 1023] + [1] * 1023


def test_maglev_worked_example_of_the_paper():
    """Eisenbud et al., NSDI 2016, section 3.4: M = 7, before and after B1 goes."""
    before = maglev_table([3, 0, 3], [4, 2, 1], np.array([0, 1, 2, 0, 1, 2, 0]))
    assert before.tolist() == [1, 0, 1, 0, 2, 2, 0]
    after = maglev_table([3, 0, 3], [4, 2, 1], np.array([0, 2, 0, 2, 0, 2, 0]))
    assert after.tolist() == [0, 0, 0, 0, 2, 2, 2]


def test_maglev_refuses_a_table_that_is_not_prime():
    """As Envoy's test NoPrimeNumber."""
    with pytest.raises(ValueError, match="table is 8; its size must be a prime number"):
        Maglev(PORTS, 8)
