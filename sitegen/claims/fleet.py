"""Claims about many clusters: hashing, budgets, latency, price."""

from sitegen.claims.evidence import CONDITIONS, FAILS, HOLDS, Claim, cell, metric, run

POINTS = run("consistent-hashing", vnodes=160, sessions=40000)
HOT = run("consistent-hashing", vnodes=160, hot=30)
JOIN = run("minimal-disruption")
MODULO = run("minimal-disruption", scheme="modulo")
DEATH = {"after": "abcefghij"}
BUDGETS = run("budget-isolation")
FLEET = run("fleet-simulation")
ONE_CLUSTER = {"clusters": 1, "burst": 4.0}
SHORT = run("fleet-simulation", traffic="short", burst=1.0)
AGENTS = run("fleet-simulation", traffic="agents", burst=2.0, vip_percent=40)


def even(n) -> str:
    """The fullest node has at most a quarter more than the mean; conditions: with one point each, or a hot key."""
    if n.peak > 1.25:
        return FAILS
    return HOLDS if max(n.peak_one, n.load_hot) <= 1.25 else CONDITIONS


def few_move(n) -> str:
    """Hardly more keys move than must, none between survivors; modulo moves over five times as many as must."""
    return HOLDS if n.moved <= 1.5 * n.ideal and n.needless == 0 and n.modulo > 5 * n.ideal else FAILS


def spread(n) -> str:
    """No survivor takes over more than about a third of what a dead node held."""
    if n.secondary > 0.34:
        return FAILS
    return HOLDS if n.one_point <= 0.34 else CONDITIONS


def within_200_and_above_800(n) -> str:
    """One tab, both halves of the claim; conditions where other traffic or another measure breaks a half."""
    if n.isolated > 200 or n.shared <= 800:
        return FAILS
    return CONDITIONS if max(n.last_token, n.exponential, n.routed) > 200 else HOLDS


def under_a_cent(n) -> str:
    """What a request costs, for three kinds of traffic."""
    prices = (n.chat, n.short, n.agents)
    return HOLDS if max(prices) < 0.01 else CONDITIONS if min(prices) < 0.01 else FAILS


CLAIMS = (
    Claim("even-spread", "fleet", (
        metric("peak", POINTS, "peak_to_mean"), metric("peak_one", run("consistent-hashing", vnodes=1), "peak_to_mean"),
        metric("load_hot", HOT, "load_peak_to_mean"),
    ), even),
    Claim("few-keys-move", "fleet", (
        metric("moved", JOIN, "moved_fraction"), metric("ideal", JOIN, "ideal_fraction"),
        metric("needless", JOIN, "moved_between_survivors"), metric("modulo", MODULO, "moved_fraction"),
    ), few_move),
    Claim("no-avalanche", "fleet", (
        metric("secondary", run("minimal-disruption", **DEATH, failover="secondary"), "reprefill_tokens_max_share"),
        metric("one_point", run("minimal-disruption", **DEATH, vnodes=1), "reprefill_tokens_max_share"),
    ), spread),
    Claim("own-quota", "fleet", (
        metric("changed", BUDGETS, "vip_changed_by_burst"),
        metric("changed_lending", run("budget-isolation", policy="borrow"), "vip_changed_by_burst"),
        metric("changed_priority", run("budget-isolation", policy="priority"), "vip_changed_by_burst"),
        metric("price", BUDGETS, "ordinary_price"),
    ), lambda n: FAILS if n.changed else CONDITIONS if n.changed_lending or n.changed_priority else HOLDS),
    Claim("vip-p99", "fleet", (
        metric("isolated", FLEET, "vip_p99_isolated_ms"), metric("shared", FLEET, "vip_p99_shared_ms"),
        cell("last_token", FLEET, "meanings", ("until the last token",), "isolated"),
        metric("exponential", run("fleet-simulation", traffic="exponential", **ONE_CLUSTER, vip_percent=38),
               "vip_p99_isolated_ms"),
        metric("routed", run("fleet-simulation", router="round_robin"), "vip_p99_isolated_ms"),
        cell("measured_flow", FLEET, "measured", ("flow control",), "p99"),
        cell("measured_open", FLEET, "measured", ("no protection",), "p99"),
    ), within_200_and_above_800),
    Claim("under-one-cent", "fleet", (
        metric("short", SHORT, "cost_per_request_usd"), metric("chat", FLEET, "cost_per_request_usd"),
        metric("chat_needs", FLEET, "one_cent_hit_rate"), metric("agents", AGENTS, "cost_per_request_usd"),
    ), under_a_cent),
)
