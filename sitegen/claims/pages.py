"""Claims about one pool of pages for rows and states."""

from k3core.lab.display import number
from sitegen.claims.evidence import CONDITIONS, FAILS, HOLDS, Claim, cell, metric, run

JITTER = run("allocation-jitter")
RESERVED = run("allocation-jitter", contiguous="reserve")
STEADY = run("allocation-jitter", short_first=70, short_later=70, state_share=42)
CROWD = run("allocation-jitter", memory=16.0, load=120)
SHORT = run("page-table", lengths=(12,) * 8, running=(1,) * 8, num_blocks=48)


def steadier(n) -> str:
    """Steadier means a hundredth of the work at P99."""
    rivals = (n.two_pools, n.moving, n.two_ends, n.reserved)
    better = [100 * n.unified <= rival for rival in rivals]
    return HOLDS if all(better) else CONDITIONS if any(better) else FAILS


def wastes_least(n) -> str:
    """Less wasted than by rivals; holds where a steady pool wastes less than half of what a split one does."""
    if n.unified >= n.two_pools:
        return FAILS
    return HOLDS if n.unified < n.two_ends and n.steady_pool < 0.5 * n.steady_split else CONDITIONS


def robust(n) -> str:
    """A crowd costs at most ten times the work at P99, and four fifths of the mapped bytes are used."""
    if n.p99_crowd > 10 * n.p99_few:
        return FAILS
    return HOLDS if min(n.mapped, n.mapped_short) >= 0.8 else CONDITIONS


CLAIMS = (
    Claim("steadier-access", "pages", (
        metric("unified", JITTER, "p99_work_unified"), metric("two_pools", JITTER, "p99_work_two_pools"),
        metric("moving", JITTER, "p99_work_first_fit"), metric("two_ends", JITTER, "p99_work_two_ends"),
        metric("reserved", RESERVED, "p99_work_first_fit"),
    ), steadier, lambda n: {"times": number(round(n.moving / n.unified / 10_000) * 10_000)}),
    Claim("less-fragmentation", "pages", (
        metric("unified", JITTER, "fragmentation_unified"), metric("two_pools", JITTER, "fragmentation_two_pools"),
        metric("two_ends", JITTER, "fragmentation_two_ends"),
        metric("steady_pool", STEADY, "fragmentation_unified"),
        metric("steady_split", STEADY, "fragmentation_two_pools"),
    ), wastes_least),
    Claim("robust-at-concurrency", "pages", (
        metric("p99_few", JITTER, "p99_work_unified"), metric("p99_crowd", CROWD, "p99_work_unified"),
        cell("crowd", CROWD, "verdict", ("allocator:unified",), "running"),
        metric("mapped", run("page-table"), "mapping_efficiency"), metric("mapped_short", SHORT, "mapping_efficiency"),
    ), robust),
)
