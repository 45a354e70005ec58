"""Sweeps as processes: any number of them, killed, stopped, and how large one becomes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sweeps import files, wait_for, write_trace

ROOT = Path(__file__).parents[1]
FLEET = 'command = "fleet"\nseeds = 60\n[grid]\npreset = "claim"\nvip_percent = [10, 25]\n'


def start(folder, *arguments):
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}
    return subprocess.Popen([sys.executable, "-m", "k3core", "sweep", "fleet.toml", *arguments], cwd=folder, text=True,
                            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                            # A test run in the background has Ctrl-C ignored, and hands that on.
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """A folder with fleet.toml, computed by one process into `one`."""
    folder = tmp_path_factory.mktemp("fleet")
    (folder / "fleet.toml").write_text(FLEET)
    process = start(folder, "--jobs", "1", "--out", "one")
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0 and "120 points: 120 computed now" in out, err
    return folder


def test_any_number_of_processes_gives_the_same_and_a_killed_one_costs_nothing(fleet):
    psutil = pytest.importorskip("psutil")
    process = start(fleet, "--jobs", "3", "--out", "three")
    journal = fleet / "three/journal.jsonl"
    wait_for(lambda: journal.exists() and journal.read_bytes().count(b"\n") >= 4)
    workers = [child for child in psutil.Process(process.pid).children() if "spawn_main" in " ".join(child.cmdline())]
    assert len(workers) == 3
    workers[1].kill()
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0 and all(" of 120 points" in line for line in err.splitlines()), err
    assert "120 points: 120 computed now, 0 before, 0 failed" in out
    assert files(fleet / "three") == files(fleet / "one")


def end_midway(folder, number) -> tuple:
    """A sweep that got this signal before its end: (returncode, stdout, stderr, lines in its journal)."""
    psutil, journal = pytest.importorskip("psutil"), folder / "stopped/journal.jsonl"
    seen = journal.read_bytes().count(b"\n") if journal.exists() else 0
    process = start(folder, "--jobs", "2", "--out", "stopped")
    wait_for(lambda: journal.exists() and journal.read_bytes().count(b"\n") > seen)
    children = psutil.Process(process.pid).children()
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
        time.sleep(0.05)
        os.killpg(process.pid, number)  # an impatient reader's; what closes is not to be stopped halfway
    else:
        process.kill()
    out, err = process.communicate(timeout=60)
    wait_for(lambda: not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children))
    return process.returncode, out, err, journal.read_bytes().count(b"\n")


def test_stopped_by_ctrl_c_then_killed_it_goes_on_and_leaves_no_process(fleet):
    status, out, err, _ = end_midway(fleet, signal.SIGINT)
    assert status == 130 and out == "", err
    *progress, last = err.splitlines()
    assert last.startswith("k3core: stopped; ") and all(" of 120 points" in line for line in progress), err
    *_, seen = end_midway(fleet, signal.SIGKILL)
    process = start(fleet, "--jobs", "2", "--out", "stopped", "--json")
    out, err = process.communicate(timeout=120)
    answer = json.loads(out)
    assert answer["kept"] >= seen - 1 and answer["computed"] + answer["kept"] == 120
    assert files(fleet / "stopped") == files(fleet / "one")


def test_a_worker_stays_as_large_as_it_was(tmp_path):
    """The memory of a process over 1,000 points, in batches, after the first 100."""
    resource = pytest.importorskip("resource")
    assert resource
    write_trace(tmp_path / "trace.jsonl", 20)
    (tmp_path / "sweep.toml").write_text('command = "replay"\n[grid]\ntrace = "trace.jsonl"\n'
                                         'capacity_gib = {start = 1, stop = 1000, step = 1}\n')
    program = f"""
import resource, sys
from pathlib import Path
from k3core import __version__
from k3core.sweep.spec import read_spec
from k3core.sweep.worker import compute_batch
sweep = read_spec(Path({str(tmp_path / "sweep.toml")!r}))
sources = {{file.sha256: file.source for file in sweep.files.values()}}
for start in range(0, 1000, 100):
    tasks = [sweep.point(index).task for index in range(start, start + 100)]
    records, _ = compute_batch(__version__, "replay", tasks, sources)
    assert all("metrics" in record for record in records)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    sizes = list(map(int, done.stdout.split()))
    assert sizes[-1] - sizes[0] < (2_000 if sys.platform != "darwin" else 2_000_000), sizes  # KiB, on macOS bytes


def test_k3core_needs_numpy_alone():
    program = ("import sys, pkgutil, importlib, k3core.cli, k3core.sweep\n"
               "for module in pkgutil.iter_modules(k3core.sweep.__path__, 'k3core.sweep.'):\n"
               "    importlib.import_module(module.name)\n"
               "print({'dask', 'distributed', 'vl_convert', 'multiprocessing', 'tomllib'} & set(sys.modules))")
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
