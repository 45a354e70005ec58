"""Sweeps: what a point costs beyond its own work, two processes against one, memory of a worker over thousands."""

import io
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from k3core import __version__
from k3core.sweep.journal import Journal
from k3core.sweep.pools import Processes
from k3core.sweep.running import Progress, compute, missing
from k3core.sweep.spec import read_spec
from k3core.sweep.worker import compute_batch
from k3core.traces import WORKLOADS, generate_trace

SIZES = 'command = "size"\n[grid]\nmodel = "kimi-k3"\ntp = 8\nmax_model_len = {start = 1, stop = 4000, step = 1}\n'
REPLAYS = """
command = "replay"
[grid]
trace = "trace.jsonl"
tp = 8
policy = ["dense", "align", "align+8192", "marconi", "marconi+8192"]
capacity_gib = {start = 1, stop = 200, step = 1}
"""
REQUESTS = 150  # of the made-up trace: about 6 ms of replay on one core


def prepared(folder: Path, source: str, name: str):
    """A sweep whose journal is empty."""
    (folder / f"{name}.toml").write_text(source)
    return read_spec(folder / f"{name}.toml")


def run(sweep, folder: Path, jobs: int, points: int | None = None) -> tuple[float, float]:
    """Seconds on the clock from the first batch to the last, and seconds of processor in all, starts included."""
    before = cpu()
    with tempfile.TemporaryDirectory(dir=folder) as out:
        journal = Journal(Path(out))
        pool = Processes(sweep.command, list(sweep.files.values()), jobs)
        try:
            warm(pool, sweep)
            start = time.perf_counter()
            indices = missing(sweep, journal, False)[:points]
            compute(sweep, indices, pool, journal, Progress(len(sweep), 0, io.StringIO()))
            took = time.perf_counter() - start
            assert len(journal.places) == len(indices)
        finally:
            pool.close()
            journal.close()
    return took, cpu() - before


def cpu() -> float:
    """Seconds of processor that this process and those that have ended under it took."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def warm(pool, sweep) -> None:
    """Start every process, and let it import what it needs."""
    while len(pool.running) < pool.width:
        pool.submit([sweep.point(0).task])
    while pool.running:
        pool.wait()


def overhead(folder: Path) -> None:
    sweep = prepared(folder, SIZES, "sizes")
    wall, start = time.perf_counter(), time.process_time()
    for index in range(len(sweep)):
        compute_batch(__version__, sweep.command, [sweep.point(index).task], {})
    loop, wall = time.process_time() - start, time.perf_counter() - wall
    print(f"  {len(sweep):,} sizes as a loop in one process: {wall:.2f} s, {loop:.2f} s of processor")
    for jobs in (1, 2):
        _, starting = run(sweep, folder, jobs, 0)
        took, processor = run(sweep, folder, jobs)
        each = 1000 * (processor - starting - loop) / len(sweep)
        waited = 1000 * (jobs * took - wall) / len(sweep)
        print(f"  {jobs} process{'es' * (jobs > 1)}: {took:.2f} s, {processor - starting:.2f} s of processor; beyond "
              f"the loop, per point: {waited:.2f} ms on the clock, {each:.2f} ms of processor")


def speedup(folder: Path) -> None:
    """One process and two, in turn, so that whatever else the machine does meets both; busy: its load."""
    requests = generate_trace(WORKLOADS["agentic"], REQUESTS, np.random.default_rng(0))
    (folder / "trace.jsonl").write_text("".join(json.dumps(one._asdict()) + "\n" for one in requests))
    sweep = prepared(folder, REPLAYS, "replays")
    ratios = []
    for _ in range(3):
        one, _ = run(sweep, folder, 1)
        two, _ = run(sweep, folder, 2)
        ratios.append(one / two)
        load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
        print(f"  {len(sweep):,} replays: 1 process {one:.2f} s, 2 processes {two:.2f} s: {one / two:.2f} times{load}")
    print(f"  best of three {max(ratios):.2f} times, on {os.cpu_count()} cores")


def memory(folder: Path) -> None:
    """Largest size of a fresh process, point by point, in batches of 500."""
    program = f"""
import resource
from pathlib import Path
from k3core import __version__
from k3core.sweep.spec import read_spec
from k3core.sweep.worker import compute_batch
sweep = read_spec(Path({str(folder / "replays.toml")!r}))
sources = {{file.sha256: file.source for file in sweep.files.values()}}
for turn in range(6):
    tasks = [sweep.point((500 * turn + i) % len(sweep)).task for i in range(500)]
    compute_batch(__version__, sweep.command, tasks, sources)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    try:
        import resource  # noqa: F401
    except ImportError:
        return
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    sizes = ", ".join(f"{int(size) / 1024:.1f}" for size in done.stdout.split())
    print(f"  MiB of one process after each 500 replays: {sizes}")


def main():
    """Print the measurements."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        overhead(folder)
        speedup(folder)
        memory(folder)
