"""The KDA kernels: against flash-linear-attention's reference arrays first, then against each other."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3core import kda
from k3core.ops import project

FLA = np.load(Path(__file__).parent / "data" / "fla_kda_reference.npz")
CASES = {"k3": kda.gate_lower_bound, "kimi_linear": kda.gate_softplus}


def reference(case):
    """Inputs q, k, v, g, beta, state and outputs o, S that FLA's naive_recurrent_kda produced."""
    inputs = [FLA[f"{case}_{name}"][0] for name in ("q", "k", "v", "g", "beta", "h0")]
    return inputs, FLA[f"{case}_o"][0], FLA[f"{case}_S"][0]


def stream(rng, T, H=2, HV=4, dk=24, dv=16, gate="k3", dtype=np.float64):
    """A random stream of T tokens and a start state: q, k, v, g, beta, state."""
    q, k = kda.l2norm(rng.standard_normal((2, T, H, dk)))
    z = rng.standard_normal((T, HV, dk))
    g = {
        "k3": lambda: kda.gate_lower_bound(z, np.zeros(HV)),
        "gentle": lambda: 0.02 * kda.gate_lower_bound(z, np.zeros(HV)),
        "strongest": lambda: np.full(z.shape, -5.0),
        "softplus": lambda: kda.gate_softplus(3 * z, np.full(HV, np.log(16.0))),
    }[gate]()
    v, state = rng.standard_normal((T, HV, dv)), 0.1 * rng.standard_normal((HV, dk, dv))
    beta = 1 / (1 + np.exp(-rng.standard_normal((T, HV))))
    return [x.astype(dtype) for x in (q, k, v, g, beta, state)]


def largest(*pairs):
    return max(float(np.abs(a - b).max(initial=0)) for a, b in pairs)


# --- flash-linear-attention ---


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kernel", [kda.kda_recurrent, kda.kda_chunk])
def test_equals_fla(case, kernel):
    inputs, o, state = reference(case)
    assert inputs[1].shape[-1] != inputs[2].shape[-1]  # dk != dv, or a transposed state could pass
    ours = kernel(*inputs)
    assert ours[0].dtype == ours[1].dtype == np.float32
    assert largest((ours[0], o), (ours[1], state)) <= 3e-6


@pytest.mark.parametrize("case", CASES)
def test_gates_equal_fla(case):
    g = CASES[case](FLA[f"{case}_z"][0], FLA[f"{case}_A_log"])
    np.testing.assert_allclose(g, FLA[f"{case}_g"][0], rtol=1e-6, atol=1e-7)


# --- the specification, written out ---


def test_recurrence_is_the_delta_rule_on_the_decayed_state():
    rng = np.random.default_rng(1)
    q, k, v, g, beta, state = stream(rng, 9)
    o, end = kda.kda_recurrent(q, k, v, g, beta, state, scale=0.3)
    for h in range(4):
        S = state[h]
        for t in range(9):
            key, query = k[t, h // 2], q[t, h // 2]  # two value heads to each key head
            S = (np.eye(24) - beta[t, h] * np.outer(key, key)) @ np.diag(np.exp(g[t, h])) @ S
            S = S + beta[t, h] * np.outer(key, v[t, h])
            np.testing.assert_allclose(o[t, h], 0.3 * S.T @ query, atol=1e-13)
        np.testing.assert_allclose(end[h], S, atol=1e-13)


def test_default_scale_is_one_over_root_dk():
    q, k, v, g, beta, _ = stream(np.random.default_rng(2), 3)
    np.testing.assert_array_equal(
        kda.kda_recurrent(q, k, v, g, beta)[0], kda.kda_recurrent(q, k, v, g, beta, None, 24**-0.5)[0]
    )


def test_l2norm_has_eps_inside_the_root():
    x = np.array([[3e-4, 4e-4], [3.0, 4.0]])
    norm = np.sqrt(np.array([[25e-8 + 1e-6], [25 + 1e-6]]))
    np.testing.assert_allclose(kda.l2norm(x), x / norm, rtol=1e-15)


def test_gates_stay_in_range_at_extremes():
    z = np.array([[-1e4, 0.0, 1e4]])
    bounded = kda.gate_lower_bound(z, np.array([2.0]))
    np.testing.assert_array_equal(bounded, [[0, -2.5, -5]])
    np.testing.assert_allclose(kda.gate_softplus(z, np.array([0.0])), [[0, -np.log(2), -1e4]])


# --- the chunk form ---


@pytest.mark.parametrize("gate", ["k3", "gentle", "strongest", "softplus"])
@pytest.mark.parametrize("chunk_size", [1, 5, 16, 64, 128])
@pytest.mark.parametrize("T", [0, 1, 15, 64, 65, 200])
def test_chunk_equals_recurrence(gate, chunk_size, T):
    inputs = stream(np.random.default_rng([T, chunk_size]), T, gate=gate)
    o, state = kda.kda_recurrent(*inputs)
    chunk = kda.kda_chunk(*inputs, chunk_size=chunk_size)
    assert largest((o, chunk[0]), (state, chunk[1])) <= 1e-12
    chunk = kda.kda_chunk(*(x.astype(np.float32) for x in inputs), chunk_size=chunk_size)
    assert chunk[0].dtype == np.float32
    assert largest((o, chunk[0]), (state, chunk[1])) <= 3e-6


def test_chunk_equals_recurrence_over_several_groups_of_chunks():
    inputs = stream(np.random.default_rng(10), 1200, gate="gentle")
    o, state = kda.kda_recurrent(*inputs)
    chunk = kda.kda_chunk(*inputs)
    assert largest((o, chunk[0]), (state, chunk[1])) <= 1e-12


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    T=st.integers(0, 90), cut=st.integers(0, 90), chunk_size=st.integers(1, 80), dk=st.integers(1, 9),
    dv=st.integers(1, 9), shape=st.sampled_from([(1, 1), (1, 3), (2, 4)]),
    gate=st.sampled_from(["k3", "softplus"]), seed=st.integers(0, 99),
)  # fmt: skip
def test_chunk_of_any_shape_resumes_from_a_state(T, cut, chunk_size, dk, dv, shape, gate, seed):
    cut = min(cut, T)
    *tokens, state = stream(np.random.default_rng(seed), T, *shape, dk, dv, gate)
    o, end = kda.kda_recurrent(*tokens, state)
    first, middle = kda.kda_chunk(*(x[:cut] for x in tokens), state, chunk_size=chunk_size)
    second, last = kda.kda_chunk(*(x[cut:] for x in tokens), middle, chunk_size=chunk_size)
    assert largest((o, np.concatenate([first, second])), (end, last)) <= 1e-12


# --- bits ---


@settings(max_examples=25, deadline=None, derandomize=True)
@given(cuts=st.lists(st.integers(0, 20), max_size=4), dtype=st.sampled_from([np.float32, np.float64]))
def test_recurrence_split_anywhere_keeps_its_bits(cuts, dtype):
    *tokens, state = stream(np.random.default_rng(3), 20, dtype=dtype)
    o, end = kda.kda_recurrent(*tokens, state)
    outputs = []
    for start, stop in zip([0, *sorted(cuts)], [*sorted(cuts), 20]):
        part, state = kda.kda_recurrent(*(x[start:stop] for x in tokens), state)
        outputs.append(part)
    np.testing.assert_array_equal(np.concatenate(outputs), o)
    np.testing.assert_array_equal(state, end)


def test_steps_have_the_bits_of_the_recurrence():
    q, k, v, g, beta, state = stream(np.random.default_rng(4), 12, H=4, dtype=np.float32)
    o, end = kda.kda_recurrent(q, k, v, g, beta, state)
    scale = np.float32(24**-0.5)
    for t in range(12):
        before = state.copy()
        row, after = kda.kda_step(q[t], k[t], v[t], g[t], beta[t], state, scale)
        np.testing.assert_array_equal(state, before)  # a step leaves the state it was given alone
        np.testing.assert_array_equal(row, o[t])
        state = after
    np.testing.assert_array_equal(state, end)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n, m", [(1, 1), (3, 5), (32, 96), (48, 1), (64, 33), (7, 200)])
def test_projected_row_does_not_depend_on_its_company(dtype, n, m):
    rng = np.random.default_rng([n, m])
    x, w = rng.standard_normal((64, n)).astype(dtype), rng.standard_normal((n, m)).astype(dtype)
    full = project(x, w)
    np.testing.assert_allclose(full, x @ w, rtol=0, atol=1e-4 if dtype == np.float32 else 1e-12)
    for T in range(1, 65):
        np.testing.assert_array_equal(project(x[:T], w), full[:T])
        np.testing.assert_array_equal(project(x[T - 1 :], w), full[T - 1 :])
        np.testing.assert_array_equal(project(x[T - 1 : T], w), full[T - 1 : T])


def test_projection_is_a_running_sum():
    rng = np.random.default_rng(5)
    x, w = rng.standard_normal((7, 50)).astype(np.float32), rng.standard_normal((50, 20)).astype(np.float32)
    total = np.zeros((7, 20), np.float32)
    for i in range(50):
        total = total + x[:, i, None] * w[i]
    np.testing.assert_array_equal(project(x, w), total)


# --- the short convolution ---


def test_short_conv_written_out():
    x = np.arange(1.0, 6.0)[:, None] * [1.0, -1.0]
    weight = np.array([[1.0, 0.5], [0, 0], [0, 0], [10.0, 0.25]])  # 4 taps: three tokens back, ..., now
    y, window = kda.short_conv(x, weight)
    raw = np.array([[10, -0.25], [20, -0.5], [30, -0.75], [41, -1.5], [52, -2.25]])
    np.testing.assert_allclose(y, raw / (1 + np.exp(-raw)))
    np.testing.assert_array_equal(window, x[2:])


@settings(max_examples=25, deadline=None, derandomize=True)
@given(cut=st.integers(0, 13), width=st.integers(1, 4), dtype=st.sampled_from([np.float32, np.float64]))
def test_short_conv_split_and_stepped_keeps_its_bits(cut, width, dtype):
    rng = np.random.default_rng(cut)
    x, weight = rng.standard_normal((13, 37)).astype(dtype), rng.standard_normal((width, 37)).astype(dtype)
    y, end = kda.short_conv(x, weight)
    first, window = kda.short_conv(x[:cut], weight)
    rows = [first]
    for row in x[cut:]:
        out, window = kda.short_conv_step(row, weight, window)
        rows.append(out[None])
    np.testing.assert_array_equal(np.concatenate(rows), y)
    np.testing.assert_array_equal(window, end)


# --- segments ---


def test_segments_compose_to_the_recurrence_in_any_grouping():
    *tokens, state = stream(np.random.default_rng(6), 40, gate="gentle")
    q, k, v, g, beta = tokens
    _, end = kda.kda_recurrent(*tokens, state)
    a, b, c = (kda.kda_segment(k[s], v[s], g[s], beta[s]) for s in np.split(np.arange(40), [7, 21]))
    left = kda.compose_segments(kda.compose_segments(a, b), c)
    right = kda.compose_segments(a, kda.compose_segments(b, c))
    for segment in (left, right, kda.kda_segment(k, v, g, beta)):
        assert largest((kda.apply_segment(segment, state), end)) <= 1e-14
    swapped = kda.compose_segments(kda.compose_segments(b, a), c)
    assert largest((kda.apply_segment(swapped, state), end)) > 1e-3  # order matters


def test_segment_transition_is_the_product_of_single_transitions():
    _, k, v, g, beta, _ = stream(np.random.default_rng(7), 5)
    M, local = kda.kda_segment(k, v, g, beta)
    for h in range(4):
        product = np.eye(24)
        for t in range(5):
            key = k[t, h // 2]
            product = (np.eye(24) - beta[t, h] * np.outer(key, key)) @ np.diag(np.exp(g[t, h])) @ product
        np.testing.assert_allclose(M[h], product, atol=1e-15)


# --- bad input ---


@pytest.mark.parametrize("kernel", [kda.kda_recurrent, kda.kda_chunk])
@pytest.mark.parametrize(
    "change, words",
    [
        (lambda a: a.update(k=a["k"][:, :1]), "q and k"),
        (lambda a: a.update(v=a["v"][:3]), "q and k must be"),
        (
            lambda a: a.update(v=a["v"][:, :3], g=a["g"][:, :3], beta=a["beta"][:, :3]),
            "multiple of the heads",
        ),
        (lambda a: a.update(g=a["g"][..., :3]), "g must be"),
        (lambda a: a.update(state=a["state"].swapaxes(1, 2)), "state must be"),
        (lambda a: a.update(g=-a["g"]), "must not be positive"),
        (lambda a: a["beta"].__setitem__((1, 1), np.nan), "beta holds a value that is not finite"),
        (lambda a: a["g"].__setitem__((1, 1), -np.inf), "g holds a value that is not finite"),
        (lambda a: a.update({n: x.astype(np.float16) for n, x in a.items()}), "float32 or float64"),
    ],
)
def test_bad_input_is_named(kernel, change, words):
    names = ("q", "k", "v", "g", "beta", "state")
    arguments = dict(zip(names, stream(np.random.default_rng(8), 4)))
    change(arguments)
    with pytest.raises(ValueError, match=words):
        kernel(**arguments)


def test_other_bad_input():
    inputs = stream(np.random.default_rng(9), 4)
    with pytest.raises(ValueError, match="chunk_size"):
        kda.kda_chunk(*inputs, chunk_size=0)
    with pytest.raises(ValueError, match="lower_bound"):
        kda.gate_lower_bound(np.zeros((2, 3)), np.zeros(2), lower_bound=1.0)
    with pytest.raises(ValueError, match="A_log"):
        kda.gate_softplus(np.zeros((2, 3)), np.zeros(3))
    with pytest.raises(ValueError, match="window"):
        kda.short_conv(np.zeros((2, 3)), np.zeros((4, 3)), np.zeros((4, 3)))
    with pytest.raises(ValueError, match="project"):
        project(np.zeros((2, 3)), np.zeros((4, 3)))
    _, k, v, g, beta, state = inputs
    with pytest.raises(ValueError, match="no longer finite"):
        kda.kda_recurrent(k, 1e150 * k, v, g, beta, state)
