"""The fleet against its peers, side by side in one run: SimPy for simulation, uhashring for look-ups.

The peers are not dependencies: where one is not installed, its lines say so and only our own figures appear.
"""

import gc
from collections.abc import Callable
from importlib.util import find_spec
from time import perf_counter

import numpy as np

from k3core.fleet.cluster import ClusterSpec, RequestClass
from k3core.fleet.hashing import Ring, make_scheme, mix64, node_names
from k3core.fleet.latency import prefill_time
from k3core.fleet.simulate import Fleet, run
from k3core.fleet.traffic import Phase, Requests, Traffic, make_requests

REPEATS = 5


def seconds(work: Callable[[], object]) -> float:
    """Wall time of one call, with garbage collected before it."""
    gc.collect()
    begin = perf_counter()
    work()
    return perf_counter() - begin


def side_by_side(
    title: str, unit: str, count: int, ours: Callable, peer: str, theirs: Callable | None, goal: float
):
    """Best of several alternating runs, so that both see the same machine; prints rates and their ratio."""
    times = [(seconds(ours), seconds(theirs) if theirs else 0.0) for _ in range(REPEATS)]
    mine, other = (min(column) for column in zip(*times, strict=True))
    line = f"{title:<34} {count / mine:>12,.0f} {unit}/s"
    if theirs is None:
        print(f"{line}   ({peer} is not installed: no comparison)")
        return
    ratio = other / mine
    verdict = "meets" if ratio >= goal else "MISSES"
    print(f"{line}   {peer} {count / other:>9,.0f}   ratio {ratio:5.1f}, {verdict} the goal of {goal:g}")


def queue_of(n: int) -> Requests:
    rng = np.random.default_rng(1)
    return Requests.plain(np.cumsum(rng.exponential(1 / 8, n)), rng.exponential(1.0, n))


def simpy_queue(requests: Requests, servers: int) -> list[float]:
    """M/M/c the usual way: one process per customer."""
    import simpy

    env = simpy.Environment()
    desk = simpy.Resource(env, servers)
    arrival, decode = requests.arrival.tolist(), requests.decode.tolist()
    waits = [0.0] * len(arrival)

    def customer(i):
        with desk.request() as turn:
            yield turn
            waits[i] = env.now - arrival[i]
            yield env.timeout(decode[i])

    run_arrivals(env, arrival, customer)
    return waits


def run_arrivals(env, arrival: list[float], process: Callable) -> None:
    """Start process(i) at each arrival and run until all have ended."""

    def source():
        for i, at in enumerate(arrival):
            yield env.timeout(max(0.0, at - env.now))
            env.process(process(i))

    env.process(source())
    env.run()


def fleet_traffic() -> Requests:
    vip = Traffic((Phase(400, 4),), 0.8, True, 6000, 300, conversations=200, turn_tokens=500, turns=20)
    ordinary = Traffic((Phase(400, 16),), 0.8, True, 6000, 300, conversations=800, turn_tokens=500, turns=20)
    return make_requests([vip, ordinary], np.random.default_rng(0))


SPEC = ClusterSpec(slots=64, pages=4000)
FLEET = Fleet(8, SPEC, (RequestClass("vip", 0), RequestClass("ordinary", 1)), "priority", "affinity")


def simpy_fleet(requests: Requests) -> list[float]:
    """The same fleet in SimPy: slots, pages, a prefill lane per cluster, priorities, session prefixes."""
    import simpy

    env = simpy.Environment()
    clusters = range(FLEET.clusters)
    slots = [simpy.PriorityResource(env, SPEC.slots) for _ in clusters]
    lanes = [simpy.PriorityResource(env, 1) for _ in clusters]
    pages = [simpy.Container(env, SPEC.pages, init=SPEC.pages) for _ in clusters]
    prefixes: list[dict[int, int]] = [{} for _ in clusters]
    arrival, klass, session, prompt, output, decode = (v.tolist() for v in vars(requests).values())
    names = [f"cluster{c}" for c in clusters]
    home = make_scheme("rendezvous", names).assign(mix64(requests.session.astype(np.uint64))).tolist()
    end = [0.0] * len(arrival)

    def serve(i):
        c = home[i]
        with slots[c].request(priority=klass[i]) as slot:
            yield slot
            need = -(-(prompt[i] + output[i]) // SPEC.page_tokens) + SPEC.state_pages
            yield pages[c].get(need)
            with lanes[c].request(priority=klass[i]) as lane:
                yield lane
                known = min(prefixes[c].get(session[i], 0), prompt[i] - 1)
                hit = known // SPEC.page_tokens * SPEC.page_tokens
                yield env.timeout(prefill_time(prompt[i] - hit, hit))
            yield env.timeout(decode[i])
            prefixes[c][session[i]] = prompt[i] + output[i]
            yield pages[c].put(need)
        end[i] = env.now

    run_arrivals(env, arrival, serve)
    return end


def main() -> None:
    has_simpy, has_uhashring = (find_spec(name) is not None for name in ("simpy", "uhashring"))

    small, nodes = queue_of(40_000), node_names(10)
    desk = Fleet(1, ClusterSpec(10), (RequestClass("all"),), "shared", "round_robin")
    theirs = (lambda: simpy_queue(small, 10)) if has_simpy else None
    side_by_side("M/M/10", "customers", len(small), lambda: run(small, desk), "SimPy", theirs, 10)

    requests = fleet_traffic()
    theirs = (lambda: simpy_fleet(requests)) if has_simpy else None
    side_by_side(
        "fleet of 8, full model", "requests", len(requests), lambda: run(requests, FLEET), "SimPy", theirs, 3
    )

    keys, ring, theirs = np.arange(200_000), Ring(nodes, vnodes=160), None
    if has_uhashring:
        from uhashring import HashRing

        other = HashRing(nodes=nodes)
        theirs = lambda: [other.get_node(key) for key in range(200_000)]  # noqa: E731
    title = "integer keys on a ring of 1,600"
    side_by_side(title, "keys", len(keys), lambda: ring.assign(mix64(keys)), "uhashring", theirs, 10)


if __name__ == "__main__":
    main()
