"""Closed forms of queueing theory: what a simulation has to agree with.

Notation: lam arrivals per second, mu services per second and server, a = lam/mu the offered load in servers,
rho = a/c the utilisation of c servers, W_q the mean wait before service. Times come out in the unit of 1/mu.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, exp, isfinite, log


class Unstable(ValueError):
    """The load reaches the capacity, so the queue grows without bound and no mean exists."""


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not (isfinite(value) and value > 0):
            raise ValueError(f"{name} is {value}; it must be finite and above 0")


def _servers(servers: int) -> None:
    if isinstance(servers, bool) or not isinstance(servers, int) or servers < 1:
        raise ValueError(f"servers is {servers!r}; it must be an integer of at least 1")


def _stable(utilisation: float) -> None:
    if utilisation >= 1:
        raise Unstable(
            f"utilisation is {utilisation:.4g}; from 1 on the queue grows without bound (unstable)"
        )


def erlang_b(servers: int, load: float) -> float:
    """Probability that an arrival finds all servers busy when it cannot wait (M/M/c/c).

    B_0 = 1, B_k = a B_{k-1} / (k + a B_{k-1}).
    """
    _servers(servers)
    _positive(load=load)
    blocking = 1.0
    for k in range(1, servers + 1):
        blocking = load * blocking / (k + load * blocking)
    return blocking


def erlang_c(servers: int, load: float) -> float:
    """Probability that an arrival has to wait (M/M/c): B / (1 - rho (1 - B)).

    Source: mmarzolla/queueing inst/erlangc.m.
    """
    blocking = erlang_b(servers, load)
    rho = load / servers
    _stable(rho)
    return blocking / (1 - rho * (1 - blocking))


@dataclass(frozen=True)
class MMc:
    """The M/M/c queue, first come first served: Poisson arrivals, exponential service, c servers."""

    arrival_rate: float
    service_rate: float
    servers: int

    def __post_init__(self):
        _servers(self.servers)
        _positive(arrival_rate=self.arrival_rate, service_rate=self.service_rate)
        _stable(self.utilisation)

    @property
    def utilisation(self) -> float:
        return self.arrival_rate / (self.servers * self.service_rate)

    @property
    def _drain(self) -> float:
        return self.servers * self.service_rate - self.arrival_rate

    @property
    def wait_probability(self) -> float:
        return erlang_c(self.servers, self.arrival_rate / self.service_rate)

    @property
    def mean_wait(self) -> float:
        """W_q = C / (c mu - lam)."""
        return self.wait_probability / self._drain

    @property
    def mean_response(self) -> float:
        return self.mean_wait + 1 / self.service_rate

    @property
    def mean_queue(self) -> float:
        """Mean number waiting, by Little's law."""
        return self.arrival_rate * self.mean_wait

    def wait_exceeds(self, time: float) -> float:
        """P(W > t) = C exp(-(c mu - lam) t)."""
        return self.wait_probability * exp(-self._drain * time)

    def wait_percentile(self, p: float) -> float:
        """The wait that a share p of the arrivals does not exceed; 0 when they do not wait at all."""
        if not 0 < p < 1:
            raise ValueError(f"p is {p}; it must lie between 0 and 1, for example 0.99")
        waiting = self.wait_probability
        return log(waiting / (1 - p)) / self._drain if waiting > 1 - p else 0.0


def mg1_wait(arrival_rate: float, mean: float, second_moment: float) -> float:
    """Mean wait in M/G/1, Pollaczek-Khinchine: lam E[S^2] / (2 (1 - rho))."""
    _positive(arrival_rate=arrival_rate, mean=mean, second_moment=second_moment)
    _stable(arrival_rate * mean)
    return arrival_rate * second_moment / (2 * (1 - arrival_rate * mean))


def mgc_wait(arrival_rate: float, mean: float, scv: float, servers: int) -> float:
    """Mean wait in M/G/c, approximately: (1 + scv)/2 times M/M/c, scv the squared variation of service.

    Exact for exponential service and for one server, an approximation otherwise (Lee and Longton, 1959).
    """
    if scv < 0:
        raise ValueError(f"scv is {scv}; a squared coefficient of variation is at least 0")
    return (1 + scv) / 2 * MMc(arrival_rate, 1 / mean, servers).mean_wait


@dataclass(frozen=True)
class ServiceClass:
    """A Poisson class at a priority queue: arrivals per second, first two moments of its service time."""

    arrival_rate: float
    mean: float
    second_moment: float

    @classmethod
    def exponential(cls, arrival_rate: float, mean: float) -> "ServiceClass":
        return cls(arrival_rate, mean, 2 * mean * mean)

    @classmethod
    def fixed(cls, arrival_rate: float, mean: float) -> "ServiceClass":
        return cls(arrival_rate, mean, mean * mean)

    def __post_init__(self):
        _positive(arrival_rate=self.arrival_rate, mean=self.mean, second_moment=self.second_moment)


def _cumulative_loads(classes: Sequence[ServiceClass]) -> list[float]:
    """s_0 = 0, s_k = sum of the loads of the k most urgent classes."""
    loads = [0.0]
    for one in classes:
        loads.append(loads[-1] + one.arrival_rate * one.mean)
    _stable(loads[-1])
    return loads


def priority_waits(classes: Sequence[ServiceClass]) -> list[float]:
    """Mean wait per class in M/G/1 with non-preemptive priorities, most urgent class first.

    W_k = W_0 / ((1 - s_{k-1})(1 - s_k)), W_0 = sum lam_i E[S_i^2] / 2.
    Source: Cobham (Operations Research, 1954); MIT Urban Operations Research, chapter 4.9, eqs 4.111-4.113.
    """
    loads = _cumulative_loads(classes)
    residual = sum(one.arrival_rate * one.second_moment for one in classes) / 2
    return [residual / ((1 - loads[k]) * (1 - loads[k + 1])) for k in range(len(classes))]


def preemptive_responses(classes: Sequence[ServiceClass]) -> list[float]:
    """Mean time in system per class in M/G/1 with preemptive-resume priorities, most urgent class first.

    T_k = E[S_k] / (1 - s_{k-1}) + (sum_{i<=k} lam_i E[S_i^2] / 2) / ((1 - s_{k-1})(1 - s_k)).
    """
    loads, residual, times = _cumulative_loads(classes), 0.0, []
    for k, one in enumerate(classes):
        residual += one.arrival_rate * one.second_moment / 2
        times.append(one.mean / (1 - loads[k]) + residual / ((1 - loads[k]) * (1 - loads[k + 1])))
    return times


def mmc_priority_waits(arrival_rates: Sequence[float], service_rate: float, servers: int) -> list[float]:
    """Mean wait per class in M/M/c with non-preemptive priorities and one service rate, most urgent first.

    W_k = (C / (c mu)) / ((1 - s_{k-1})(1 - s_k)), C the Erlang C of the whole load.
    """
    pooled = MMc(sum(arrival_rates), service_rate, servers)
    residual = pooled.wait_probability / (servers * service_rate)
    loads = [0.0]
    for rate in arrival_rates:
        _positive(arrival_rate=rate)
        loads.append(loads[-1] + rate / (servers * service_rate))
    return [residual / ((1 - loads[k]) * (1 - loads[k + 1])) for k in range(len(arrival_rates))]


def conserved_wait(classes: Sequence[ServiceClass]) -> float:
    """sum rho_i W_i = rho W_0 / (1 - rho), whatever the (work-conserving, non-preemptive) order of service.

    Source: Kleinrock's conservation law (Queueing Systems, volume 2, section 3.4).
    """
    rho = _cumulative_loads(classes)[-1]
    residual = sum(one.arrival_rate * one.second_moment for one in classes) / 2
    return rho * residual / (1 - rho)


def supermarket_time(load: float, choices: int) -> float:
    """Mean time in system, in units of 1/mu, when each arrival joins the shortest of d random queues.

    T = sum_i rho^((d^i - d)/(d - 1)), for many M/M/1 servers; d = 1 is M/M/1 itself.
    Source: Mitzenmacher, "The power of two choices in randomized load balancing" (TPDS 2001).
    """
    _servers(choices)
    _positive(load=load)
    _stable(load)
    if choices == 1:
        return 1 / (1 - load)
    total, term, i = 0.0, 1.0, 1
    while term > 1e-17:
        total += term
        i += 1
        term = load ** ((choices**i - choices) / (choices - 1))
    return total


def burst_peak_wait(seconds: float, burst_load: float) -> float:
    """Wait at the end of an overload, in the fluid limit of a shared FIFO queue: B (rho_b - 1) seconds."""
    _positive(seconds=seconds, burst_load=burst_load)
    return seconds * max(0.0, burst_load - 1)


def burst_drain_time(seconds: float, burst_load: float, base_load: float) -> float:
    """Time until that backlog is gone at the base load: B (rho_b - 1) / (1 - rho_base) seconds."""
    _stable(base_load)
    return burst_peak_wait(seconds, burst_load) / (1 - base_load)


def jain_index(shares: Sequence[float]) -> float:
    """Jain's fairness index (sum x)^2 / (n sum x^2): 1 when all are equal, 1/n when one has everything."""
    squares = sum(x * x for x in shares)
    if not squares > 0:
        raise ValueError("shares is empty or all zero; fairness needs something to share")
    return sum(shares) ** 2 / (len(shares) * squares)


def max_min_shares(demands: Sequence[float], capacity: float) -> list[float]:
    """Max-min fair division: no one gets more than asked, no share can grow at the cost of a smaller one."""
    shares, left = [0.0] * len(demands), capacity
    by_demand = sorted(range(len(demands)), key=lambda i: (demands[i], i))
    for place, i in enumerate(by_demand):
        shares[i] = min(demands[i], left / (len(demands) - place))
        left -= shares[i]
    return shares


def squished_probability(queues: int, hand: int, elephants: int) -> float:
    """Probability that heavy flows occupy every queue of a light flow's hand under shuffle sharding.

    P = sum_u P(union of the elephants' hands has u queues) C(u, h) / C(q, h).
    Source: kubernetes/website content/en/docs/concepts/cluster-administration/flow-control.md.
    """
    if not 1 <= hand <= queues or elephants < 0:
        raise ValueError(
            f"hand is {hand} of {queues} queues, {elephants} elephants; need 1 <= hand <= queues"
        )
    hands = comb(queues, hand)
    union = {0: 1.0}
    for _ in range(elephants):
        wider: dict[int, float] = {}
        for size, p in union.items():
            for new in range(max(0, hand - size), min(hand, queues - size) + 1):
                ways = comb(queues - size, new) * comb(size, hand - new)
                wider[size + new] = wider.get(size + new, 0.0) + p * ways / hands
        union = wider
    return sum(p * comb(size, hand) / hands for size, p in union.items())
