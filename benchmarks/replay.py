"""Trace replay: requests per second by policy, grain and capacity; flat cost; kvcache-simulator beside it.

The conversation trace of Mooncake (FAST25-release/traces/conversation_trace.jsonl) is read from the folder that
the environment variable K3_TRACES names, else from traces/; without it a made-up trace of the same size is used.
"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import numpy as np

from k3core.prefix_cache.policy import read_policy
from k3core.traces import WORKLOADS, TraceCache, finish, generate_trace, read_trace, replay

TRACES = Path(os.environ.get("K3_TRACES", "traces"))
BLOCK_BYTES, CHECKPOINT_BYTES = 13_824, 56_171_520  # Kimi K3, TP 8, fp8: per token; all KDA layers
POLICIES = ("dense", "align", "align+8192", "marconi", "marconi+8192", "retain:0")
CAPACITY = 2**38


def seconds(policy, grain, capacity, requests):
    """Time of one replay, and what it counted."""
    cache = TraceCache(read_policy(policy), grain, 512, capacity, grain * BLOCK_BYTES, CHECKPOINT_BYTES)
    start = process_time()
    counts = finish(replay(requests, cache))
    return process_time() - start, counts


def policies(requests):
    print(f"  {'grain':>5}  {'policy':<13}{'unlimited':>10}{'256 GiB':>9}   hit rate of each")
    for grain in (512, 1536):
        for policy in POLICIES:
            free, unlimited = seconds(policy, grain, None, requests)
            full, limited = seconds(policy, grain, CAPACITY, requests)
            print(f"  {grain:>5}  {policy:<13}{free:>8.2f} s{full:>7.2f} s   {unlimited.hit_rate:.4f} "
                  f"{limited.hit_rate:.4f}")


def flatness():
    """Microseconds per hash block, for each tenth of a trace of 100,000 requests."""
    requests = generate_trace(WORKLOADS["multi-turn"], 100_000, np.random.default_rng(0))
    cache = TraceCache(read_policy("marconi"), 1536, 512, 2**42, 1536 * BLOCK_BYTES, CHECKPOINT_BYTES)
    costs = []
    for _ in range(10):
        batch = [next(requests) for _ in range(10_000)]
        before, start = cache.counts.blocks_total, process_time()
        finish(replay(batch, cache))
        costs.append(1e6 * (process_time() - start) / (cache.counts.blocks_total - before))
    print("  100,000 requests, us per block by tenths: " + " ".join(f"{cost:.2f}" for cost in costs))


def peer(lines, requests):
    """The Python code of kvcache-simulator (lru, rows only) on the same lines and capacity."""
    try:
        from kvcache_sim.plan import build_execution_plan
        from kvcache_sim.policies import simulate_policy
        from kvcache_sim.trace import parse_trace_file
    except ImportError:
        print("  kvcache-simulator is not installed (pip install kvcache-simulator==0.1.3): not compared")
        return
    start = process_time()
    own = list(read_trace(lines))
    middle = process_time()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace.jsonl"
        path.write_bytes(b"".join(lines))
        begin = process_time()
        trace = parse_trace_file(str(path), block_size=512)
        plan = build_execution_plan(trace)
        prepared = process_time() - begin
    begin = process_time()
    simulate_policy(plan, "lru", CAPACITY // (512 * BLOCK_BYTES))
    simulated = process_time() - begin
    took, _ = seconds("marconi", 512, CAPACITY, own)
    count = len(requests)
    print(f"  k3core            read {middle - start:.2f} s, replay {took:.2f} s: {count / took:>7,.0f} "
          "requests/s (rows and states)")
    print(f"  kvcache-simulator read {prepared:.2f} s, replay {simulated:.2f} s: {count / simulated:>7,.0f} "
          "requests/s (rows only)")


def main():
    """Print the measurements."""
    path = TRACES / "conversation_trace.jsonl"
    if path.exists():
        lines = path.read_bytes().splitlines(keepends=True)
        requests = list(read_trace(lines))
        policies(requests)
        peer(lines, requests)
    else:
        print(f"  {path} is not here: a made-up trace instead, and no comparison")
        policies(list(generate_trace(WORKLOADS["agentic"], 12_000, np.random.default_rng(0))))
    flatness()
