"""Choosing tokens: the distribution is softmax's, and the choice hangs on seed, position and logits alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3core.decode import (
    Greedy,
    Gumbel,
    HybridDecoder,
    NoisyOracle,
    Round,
    Speculation,
    acceptance_by_position,
    margin,
)
from k3core.ops import softmax
from k3core.replayssm import SnapshotStore

LOGITS = np.array([2.0, 0.5, 0.5, -1.0, -np.inf])


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_draws_have_the_probabilities_of_softmax(temperature):
    sampler, n = Gumbel(7, temperature), 4000
    counts = np.bincount([sampler.choose(LOGITS, position) for position in range(n)], minlength=5)
    expected = n * softmax(LOGITS / temperature)
    assert counts[4] == 0
    # Pearson's chi-square of 4 outcomes exceeds 16.3 once in 1,000 seeds.
    assert np.sum((counts[:4] - expected[:4]) ** 2 / expected[:4]) < 16.3


def test_noise_comes_from_seed_and_position():
    """Gumbel is minus the log of an exponential draw; NumPy's are the same bits in the browser."""
    drawn = np.random.default_rng([3, 11]).standard_exponential(5)
    assert np.array_equal(Gumbel(3, 1.0).scores(np.zeros(5), 11), -np.log(drawn))


def test_seed_and_position_matter():
    def draw(seed, position):
        return Gumbel(seed, 1.0).scores(np.zeros(8), position)

    assert np.array_equal(draw(1, 2), draw(1, 2))
    assert not np.array_equal(draw(1, 2), draw(1, 3)) and not np.array_equal(draw(1, 2), draw(2, 1))


def test_temperature_zero_is_greedy_and_ties_go_to_the_smaller_id():
    tied = np.array([1.0, 3.0, 3.0], np.float32)
    assert Greedy().choose(tied, 5) == Gumbel(9, 0).choose(tied, 5) == 1
    assert Gumbel(9, 0).scores(tied, 5) is tied


@pytest.mark.parametrize("seed, temperature, words", [
    (-1, 1.0, "seed must be an integer from 0, not -1"), (0.5, 1.0, "seed must be an integer"),
    (0, -0.1, "temperature must be a finite number from 0, not -0.1"), (0, float("nan"), "temperature"),
    (0, float("inf"), "temperature")])
def test_what_a_sampler_refuses(seed, temperature, words):
    with pytest.raises(ValueError, match=words):
        Gumbel(seed, temperature)


def test_margin():
    assert margin(np.array([1.0, 4.0, 3.5])) == 0.5 and margin(np.array([2.0, 2.0, 1.0])) == 0.0
    tied = np.array([1.0, 3.0, 3.25])
    assert Greedy().choose_with_margin(tied, 0) == (2, 0.25)
    token, lead = Gumbel(1, 0.8).choose_with_margin(tied, 5)
    assert token == Gumbel(1, 0.8).choose(tied, 5) and lead == margin(Gumbel(1, 0.8).scores(tied, 5)) > 0


def test_acceptance_by_position():
    def played(drafted, accepted):
        return Round(0, 0, tuple(range(drafted)), tuple(range(drafted + 1)), accepted, 1.0)

    assert acceptance_by_position([]) == [] == acceptance_by_position([played(0, 0)])
    rounds = [played(3, 3), played(3, 1), played(1, 0), played(0, 0)]
    assert acceptance_by_position(rounds) == [(2, 3), (1, 2), (1, 2)]


DECODER = HybridDecoder.random_k3(np.random.default_rng(2), hidden=8, key_dim=2, value_dim=3, vocab=16)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**70), temperature=st.sampled_from([0.0, 0.3, 1.0, 5.0]), drafts=st.integers(0, 4),
    acceptance=st.sampled_from([0.0, 0.5, 1.0]))
def test_speculation_draws_the_text_of_plain_decoding(seed, temperature, drafts, acceptance):
    sampler, prompt = Gumbel(seed, temperature), [1, 2, 3, 4]
    tokens = DECODER.generate(prompt, 20, sampler)
    oracle = NoisyOracle(prompt + tokens, acceptance, 16, np.random.default_rng(seed))
    speculation = Speculation(DECODER, prompt, oracle, SnapshotStore, drafts, sampler)
    rounds = speculation.run(20)
    assert speculation.tokens == tokens
    if acceptance == 1:
        assert len(rounds) == -(-19 // (drafts + 1))


def test_generate_counts():
    assert DECODER.generate([1], 0) == [] and len(DECODER.generate([1], 3, Gumbel(0, 1.0))) == 3
    with pytest.raises(ValueError, match="n must not be negative"):
        DECODER.generate([1], -1)
