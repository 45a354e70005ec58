"""Sweeps on a Dask cluster: two workers on loopback, one of them killed; what is wrong costs one line."""

import contextlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from sweeps import HITS, Inline, files, sweep, wait_for, write_trace

pytest.importorskip("distributed")

from k3core.sweep import pools, report
from k3core.sweep.worker import compute_batch

ROOT = Path(__file__).parents[1]


class Loopback:
    """A scheduler and workers, each a process of its own, as `dask scheduler` and `dask worker` start them."""

    def __init__(self, folder, workers):
        self.folder, self.processes = folder, []
        self.start("scheduler", "--no-dashboard", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", "s.json")
        wait_for((folder / "s.json").exists)
        self.workers = [self.start("worker", "--scheduler-file", "s.json", "--nthreads", "1", "--no-nanny",
                                   "--no-dashboard") for _ in range(workers)]

    def start(self, *arguments):
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "distributed.cli.dask_" + arguments[0], *arguments[1:]]
        log = open(self.folder / f"log{len(self.processes)}", "wb")
        with log:
            self.processes.append(subprocess.Popen(command, cwd=self.folder, env=environment, stdout=log, stderr=log))
        return self.processes[-1]

    @property
    def address(self):
        return json.loads((self.folder / "s.json").read_text())["address"]

    def close(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    loopback = Loopback(tmp_path_factory.mktemp("cluster"), 2)
    yield loopback
    loopback.close()


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(report, "find_spec", lambda name: None)
    write_trace(tmp_path / "trace.jsonl")
    (tmp_path / "hits.toml").write_text(HITS)
    return tmp_path


def test_other_versions_are_refused(here, capsys, cluster, monkeypatch):
    monkeypatch.setattr(pools, "__version__", "9.9.9")
    status, out, err = sweep(capsys, "hits.toml", "--scheduler", cluster.address)
    assert (status, out) == (2, "") and err.count("\n") == 1
    assert err.startswith("k3core: the scheduler has k3core 0.1.0, this machine 9.9.9; install the same everywhere")
    with pytest.raises(ValueError, match="a worker has k3core 0.1.0, this is 9.9.9"):  # one that joined later
        compute_batch("9.9.9", "replay", [], {})


def test_a_cluster_gives_the_same_and_a_file_goes_to_each_worker_once(here, capsys, cluster, monkeypatch):
    from distributed import Client

    status, out, err = sweep(capsys, "hits.toml", "--scheduler", cluster.address)
    assert status == 0 and out.startswith("16 points: 16 computed now, 0 before, 0 failed"), err
    monkeypatch.setattr(pools, "Processes", Inline)
    sweep(capsys, "hits.toml", "--out", "here")
    assert files(here / "hits-results") == files(here / "here")
    def keys_received(dask_worker):
        """Keys of files that other workers sent to this one."""
        keys = [key for entry in dask_worker.transfer_incoming_log for key in entry["keys"]]
        return [key for key in keys if str(key).startswith("k3core-")]

    with Client(cluster.address, set_as_default=False) as client:
        received = client.run(keys_received)
    assert len(received) == 2 and all(len(keys) == len(set(keys)) for keys in received.values())
    assert sum(len(keys) for keys in received.values()) <= 1  # one worker got it from the scheduler


def test_a_point_carries_no_content(here):
    from k3core.sweep.spec import read_spec

    assert len(repr(read_spec(here / "hits.toml").point(0).task)) < 400


def test_nobody_at_the_address(here, capsys, monkeypatch):
    monkeypatch.setattr(pools, "TIMEOUT", 0.5)
    for address, words in (("tcp://127.0.0.1:9", "no scheduler answers at tcp://127.0.0.1:9; 0 points are in hits-"),
                           ("127.0.0.1", "missing port number"), ("bad://x:1", "unknown address scheme 'bad'")):
        status, out, err = sweep(capsys, "hits.toml", "--scheduler", address)
        assert (status, out) == (2, "") and err.count("\n") == 1 and words in err, err


def test_without_dask(here, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    status, out, err = sweep(capsys, "hits.toml", "--scheduler", "tcp://127.0.0.1:9")
    assert (status, out, err) == (2, "", "k3core: dask is not installed; pip install 'k3core[cluster]' brings it\n")


def test_jobs_are_for_this_machine(here, capsys):
    status, _, err = sweep(capsys, "hits.toml", "--scheduler", "tcp://127.0.0.1:9", "--jobs", 2)
    assert status == 2 and "--jobs is for this machine; with --scheduler the cluster decides" in err


FLEET = 'command = "fleet"\nseeds = 20\n[grid]\npreset = "claim"\nvip_percent = [10, 25]\n'


def sweep_and_kill(here, capsys, cluster, process):
    """The sweep of fleet.toml, in the middle of which a process of the cluster is killed."""
    (here / "fleet.toml").write_text(FLEET)
    journal = here / "fleet-results/journal.jsonl"

    def kill():
        wait_for(lambda: journal.exists() and journal.read_bytes().count(b"\n") >= 3)
        killed.append(journal.read_bytes().count(b"\n"))
        process.kill()

    killed = []
    thread = threading.Thread(target=kill)
    thread.start()
    done = sweep(capsys, "fleet.toml", "--scheduler", cluster.address)
    thread.join()
    assert killed[0] < 40
    return done


def test_a_killed_worker_loses_nothing(here, capsys, cluster, monkeypatch):
    status, out, err = sweep_and_kill(here, capsys, cluster, cluster.workers[0])
    assert status == 0 and out.startswith("40 points: 40 computed now, 0 before, 0 failed"), err
    monkeypatch.setattr(pools, "Processes", Inline)
    sweep(capsys, "fleet.toml", "--out", "here")
    assert files(here / "fleet-results") == files(here / "here")


def test_a_point_that_kills_its_workers_is_told_from_a_scheduler_that_is_gone(monkeypatch):
    """Dask gives up on a task after some dead workers: None. A scheduler that goes away cancels what is under way."""
    import distributed
    from distributed.client import FutureCancelledError
    from distributed.scheduler import KilledWorker

    class Future:
        def __init__(self, error):
            self.error = error

        def result(self):
            raise self.error

    class Client:
        def as_current(self):
            return contextlib.nullcontext()

    pool = pools.Cluster.__new__(pools.Cluster)
    pool.dask, pool.client, pool.address = distributed, Client(), "tcp://x:1"
    monkeypatch.setattr(distributed, "wait", lambda futures, return_when: SimpleNamespace(done=set(futures)))
    pool.running = {Future(KilledWorker("task", None, 3)): ["tasks"]}
    assert pool.wait() == [(["tasks"], None)] and pool.running == {}
    pool.running = {Future(FutureCancelledError("key", "lost")): ["tasks"]}
    with pytest.raises(OSError, match="the scheduler at tcp://x:1 is gone"):
        pool.wait()
    pool.running = {Future(ModuleNotFoundError("No module named 'k3core'")): ["tasks"]}
    with pytest.raises(ValueError, match="a worker lacks something: No module named 'k3core'; install the same"):
        pool.wait()


def test_a_scheduler_that_goes_away_costs_one_line(here, capsys, cluster):
    """The last test: there is no cluster after it."""
    import dask

    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
        status, out, err = sweep_and_kill(here, capsys, cluster, cluster.processes[0])
    assert (status, out) == (2, "")
    assert err.splitlines()[-1].startswith(f"k3core: the scheduler at {cluster.address} is gone; "), err
    assert "points are in fleet-results, and the same command goes on from there" in err
