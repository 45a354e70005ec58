"""Who goes next on a cluster: the admission policies.

Shared policies put all classes into one pool and differ in who goes next; reserving policies give every class
a pool of its own. Requests are integers, indices into the traffic; all ties go to the lower class index.
"""

from collections import deque
from collections.abc import Sequence

from .cluster import Budget, ClusterSpec, Pool, RequestClass, RequestColumns, check_budgets


class Admission:
    """One cluster's queues and pools. Subclasses decide which pool serves a class and who goes next."""

    def __init__(self, classes: Sequence[RequestClass], spec: ClusterSpec, columns: RequestColumns):
        self.classes, self.columns = classes, columns
        self.queues: list[deque[int]] = [deque() for _ in classes]
        self.running = [0] * len(classes)
        self.waiting_pages = [0] * len(classes)
        self.waiting_total, self.running_total = 0, 0
        budgets = self.budgets(classes, spec)
        self.pools = [Pool(index, budget, spec, columns) for index, budget in enumerate(budgets)]
        self.largest = [self.pool_of(klass).store.total for klass in range(len(classes))]

    @staticmethod
    def budgets(classes: Sequence[RequestClass], spec: ClusterSpec) -> list[Budget]:
        """One pool with everything the cluster has."""
        return [Budget(spec.slots, spec.pages, 100)]

    def pool_of(self, klass: int) -> Pool:
        return self.pools[0]

    def seed(self, i: int, tokens: int) -> None:
        """Hold a prefix of request i's session from before the start."""
        self.pool_of(self.columns.klass[i]).store.seed(self.columns.session[i], tokens)

    def offer(self, i: int) -> str | None:
        """Queue the request, or say why it is rejected."""
        klass = self.columns.klass[i]
        limit = self.classes[klass].queue_limit
        if limit is not None and len(self.queues[klass]) >= limit:
            return "queue full"
        if self.columns.need[i] > self.largest[klass]:
            return "larger than its budget"
        self.queues[klass].append(i)
        self.waiting_total += 1
        self.waiting_pages[klass] += self.columns.need[i]
        return None

    def next(self) -> tuple[int, Pool, int] | None:
        """Start and return the next request that can start: (request, pool, hit tokens), or None."""
        raise NotImplementedError

    def _start(self, klass: int, pool: Pool) -> tuple[int, Pool, int] | None:
        i = self.queues[klass][0]
        hit = pool.try_start(i)
        if hit is None:
            return None
        self.queues[klass].popleft()
        self.running[klass] += 1
        self.waiting_total -= 1
        self.running_total += 1
        self.waiting_pages[klass] -= self.columns.need[i]
        return i, pool, hit

    def finish(self, i: int, pool: Pool, hit: int) -> None:
        self.running[self.columns.klass[i]] -= 1
        self.running_total -= 1
        pool.finish(i, hit)

    # What a router may see here on behalf of a class; reserving policies show only the class's own.

    def load(self, klass: int) -> int:
        """4 per waiting and 1 per running request."""
        return 4 * self.waiting_total + self.running_total

    def in_flight(self, klass: int) -> int:
        """Requests waiting or running."""
        return self.waiting_total + self.running_total

    def cache_cost(self, i: int) -> int:
        """Blocks to compute for request i here, plus blocks that waiting and running requests hold."""
        return (
            self._blocks_to_compute(i, self.pools[0])
            + self.pools[0].store.active_pages
            + sum(self.waiting_pages)
        )

    def _blocks_to_compute(self, i: int, pool: Pool) -> int:
        store, prompt = pool.store, self.columns.prompt[i]
        return -(-(prompt - store.hit(self.columns.session[i], prompt)) // store.page_tokens)


class _Shared(Admission):
    """One pool for all; the class that `choose` names goes next, and blocks the others until it fits."""

    def choose(self) -> int | None:
        raise NotImplementedError

    def next(self):
        klass = self.choose()
        return None if klass is None else self._start(klass, self.pools[0])


class SharedFifo(_Shared):
    """First come, first served, whatever the class."""

    def __init__(self, classes, spec, columns):
        super().__init__(classes, spec, columns)
        self.line: deque[int] = deque()  # the class of every waiting request, in order of arrival

    def offer(self, i):
        reason = super().offer(i)
        if reason is None:
            self.line.append(self.columns.klass[i])
        return reason

    def choose(self):
        return self.line[0] if self.line else None

    def _start(self, klass, pool):
        started = super()._start(klass, pool)
        if started is not None:
            self.line.popleft()
        return started


class SharedPriority(_Shared):
    """The most urgent waiting class first, without preemption: reserves nothing, can starve the others."""

    def __init__(self, classes, spec, columns):
        super().__init__(classes, spec, columns)
        self.order = sorted(range(len(classes)), key=lambda k: (classes[k].priority, k))

    def choose(self):
        for klass in self.order:
            if self.queues[klass]:
                return klass
        return None


class VirtualTokenCounter(_Shared):
    """The class that has received the least service goes next (Sheng et al., OSDI 2024, arXiv 2401.00588).

    Service is 1 per prompt token and 2 per output token, all charged at the start, as the paper's variant
    that knows output lengths. A class that becomes active is lifted to the least counter among the active
    ones.
    """

    INPUT_WEIGHT, OUTPUT_WEIGHT = 1, 2

    def __init__(self, classes, spec, columns):
        super().__init__(classes, spec, columns)
        self.counters = [0] * len(classes)
        self.last_served = 0

    def offer(self, i):
        klass = self.columns.klass[i]
        was_idle = not self.queues[klass]
        reason = super().offer(i)
        if reason is None and was_idle:
            active = [self.counters[k] for k, queue in enumerate(self.queues) if queue and k != klass]
            floor = min(active) if active else self.counters[self.last_served]
            self.counters[klass] = max(self.counters[klass], floor)
        return reason

    def choose(self):
        return min(
            (k for k, queue in enumerate(self.queues) if queue),
            key=lambda k: (self.counters[k], k),
            default=None,
        )

    def _start(self, klass, pool):
        started = super()._start(klass, pool)
        if started is not None:
            i = started[0]
            self.counters[klass] += (
                self.INPUT_WEIGHT * self.columns.prompt[i] + self.OUTPUT_WEIGHT * self.columns.output[i]
            )
            self.last_served = klass
        return started


class StrictReservation(Admission):
    """A pool per class, and nothing crosses: what one class does cannot change another's schedule."""

    @staticmethod
    def budgets(classes, spec):
        return check_budgets(classes, spec)

    def pool_of(self, klass):
        return self.pools[klass]

    def next(self):
        for klass, queue in enumerate(self.queues):
            if queue and (started := self._start(klass, self.pools[klass])) is not None:
                return started
        return None

    def load(self, klass):
        return 4 * len(self.queues[klass]) + self.running[klass]

    def in_flight(self, klass):
        return len(self.queues[klass]) + self.running[klass]

    def cache_cost(self, i):
        klass = self.columns.klass[i]
        own = self.pools[klass]
        return self._blocks_to_compute(i, own) + own.store.active_pages + self.waiting_pages[klass]


class BorrowingReservation(StrictReservation):
    """A pool per class; a class whose own pool is full may use another's, while its owner has no one waiting.

    Lent resources come back only when the borrower finishes, so the owner can find its pool occupied. At most
    lend_percent of a pool's slots are lent (as lendablePercent in Kubernetes API priority and fairness).
    """

    def next(self):
        started = super().next()
        if started is not None:
            return started
        for klass, queue in enumerate(self.queues):
            if not queue:
                continue
            for owner, pool in enumerate(self.pools):
                if owner != klass and not self.queues[owner] and pool.lent < pool.lendable:
                    started = self._start(klass, pool)
                    if started is not None:
                        pool.lent += 1
                        return started
        return None

    def finish(self, i, pool, hit):
        if pool is not self.pools[self.columns.klass[i]]:
            pool.lent -= 1
        super().finish(i, pool, hit)


POLICIES = {
    "shared": SharedFifo,
    "priority": SharedPriority,
    "vtc": VirtualTokenCounter,
    "token_bucket": SharedFifo,
    "strict": StrictReservation,
    "borrow": BorrowingReservation,
}
"""Admission policies by name; token_bucket is the shared queue behind a TokenBucket per class."""
