"""The latency model against the published anchors it is built on and those it is not."""

import pytest

from k3core.fleet.latency import (
    FIGURES,
    MEASURED,
    PREFILL_SPEED,
    PRICES,
    STEP_OVERHEAD,
    decode_step,
    experts_touched,
    prefill_time,
    roofline_step,
    ttft,
)


@pytest.mark.parametrize(
    "batch, experts, at_8k, at_128k, tokens_per_s",
    [
        (1, 16.0, 2.16, 2.21, 463),
        (4, 62.3, 3.38, 3.59, 1185),
        (16, 224.4, 7.67, 8.52, 2086),
        (64, 613.2, 18.30, 21.70, 3497),
        (128, 806.7, 24.28, 31.07, 5273),
        (256, 887.1, 28.49, 42.08, 8985),
    ],
)
def test_roofline_of_decode(batch, experts, at_8k, at_128k, tokens_per_s):
    """An independent calculation for 8 x B300 at 64 TB/s."""
    assert experts_touched(batch) == pytest.approx(experts, abs=0.06)
    assert roofline_step(batch, 8192) * 1000 == pytest.approx(at_8k, abs=0.01)
    assert roofline_step(batch, 131072) * 1000 == pytest.approx(at_128k, abs=0.01)
    assert batch / roofline_step(batch, 8192) == pytest.approx(tokens_per_s, abs=1)


def test_overhead_closes_the_gap_at_batch_1():
    """9.01 ms measured on GB300 TP8 is 4.2 times the bound; about 7 ms must be added."""
    assert decode_step(1, 8192) * 1000 == pytest.approx(9.01)
    assert decode_step(1, 8192) / roofline_step(1, 8192) == pytest.approx(4.2, abs=0.03)
    assert STEP_OVERHEAD.value * 1000 == pytest.approx(7, abs=0.2)


def test_prefill_anchor_and_what_follows():
    """376.3 ms for 8K tokens is 21.3k tokens/s, so 200 ms buys about 4.2k uncached tokens."""
    assert ttft(8000) == pytest.approx(0.3763)
    assert 8000 / ttft(8000) == pytest.approx(21_300, rel=0.01)
    assert prefill_time(4200) == pytest.approx(0.2, rel=0.03)
    assert PREFILL_SPEED.value / 20e15 == pytest.approx(0.22, abs=0.01)  # of 8 x 2.5 PF dense bf16


def test_hit_saves_but_a_long_prefix_still_costs_attention():
    assert ttft(8000, 4000) < ttft(8000)
    assert prefill_time(4000, 400_000) > 3 * prefill_time(4000)
    assert ttft(8000, 7999) < 0.001
    assert ttft(8000, 4000, queue=1.0) == 1.0 + ttft(8000, 4000)
    assert prefill_time(4000, share=0.25) == pytest.approx(4 * prefill_time(4000))


@pytest.mark.parametrize(
    "version, tpot", [("v0.27.1", (10.12, 21.38, 48.35)), ("main of 2026-09-13", (4.93, 9.87, 21.07))]
)
def test_time_per_output_token_of_the_measurements(version, tpot):
    assert [row.tpot_ms for row in MEASURED[version]] == pytest.approx(tpot, abs=0.006)


def test_cost_of_an_agent_turn():
    """80K context at 94.2 % hit and 600 out is $0.0455; without the hit $0.249."""
    price = PRICES["kimi-k3"]
    assert price.cost(4_640, 75_360, 600) / 1e9 == pytest.approx(0.0455, abs=5e-5)
    assert price.cost(80_000, 0, 600) / 1e9 == pytest.approx(0.249)
    assert price.cost(1_000_000, 0, 0) == 3 * 10**9
    assert price.cost(0, 1_000_000, 1_000_000) == 15 * 10**9 + 3 * 10**8


def test_every_figure_names_its_standing_and_source():
    for figure in FIGURES.values():
        assert figure.badge in ("published", "derived", "illustrative")
        assert figure.value > 0
        assert figure.unit and figure.source


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: ttft(100, 100), "hit_tokens is 100; it must lie in 0 .. 99"),
        (lambda: roofline_step(0, 10), "batch is 0"),
        (lambda: prefill_time(10, share=0), "share is 0"),
        (lambda: prefill_time(-1), "new_tokens is -1"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
