"""Sweeps on one machine: what is computed, what is kept, and that nothing else changes a result."""

import csv
import errno
import json
import math
import os
import re
import shlex
import time
from dataclasses import replace
from pathlib import Path

import pytest
from sweeps import FILES, HITS, Inline, files, lines, sweep, write_trace

from k3core import cli_fleet, cli_replay, cli_size
from k3core.cli import build_parser
from k3core.lab.registry import experiment
from k3core.sweep import commands, pools, report
from k3core.sweep.journal import Journal
from k3core.sweep.links import address
from k3core.sweep.running import DIED, Progress, duration
from k3core.sweep.spec import read_spec, sweep_from

ROOT = Path(__file__).parents[1]
TRACES = Path(os.environ.get("K3_TRACES", "traces"))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An own folder with a trace and hits.toml, computed without other processes and without charts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pools, "Processes", Inline)
    monkeypatch.setattr(report, "find_spec", lambda name: None)
    write_trace(tmp_path / "trace.jsonl")
    (tmp_path / "hits.toml").write_text(HITS)
    return tmp_path


# --- a point is what the command answers ---


def answer(text):
    args = build_parser().parse_args(shlex.split(text))
    return args.run(args)


def test_replay_gives_what_the_command_gives(here, capsys):
    status, out, err = sweep(capsys, "hits.toml")
    assert (status, err) == (0, "") and out.startswith("16 points: 16 computed now, 0 before, 0 failed\n")
    rows = lines(here / "hits-results/results.jsonl")
    assert [(row["params"]["policy"], row["params"]["capacity_gib"]) for row in rows] == [
        (policy, capacity) for policy in ("dense", "align", "marconi", "retain:0") for capacity in (1, 4, 16, 64)]
    for row in rows:
        policy, capacity = row["params"]["policy"], row["params"]["capacity_gib"]
        told = answer(f"replay trace.jsonl --tp 8 --policy {policy} --capacity-gib {capacity}")
        assert row["metrics"].items() <= told.items() and len(row["metrics"]) == 16
        assert all((row["digest"] == other["digest"]) == (row["metrics"] == other["metrics"]) for other in rows)


def test_the_table_has_the_same_in_columns(here, capsys):
    sweep(capsys, "hits.toml")
    rows = lines(here / "hits-results/results.jsonl")
    with open("hits-results/results.csv", newline="") as file:
        table = list(csv.DictReader(file))
    for line, row in zip(table, rows, strict=True):
        assert {name: line[name] for name in row["params"]} == {k: str(v) for k, v in row["params"].items()}
        assert {name: json.loads(line[name]) for name in row["metrics"]} == row["metrics"]
        assert (line["key"], line["digest"], line["error"]) == (row["key"], row["digest"], "")


def test_run_fleet_and_size_give_what_the_commands_give(here, capsys):
    (here / "run.toml").write_text('command = "run"\nseeds = [0, 3]\n[grid]\nslug = ["byte-cost", "prefix-hit"]\n')
    (here / "fleet.toml").write_text('command = "fleet"\nseeds = 1\n[grid]\npreset = "claim"\nburst = 1.0\n'
                                     'vip_percent = [20, 40]\n')
    (here / "size.toml").write_text('command = "size"\n[[points]]\nmodel = "kimi-k3"\ntp = 8\n[[points]]\n'
                                    'model = "qwen3.5-4b"\n[grid]\nnum_blocks = 1487\nmax_model_len = 32768\n')
    for name in ("run", "fleet", "size"):
        status, _, err = sweep(capsys, f"{name}.toml")
        assert (status, err) == (0, "")
    for row in lines(here / "run-results/results.jsonl"):
        result = experiment(row["params"]["slug"]).run({}, row["seed"])
        told = {metric["key"]: metric["value"] for metric in result.to_json("en")["metrics"]}
        assert row["metrics"].items() <= (told | {"checks_failed": 0}).items() and row["digest"] == result.digest()
    for row in lines(here / "fleet-results/results.jsonl"):
        told = answer(f"fleet --preset claim --set burst=1 --set vip_percent={row['params']['vip_percent']}")
        assert row["metrics"] == told["metrics"] | {"checks_failed": 0}
    for row, text in zip(lines(here / "size-results/results.jsonl"), ("kimi-k3 --tp 8", "qwen3.5-4b"), strict=True):
        told = answer(f"size {text} --num-blocks 1487 --max-model-len 32768")
        assert row["metrics"]["block_size"] == told["block_size"]
        assert row["metrics"]["limit.binds"] == told["limit"]["binds"]
        assert row["metrics"]["max_concurrency"] == told["max_concurrency"]


def readme_spec():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return text.split("```toml\n")[1].split("```")[0]


def test_the_spec_of_the_readme_is_what_it_says(here):
    (here / "trace.jsonl").rename("conversation_trace.jsonl")
    found = sweep_from(readme_spec(), here)
    assert len(found) == 54 and found.varying == ["policy", "capacity_gib"]


@pytest.mark.skipif(not (TRACES / "conversation_trace.jsonl").exists(), reason="the published trace is not here")
def test_the_published_trace_gives_the_reference_rates_and_those_of_the_readme(here, capsys):
    (here / "conversation_trace.jsonl").symlink_to((TRACES / "conversation_trace.jsonl").resolve())
    source = readme_spec().replace('"align+8192", "marconi", "marconi+8192", "retain:0"', '"marconi"')
    (here / "hits.toml").write_text(re.sub("capacity_gib = .*", "capacity_gib = [256, inf]", source))
    sweep(capsys, "hits.toml")
    rates = [row["metrics"]["hit_rate"] for row in lines(here / "hits-results/results.jsonl")]
    assert [round(rate, 4) for rate in rates[1::2]] == [0.3302, 0.3103, 0.3183]
    assert [round(100 * rate, 1) for rate in rates[::2]] == [15.7, 22.0, 22.4]


def test_the_command_line_calls_the_same_functions(monkeypatch):
    called = []
    for module in (cli_size, cli_replay, cli_fleet):
        monkeypatch.setattr(module, "answer", lambda *args, **more: called.append(args) or {})
    answer("size kimi-k3"), answer("fleet")
    assert len(called) == 2


# --- what is kept ---


def test_what_is_there_is_not_computed_again(here, capsys, monkeypatch):
    sweep(capsys, "hits.toml")
    before = files(here / "hits-results")
    monkeypatch.setattr(Inline, "before", staticmethod(lambda tasks: pytest.fail("computed again")))
    assert sweep(capsys, "hits.toml")[1].startswith("16 points: 0 computed now, 16 before")
    assert files(here / "hits-results") == before


def test_a_larger_grid_computes_what_is_new_and_a_smaller_one_nothing(here, capsys):
    sweep(capsys, "hits.toml")
    larger = HITS.replace('"dense",', '"align+8192", "dense",')
    (here / "hits.toml").write_text(larger)
    assert sweep(capsys, "hits.toml")[1].startswith("20 points: 4 computed now, 16 before")
    (here / "hits.toml").write_text(HITS.replace('"dense", ', ""))
    assert sweep(capsys, "hits.toml")[1].startswith("12 points: 0 computed now, 12 before")
    assert {row["params"]["policy"] for row in lines(here / "hits-results/results.jsonl")} == {
        "align", "marconi", "retain:0"}


def test_a_key_stands_for_the_content_of_a_file_not_for_its_name(here, capsys):
    keys = [read_spec(here / "hits.toml").point(index).key for index in range(16)]
    (here / "trace.jsonl").rename("other.jsonl")
    (here / "hits.toml").write_text(HITS.replace("trace.jsonl", "other.jsonl"))
    assert [read_spec(here / "hits.toml").point(index).key for index in range(16)] == keys
    write_trace(here / "other.jsonl", seed=2)
    assert read_spec(here / "hits.toml").point(0).key not in keys


def test_a_key_stands_for_the_version(here, monkeypatch):
    point = read_spec(here / "hits.toml").point(0)
    first = point.key
    monkeypatch.setattr("k3core.sweep.spec.__version__", "9.9.9")
    assert read_spec(here / "hits.toml").point(0).key != first


def test_ctrl_c_keeps_what_was_computed(here, capsys, monkeypatch):
    batches = []

    def stop(tasks):
        batches.append(tasks)
        if len(batches) == 6:
            raise KeyboardInterrupt

    sweep(capsys, "hits.toml", "--out", "whole")
    monkeypatch.setattr(Inline, "before", staticmethod(stop))
    status, out, err = sweep(capsys, "hits.toml", "--jobs", 1)
    kept = sum(len(tasks) for tasks in batches[:-1])
    assert (status, out) == (130, "") and 0 < kept < 16
    assert err == (f"k3core: stopped; {kept} points are in hits-results, and the same command goes on from there\n")
    assert not (here / "hits-results/results.csv").exists()
    assert sweep(capsys, "hits.toml")[1].startswith(f"16 points: {16 - kept} computed now, {kept} before")
    assert files(here / "hits-results") == files(here / "whole")


def test_ctrl_c_before_the_first_point(here, capsys, monkeypatch):
    def stop(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("k3core.sweep.spec.open_file", stop)
    assert sweep(capsys, "hits.toml") == (130, "", "k3core: stopped\n")


@pytest.mark.parametrize("cut", [1, 40, 200])
def test_a_line_that_was_cut_off_costs_one_point(here, capsys, cut):
    sweep(capsys, "hits.toml")
    before, journal = files(here / "hits-results"), here / "hits-results/journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-cut])
    assert sweep(capsys, "hits.toml")[1].startswith("16 points: 1 computed now, 15 before")
    assert files(here / "hits-results") == before
    assert sweep(capsys, "hits.toml")[1].startswith("16 points: 0 computed now")


def test_rubbish_in_the_journal_is_passed_over(here, capsys):
    (here / "hits-results").mkdir()
    (here / "hits-results/journal.jsonl").write_bytes(b'\xff\0\n[]\n{"key": 5}\n{"a": 1}\n\n{"key": "x", "metr')
    assert sweep(capsys, "hits.toml")[1].startswith("16 points: 16 computed now, 0 before")
    assert sweep(capsys, "hits.toml")[1].startswith("16 points: 0 computed now, 16 before")


class Full:
    """A disk with room for so many bytes."""

    def __init__(self, file, room):
        self.file, self.room = file, room

    def fileno(self):
        return self.file.fileno()

    def close(self):
        self.file.close()

    def write(self, data):
        part = data[: self.room]
        self.room -= len(part)
        if not part:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self.file.write(part)


def test_a_full_disk_loses_nothing(here, capsys, monkeypatch):
    sweep(capsys, "hits.toml", "--out", "whole")

    def opened(self, folder):
        whole(self, folder)
        self._file = Full(self._file, 3000)

    whole = Journal.__init__
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "__init__", opened)
        status, out, err = sweep(capsys, "hits.toml")
    assert (status, out) == (2, "") and err.count("\n") == 1
    assert err.startswith("k3core: cannot write hits-results/journal.jsonl: No space left on device; ")
    kept = int(err.split("; ")[1].split()[0])
    assert 1 <= kept <= 6 and "points are in hits-results, and the same command goes on from there" in err
    assert sweep(capsys, "hits.toml")[0] == 0
    assert files(here / "hits-results") == files(here / "whole")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("name", FILES)
def test_a_disk_that_fills_up_at_the_end_leaves_the_old_files(here, capsys, name):
    sweep(capsys, "hits.toml")
    before = files(here / "hits-results")
    (here / "hits.toml").write_text(HITS.replace('"dense",', '"align+8192", "dense",'))
    (here / f"hits-results/{name}.part").symlink_to("/dev/full")
    status, out, err = sweep(capsys, "hits.toml")
    assert (status, out) == (2, "") and err.count("\n") == 1 and "No space left on device; 20 points are in" in err
    assert (here / "hits-results" / name).read_bytes() == before[name]
    assert sweep(capsys, "hits.toml")[1].startswith("20 points: 0 computed now, 20 before")


# --- points that fail ---


def test_a_failing_point_is_recorded_and_the_rest_goes_on(here, capsys):
    (here / "hits.toml").write_text(HITS.replace('"dense",', '"align+1000", "dense",'))
    status, out, err = sweep(capsys, "hits.toml")
    assert (status, err) == (0, "") and out.startswith("20 points: 20 computed now, 0 before, 4 failed\n")
    message = "policy align+1000 has chunks shorter than the grain of 1536 tokens"
    assert f"  policy=align+1000, capacity_gib=1: {message}\n" in out
    rows = lines(here / "hits-results/results.jsonl")
    assert [row.get("error") for row in rows[:5]] == [message] * 4 + [None]
    assert "metrics" not in rows[0] and message in (here / "hits-results/report.html").read_text()
    assert sweep(capsys, "hits.toml")[1].startswith("20 points: 0 computed now, 20 before, 4 failed\n")


def test_retry_failed_computes_them_again(here, capsys, monkeypatch):
    sweep(capsys, "hits.toml", "--out", "whole")
    with monkeypatch.context() as patch:
        patch.setattr(cli_replay, "answer", lambda *args: 1 / 0)
        assert "16 failed" in sweep(capsys, "hits.toml")[1]
    assert lines(here / "hits-results/results.jsonl")[0]["error"] == "ZeroDivisionError: division by zero"
    assert sweep(capsys, "hits.toml", "--retry-failed")[1].startswith("16 points: 16 computed now, 0 before, 0 failed")
    assert files(here / "hits-results") == files(here / "whole")


@pytest.mark.parametrize(("returned", "error"), [
    (({"rate": math.inf}, "d"), "inf cannot be part of a result; report None or a sentence instead"),
    (ValueError("two\nlines \ud800"), "two lines \\ud800"), (MemoryError("no room"), "MemoryError: no room")])
def test_what_no_file_could_hold_is_a_failed_point(here, capsys, monkeypatch, returned, error):
    def compute(params, seed, files):
        if isinstance(returned, Exception):
            raise returned
        return returned

    monkeypatch.setitem(commands.COMMANDS, "replay", replace(commands.COMMANDS["replay"], compute=compute))
    assert "16 failed" in sweep(capsys, "hits.toml")[1]
    assert {row["error"] for row in lines(here / "hits-results/results.jsonl")} == {error}


def test_models_and_traces_of_ones_own_are_files_of_a_point(here, capsys):
    (here / "config.json").write_text('{"num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 8}')
    (here / "size.toml").write_text('command = "size"\n[grid]\nmodel = ["config.json", "kimi-k3"]\n')
    (here / "run.toml").write_text('command = "run"\n[grid]\nslug = "traces"\ntrace = "trace.jsonl"\nsweep = "never"\n')
    for name in ("size", "run"):
        assert "0 failed" in sweep(capsys, f"{name}.toml")[1]
    own, k3 = lines(here / "size-results/results.jsonl")
    assert own["metrics"]["bytes_per_token"] == 2 * 2 * 4 * 8 * 2 and len(own["files"]["model"]) == 64
    assert k3["files"] == {} and k3["metrics"]["bytes_per_token"] == 27_648
    row, = lines(here / "run-results/results.jsonl")
    assert row["metrics"]["requests"] == 60
    assert address(read_spec(here / "run.toml").point(0)) == (
        f"traces.html#sweep=never&file.trace={row['files']['trace']}")


def test_a_trace_that_changes_meanwhile_is_refused_by_its_points(here, capsys, monkeypatch):
    commands._requests.cache_clear()
    monkeypatch.setattr(Inline, "before", staticmethod(lambda tasks: write_trace(here / "trace.jsonl", seed=3)))
    assert "16 failed" in sweep(capsys, "hits.toml")[1]
    assert lines(here / "hits-results/results.jsonl")[0]["error"] == "trace.jsonl has changed since the sweep began"


def test_a_bad_line_of_a_trace_is_named(here, capsys):
    with open(here / "trace.jsonl", "a") as file:
        file.write("rubbish\n")
    assert "trace.jsonl: line 61: 'rubbish' cannot be read as JSON" in sweep(capsys, "hits.toml")[1]
    (here / "hits.toml").write_text(HITS + 'bad_lines = "skip"\n')
    sweep(capsys, "hits.toml")
    assert {row["metrics"]["lines_skipped"] for row in lines(here / "hits-results/results.jsonl")} == {1}


def test_a_point_whose_process_dies_each_time_is_recorded_and_costs_no_other(here, capsys, monkeypatch):
    keys = [read_spec(here / "hits.toml").point(index).key for index in range(16)]
    monkeypatch.setattr(Inline, "die", {keys[5], keys[6]})
    assert "16 points: 16 computed now, 0 before, 2 failed" in sweep(capsys, "hits.toml", "--jobs", 3)[1]
    rows = lines(here / "hits-results/results.jsonl")
    assert [row["error"] for row in rows if "error" in row] == [DIED, DIED]
    assert [index for index, row in enumerate(rows) if "error" in row] == [5, 6]


# --- progress ---


class Screen(list):
    def __init__(self, tty):
        self.tty = tty

    def isatty(self):
        return self.tty

    def write(self, text):
        self.append(text)

    def flush(self):
        pass


def test_progress_tells_how_long_it_will_take(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    for tty in (True, False):
        screen = Screen(tty)
        progress = Progress(1000, 200, screen)
        now[0] += 20
        progress.add(100, 3)
        line = "300 of 1,000 points, 3 failed, 5 a second, 2 min left"
        assert "".join(screen) == ("\r\x1b[K" + line if tty else line + "\n")


@pytest.mark.parametrize(("seconds", "words"), [(0, "0 s"), (59.4, "59 s"), (90, "2 min"), (3599, "1 h 0 min"),
                                                (12_000, "3 h 20 min")])
def test_durations(seconds, words):
    assert duration(seconds) == words
