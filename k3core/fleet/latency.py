"""Time and price of a request on Kimi K3, from published anchors; each figure carries source and badge.

Only + - * / are used, so that event times built on these figures are the same bits on every platform.
"""

from dataclasses import dataclass

GB = 1_000_000_000


@dataclass(frozen=True)
class Figure:
    """A number with its standing: badge is published, derived (from published numbers) or illustrative."""

    value: float
    unit: str
    badge: str
    source: str


@dataclass(frozen=True)
class Measurement:
    """One row of a published serving benchmark: 8K tokens in, 1K out, `concurrency` requests at a time."""

    concurrency: int
    ttft_ms: float
    latency_s: float
    tokens_per_s: float

    @property
    def tpot_ms(self) -> float:
        """Mean time per output token after the first, (latency - TTFT) / 999."""
        return (self.latency_s * 1000 - self.ttft_ms) / 999


VLLM_BLOG = "vLLM blog 2026-09-13: 8 x B300, TP8, 8K/1K, 8 draft tokens, prefix cache off"
MEASURED = {
    "v0.27.1": (
        Measurement(1, 2262.9, 12.37, 83.3),
        Measurement(4, 2314.9, 23.67, 166.7),
        Measurement(16, 7601.1, 55.90, 258.3),
    ),
    "main of 2026-09-13": (
        Measurement(1, 376.3, 5.30, 183.3),
        Measurement(4, 640.5, 10.50, 416.7),
        Measurement(16, 1121.0, 22.17, 725.0),
    ),
}

LAYOUT = "published config.json of Kimi K3"
DENSE_WEIGHTS = Figure(108.81 * GB, "B", "published", "FareedKhan-dev/kimi-k3-in-c docs/ARCHITECTURE.md")
HEAD_WEIGHTS = Figure(2.35 * GB, "B", "derived", "half of 4.70 GB embedding and head, same document")
EXPERT_WEIGHTS = Figure(
    3 * 3584 * 3072 * 17 / 32, "B per expert", "derived", f"three 3584 x 3072 matrices at 4.25 bits, {LAYOUT}"
)
MOE_LAYERS, EXPERTS, EXPERTS_PER_TOKEN, MLA_LAYERS = 92, 896, 16, 24
STATE = Figure(
    69 * 96 * 128 * 128 * 4, "B per request", "derived", f"69 KDA layers, 96 heads, fp32, {LAYOUT}"
)
MLA_ROW = Figure(
    MLA_LAYERS * 576 * 2, "B per token", "derived", f"24 MLA layers of 512 + 64 in bf16, {LAYOUT}"
)
BANDWIDTH = Figure(8 * 8000 * GB, "B/s", "derived", "8 GPUs at 8 TB/s (B300 figure not confirmed)")
STEP_MEASURED = Figure(
    9.01e-3, "s", "published", "vLLM blog 2026-07-27: GB300 TP8, batch 1, 8K/1K, no drafts"
)
ACTIVE_PARAMETERS = Figure(104e9, "parameters", "published", "JustVugg/colibri docs/kimi_k3.md")
ATTENTION_WORK = Figure(
    MLA_LAYERS * 96 * (192 + 128) * 2,
    "FLOP per token pair",
    "derived",
    f"q.k of 192 and p.v of 128, {LAYOUT}",
)
PREFILL_MEASURED = Figure(0.3763, "s", "published", f"TTFT of 8,000 tokens at concurrency 1, {VLLM_BLOG}")


def experts_touched(batch: int) -> float:
    """Expected number of distinct experts a layer reads for a batch: 896 (1 - (1 - 16/896)^B)."""
    untouched = 1.0
    for _ in range(batch):  # a loop of products: pow differs in its last bit between platforms
        untouched *= 1 - EXPERTS_PER_TOKEN / EXPERTS
    return EXPERTS * (1 - untouched)


def roofline_step(batch: int, context: int) -> float:
    """Memory-bound time of one decode step in seconds: weights once, state read and written, MLA rows read.

    batch requests at `context` tokens each. A lower bound: no launch, no communication, no compute.
    """
    if batch < 1 or context < 0:
        raise ValueError(f"batch is {batch} and context {context}; need at least 1 request and 0 tokens")
    experts = MOE_LAYERS * experts_touched(batch) * EXPERT_WEIGHTS.value
    requests = batch * (2 * STATE.value + context * MLA_ROW.value)
    return (DENSE_WEIGHTS.value + HEAD_WEIGHTS.value + experts + requests) / BANDWIDTH.value


STEP_OVERHEAD = Figure(
    STEP_MEASURED.value - roofline_step(1, 8192),
    "s",
    "derived",
    "measured step at batch 1 less the roofline: launches and communication",
)


def decode_step(batch: int, context: int) -> float:
    """Time of one decode step in seconds: the roofline plus the overhead seen at batch 1."""
    return roofline_step(batch, context) + STEP_OVERHEAD.value


def prefill_work(new_tokens: int, cached_tokens: int = 0) -> float:
    """FLOP to prefill new tokens behind a cached prefix: 2 per active parameter, and attention per pair."""
    if new_tokens < 0 or cached_tokens < 0:
        raise ValueError(
            f"new_tokens is {new_tokens}, cached_tokens {cached_tokens}; both must be at least 0"
        )
    pairs = new_tokens * cached_tokens + new_tokens * new_tokens / 2
    return 2 * ACTIVE_PARAMETERS.value * new_tokens + ATTENTION_WORK.value * pairs


PREFILL_SPEED = Figure(
    prefill_work(8000) / PREFILL_MEASURED.value,
    "FLOP/s",
    "derived",
    "work of 8,000 tokens over their measured TTFT; a fixed overhead cannot be told apart from one point",
)


def prefill_time(new_tokens: int, cached_tokens: int = 0, share: float = 1.0) -> float:
    """Seconds to prefill on one 8-GPU cluster, or on a share of its compute."""
    if not 0 < share <= 1:
        raise ValueError(f"share is {share}; a share of the compute lies in 0 .. 1 and above 0")
    return prefill_work(new_tokens, cached_tokens) / (PREFILL_SPEED.value * share)


def ttft(prompt_tokens: int, hit_tokens: int = 0, queue: float = 0.0) -> float:
    """Time to first token in seconds: queueing, then prefill of what the prefix cache did not hold.

    At least the last prompt token is always computed, so a hit covers at most prompt_tokens - 1.
    """
    if not 0 <= hit_tokens < prompt_tokens:
        raise ValueError(f"hit_tokens is {hit_tokens}; it must lie in 0 .. {prompt_tokens - 1}")
    return queue + prefill_time(prompt_tokens - hit_tokens, hit_tokens)


@dataclass(frozen=True)
class Price:
    """Price in nano-dollars per token (thousandths of a dollar per million tokens), exact integers."""

    miss: int
    hit: int
    output: int
    badge: str
    source: str

    def cost(self, miss_tokens: int, hit_tokens: int, output_tokens: int) -> int:
        """Nano-dollars for prompt tokens computed, prompt tokens found in the cache, tokens produced."""
        return self.miss * miss_tokens + self.hit * hit_tokens + self.output * output_tokens


PRICES = {
    "kimi-k3": Price(3000, 300, 15000, "published", "2026-07-16 price list as quoted in codeburn PR #709"),
    "kimi-k2.6": Price(950, 160, 4000, "published", "platform.moonshot.ai, developer.puter.com"),
    "kimi-k2.7-code": Price(950, 190, 4000, "published", "platform.moonshot.ai, developer.puter.com"),
    "kimi-k2.5": Price(600, 100, 3000, "published", "platform.moonshot.ai, developer.puter.com"),
}

FIGURES = {
    "dense_weights": DENSE_WEIGHTS,
    "head_weights": HEAD_WEIGHTS,
    "expert_weights": EXPERT_WEIGHTS,
    "state": STATE,
    "mla_row": MLA_ROW,
    "bandwidth": BANDWIDTH,
    "step_measured": STEP_MEASURED,
    "step_overhead": STEP_OVERHEAD,
    "active_parameters": ACTIVE_PARAMETERS,
    "attention_work": ATTENTION_WORK,
    "prefill_measured": PREFILL_MEASURED,
    "prefill_speed": PREFILL_SPEED,
}
