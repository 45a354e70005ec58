"""What tests of sweeps share: a small trace, and a pool that computes where it is."""

import json
import time
from collections import deque

import numpy as np

from k3core import __version__
from k3core.cli import main
from k3core.sweep.worker import compute_batch
from k3core.traces import WORKLOADS, generate_trace

HITS = """
command = "replay"
[grid]
trace = "trace.jsonl"
policy = ["dense", "align", "marconi", "retain:0"]
capacity_gib = {start = 1, stop = 64, count = 4, scale = "log"}
tp = 8
"""


FILES = ("results.jsonl", "results.csv", "report.html")


def files(folder):
    """What must not depend on how it was computed."""
    return {name: (folder / name).read_bytes() for name in FILES}


def write_trace(path, requests=60, seed=1):
    lines = generate_trace(WORKLOADS["agentic"], requests, np.random.default_rng(seed))
    path.write_text("".join(json.dumps(request._asdict()) + "\n" for request in lines))


class Inline:
    """The interface of `pools`, computed at once. `die`: keys whose process dies; `before`: called with each batch."""

    deaths, die, before = 3, frozenset(), staticmethod(lambda tasks: None)

    def __init__(self, command, files, jobs):
        self.command, self.width, self.running = command, jobs, deque()
        self.sources = {file.sha256: file.source for file in files}

    def submit(self, tasks):
        self.running.append(tasks)

    def wait(self):
        tasks = self.running.pop()  # the newest first: an order that no result may depend on
        self.before(tasks)
        if any(key in self.die for key, *_ in tasks):
            return [(tasks, None)]
        return [(tasks, compute_batch(__version__, self.command, tasks, self.sources))]

    def close(self):
        self.running.clear()


def wait_for(condition, seconds=90):
    """Until it holds; fails where it does not in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def sweep(capsys, *arguments):
    """(exit status, standard output, standard error) of the command."""
    status = main(["sweep", *map(str, arguments)])
    return status, *capsys.readouterr()


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]
