"""What a cluster has and who has a claim on it: classes, budgets, pools.

A cluster has three budgets: slots (each running request holds one recurrent state), pages (MLA rows and
states), and prefill compute (one prompt is computed at a time, at the pool's share of the cluster's speed).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from .prefix_store import PrefixStore
from .traffic import Requests


@dataclass(frozen=True)
class Budget:
    """A class's reserved part of every cluster; pages None only where the cluster has no page limit."""

    slots: int
    pages: int | None = None
    prefill_percent: int = 0


@dataclass(frozen=True)
class RequestClass:
    """A class of requests: smaller priority numbers are more urgent (vLLM's order).

    queue_limit: most requests waiting per cluster, None for no limit. token_rate per second and token_burst:
    the class's token bucket at the entrance of the fleet, counting prompt and output tokens.
    """

    name: str
    priority: int = 0
    budget: Budget | None = None
    queue_limit: int | None = None
    token_rate: float | None = None
    token_burst: float | None = None


@dataclass(frozen=True)
class ClusterSpec:
    """What every cluster of the fleet has; see PrefixStore for the pages."""

    slots: int
    pages: int | None = None
    page_tokens: int = 1536
    state_pages: int = 3
    lend_percent: int = 100

    def __post_init__(self):
        if self.slots < 1:
            raise ValueError(f"slots is {self.slots}; a cluster needs at least 1")
        if self.pages is not None and self.pages < 1:
            raise ValueError(f"pages is {self.pages}; give at least 1, or None for no limit")
        if self.page_tokens < 1 or self.state_pages < 0:
            raise ValueError(
                f"page_tokens is {self.page_tokens}, state_pages {self.state_pages}; need >= 1 and >= 0"
            )
        if not 0 <= self.lend_percent <= 100:
            raise ValueError(f"lend_percent is {self.lend_percent}; it must lie in 0 .. 100")


def check_budgets(classes: Sequence[RequestClass], spec: ClusterSpec) -> list[Budget]:
    """The classes' budgets, if each is sound and together they fit the cluster; ValueError otherwise."""
    budgets = []
    for one in classes:
        if one.budget is None:
            raise ValueError(f"class {one.name} has no budget; reservations need one for every class")
        budget = one.budget
        if budget.slots < 1 or budget.prefill_percent < 1:
            raise ValueError(
                f"class {one.name} reserves {budget.slots} slots and {budget.prefill_percent} % of "
                "the prefill compute; each must be at least 1"
            )
        if (budget.pages is None) != (spec.pages is None):
            raise ValueError(f"class {one.name} reserves {budget.pages} pages of a cluster with {spec.pages}")
        budgets.append(budget)
    totals = {
        "slots": (sum(b.slots for b in budgets), spec.slots),
        "pages": (sum(b.pages or 0 for b in budgets), spec.pages or 0),
        "prefill percent": (sum(b.prefill_percent for b in budgets), 100),
    }
    for name, (reserved, there) in totals.items():
        if reserved > there:
            raise ValueError(f"the budgets reserve {reserved} {name} of {there}; they must fit the cluster")
    return budgets


class RequestColumns:
    """The traffic as Python lists, which look-ups one by one read far faster than arrays.

    tokens: prompt and output together; need: pages they take when nothing is cached.
    """

    def __init__(self, requests: Requests, spec: ClusterSpec):
        self.arrival, self.klass, self.session, self.prompt, self.output, self.decode = (
            values.tolist() for values in vars(requests).values()
        )
        tokens = requests.prompt + requests.output
        self.tokens = tokens.tolist()
        self.need = (-(-tokens // spec.page_tokens) + spec.state_pages).tolist()


class Pool:
    """Slots, pages and a prefill lane, either the whole cluster's or one class's share of it."""

    def __init__(self, index: int, budget: Budget, spec: ClusterSpec, requests: RequestColumns):
        self.index = index
        self.slots, self.free = budget.slots, budget.slots
        self.share = budget.prefill_percent / 100
        self.store = PrefixStore(budget.pages, spec.page_tokens, spec.state_pages)
        self.requests = requests
        self.lane_busy = False
        self.lent = 0
        self.lendable = budget.slots * spec.lend_percent // 100

    def try_start(self, i: int) -> int | None:
        """Start the request if slot, prefill lane and pages allow; its hit in tokens, or None."""
        requests = self.requests
        prompt = requests.prompt[i]
        if self.free == 0 or (prompt and self.lane_busy):
            return None
        hit = self.store.open(requests.session[i], prompt, requests.need[i])
        if hit is not None:
            self.free -= 1
            self.lane_busy = self.lane_busy or prompt > 0
        return hit

    def finish(self, i: int, hit: int) -> None:
        requests = self.requests
        self.free += 1
        self.store.close(requests.session[i], requests.tokens[i], requests.need[i], hit)
