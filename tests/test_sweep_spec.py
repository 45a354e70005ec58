"""SPEC.toml: the points it makes, and everything that is wrong with one before anything is computed."""

import itertools
import math
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sweeps import HITS, Inline, sweep, write_trace

from k3core import cli_sweep
from k3core.cli import main
from k3core.sweep import pools, report
from k3core.sweep.spec import sweep_from, text


def points(source, folder=None):
    found = sweep_from(source, folder)
    return [(point.params, point.seed) for point in (found.point(index) for index in range(len(found)))]


# --- what it makes ---


def test_a_grid_is_the_product_in_its_order_seeds_last():
    assert points('command = "fleet"\nseeds = [7, 3]\n[grid]\npreset = "claim"\nslots = [32, 64]\n'
                  'vip_percent = [20, 40]') == [({"preset": "claim", "slots": slots, "vip_percent": percent}, seed)
                        for slots in (32, 64) for percent in (20, 40) for seed in (7, 3)]


def test_points_are_combined_with_the_grid():
    found = points('command = "size"\n[[points]]\nmodel = "kimi-k3"\ntp = 8\n[[points]]\nmodel = "qwen3.5-4b"\n'
                   '[grid]\ndrafts = [0, 7]')
    assert [params for params, _ in found] == [
        {"model": "kimi-k3", "tp": 8, "drafts": 0}, {"model": "kimi-k3", "tp": 8, "drafts": 7},
        {"model": "qwen3.5-4b", "drafts": 0}, {"model": "qwen3.5-4b", "drafts": 7}]


def test_without_a_grid_there_is_one_point_per_seed():
    assert points('command = "fleet"') == [({}, None)]
    assert points('command = "fleet"\nseeds = 3') == [({}, 0), ({}, 1), ({}, 2)]


@pytest.mark.parametrize(("given_range", "values"), [
    ("{start = 1, stop = 10, step = 3}", [1, 4, 7, 10]), ("{start = 1, stop = 9, step = 3}", [1, 4, 7]),
    ("{start = 9, stop = 1, step = -4}", [9, 5, 1]), ("{start = 5, stop = 5, step = 1}", [5]),
    ("{start = 0.1, stop = 0.5, step = 0.1}", [0.1, 0.2, 0.3, 0.4, 0.5]),
    ("{start = 1, stop = 1024, count = 6, scale = 'log'}", [1, 4, 16, 64, 256, 1024]),
    ("{start = 1, stop = 4, count = 9, scale = 'log'}", [1, 2, 3, 4]),  # whole ends: whole values, each once
    ("{start = 1.0, stop = 4, count = 5, scale = 'log'}", [1.0, 1.41421356237, 2.0, 2.82842712475, 4.0]),
    ("{start = 0, stop = 100, count = 5}", [0, 25, 50, 75, 100]), ("{start = 2, stop = 8, count = 1}", [2]),
    ("[1, 2.5]", [1, 2.5]), ("7", [7]),
])  # fmt: skip
def test_ranges(given_range, values):
    found = [params["vip_rate"] for params, _ in points(f'command = "fleet"\n[grid]\nvip_rate = {given_range}')]
    assert found == values and list(map(type, found)) == list(map(type, values))


@given(st.lists(st.integers(1, 4), min_size=0, max_size=4), st.integers(1, 3))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_every_combination_is_there_once(sizes, seeds):
    names = ("slots", "clusters", "vip_percent", "blocks")
    grid = "".join(f"{name} = {list(range(1, size + 1))}\n" for name, size in zip(names, sizes, strict=False))
    found = points(f'command = "fleet"\nseeds = {seeds}\n[grid]\n{grid}')
    expected = itertools.product(*(range(1, size + 1) for size in sizes), range(seeds))
    assert [(*params.values(), seed) for params, seed in found] == list(expected)


@pytest.mark.parametrize(("value", "words"), [(True, "true"), (8, "8"), (0.5, "0.5"), (math.inf, "inf"), ("a b", "a b"),
                                              ([30, 0], "30,0")])
def test_values_as_the_command_line_has_them(value, words):
    assert text("name", value) == words


def test_a_point_does_not_depend_on_how_it_is_written():
    """The same settings in a list, in a grid, in another order: the same key."""
    one = sweep_from('command = "size"\n[grid]\nmodel = "kimi-k3"\ntp = [8]', None)
    other = sweep_from('command = "size"\n[[points]]\ntp = 8\nmodel = "kimi-k3"', None)
    seeded = sweep_from('command = "fleet"\nseeds = 2', None)
    assert one.point(0).key == other.point(0).key and len(one.point(0).key) == 64
    assert seeded.point(0).key != seeded.point(1).key


def test_ten_million_points_are_made_when_they_are_asked_for():
    found = sweep_from('command = "fleet"\nseeds = 100000\n[grid]\nslots = {start = 1, stop = 100, step = 1}', None)
    assert len(found) == 10_000_000
    assert (found.point(9_999_999).params, found.point(9_999_999).seed) == ({"slots": 100}, 99_999)


# --- what it refuses ---

BAD = [
    ("command = 5", "command is 5; it must be one of size, replay, run, fleet"),
    ("", "command is None; it must be one of"), ('command = "hash"', "command is 'hash'; it must be one of"),
    ("command = [", "Invalid value"), ('command = "fleet"\nseeds = = 2', "Invalid value (at line 2, column 9)"),
    ("command = " + "[" * 5000, "it is nested too deeply"),
    ("command." + "a." * 50_000 + "b = 1", "command is dict..."),
    ("command = " + "9" * 5000, "it holds a number of thousands of digits"),
    ('command = "fleet"\nsets = 1', "has no 'sets'; it has command, seeds, grid"),
    ('command = "fleet"\ngrid = 3', "grid is 3; write it as a table [grid]"),
    ('command = "fleet"\n[grid]\nslotz = 4', "there is no parameter 'slotz'; fleet takes preset, clusters, slots"),
    ('command = "fleet"\n[grid]\nslots = ["four"]', "slots is 'four'; it must be a whole number"),
    ('command = "fleet"\n[grid]\nslots = []', "slots has no values, so the grid is empty"),
    ('command = "fleet"\n[grid]\nslots = [4, 8, 4]', "slots lists '4' twice"),
    ('command = "fleet"\n[grid]\nslots = [1979-05-27]', "slots is datetime.date(1979, 5, 27); it must be text"),
    ('command = "fleet"\n[grid]\nslots = [{a = 1}]', "slots is {'a': 1}; it must be text"),
    ('command = "fleet"\n[grid]\nvip_rate = nan', "vip_rate is nan; it must be text, a number"),
    ('command = "fleet"\n[grid]\npolicy = ["strict", "stirct"]', "policy is 'stirct'; it must be one of"),
    ('command = "fleet"\n[grid]\npreset = "nope"', "preset is 'nope'; it must be one of burst"),
    ('command = "size"\n[grid]\ntp = 8', "size needs the parameter model"),
    ('command = "size"\n[[points]]\nmodel = "kimi-k3"\n[[points]]\ntp = 8', "model is missing in one of the points"),
    ('command = "size"\n[grid]\nmodel = "nope"', "'nope' is neither a file nor a preset (deepseek-v3, "),
    ('command = "size"\n[grid]\nmodel = "kimi-k3"\nkv_dtype = ["bf16", "int3"]', "kv_dtype is 'int3'; choose one of"),
    ('command = "size"\n[grid]\nmodel = "kimi-k3"\nmemory_gib = -1', "--memory-gib is '-1'; it must be a number"),
    ('command = "replay"\n[grid]\npolicy = "align"', "replay needs the parameter trace"),
    ('command = "replay"\n[grid]\ntrace = "gone.jsonl"', "cannot read gone.jsonl: No such file or directory"),
    ('command = "replay"\n[grid]\ntrace = "."', "cannot read .: Is a directory"),
    ('command = "replay"\n[grid]\ntrace = "trace.jsonl"\npolicy = ["align", "best"]', "policy 'best' is not known"),
    ('command = "replay"\n[grid]\ntrace = "trace.jsonl"\ngrain = 0.5', "--grain is '0.5'; it must be a positive"),
    ('command = "replay"\nseeds = 2\n[grid]\ntrace = "trace.jsonl"', "replay takes no seeds: nothing in it is drawn"),
    ('command = "run"\n[grid]\ndk = 64', "run needs the parameter slug"),
    ('command = "run"\n[grid]\nslug = ["byte-cost", "nope"]', "there is no tab 'nope'; there are"),
    ('command = "run"\n[grid]\nslug = "byte-cost"\ndk = [64, 257]', "dk is 257; it takes a whole number from 1 to 256"),
    ('command = "run"\n[grid]\nslug = ["byte-cost", "prefix-hit"]\ndk = 64', "there is no parameter 'dk'; run takes"),
    ('command = "run"\n[grid]\nslug = "byte-cost"\npreset = "nope"', "there is no preset 'nope'"),
    ('command = "fleet"\n[grid]\nseed = [1, 2]', "seed is no parameter of a point; above [grid] write seeds = 5"),
    ('command = "fleet"\nseeds = 0', "seeds is 0; it must be how many"),
    ('command = "fleet"\nseeds = [-1]', "seeds is -1; it must be how many"),
    ('command = "fleet"\nseeds = [4294967296]', "seeds is 4294967296; it must be"),
    ('command = "fleet"\nseeds = []', "seeds has no values, so the grid is empty"),
    ('command = "fleet"\nseeds = true', "seeds is True"), ('command = "fleet"\nseeds = "3"', "seeds is '3'"),
    ('command = "fleet"\npoints = []', "points must be a list of tables [[points]]"),
    ('command = "fleet"\npoints = [3]', "points must be a list of tables"),
    ('command = "fleet"\n[[points]]\nslots = 4\n[[points]]\nslots = 4', "points lists {'slots': '4'} twice"),
    ('command = "fleet"\n[[points]]\nslots = 4\n[grid]\nslots = 8', "slots is in [grid] and in [[points]]"),
    ('command = "fleet"\n[grid]\nslots = {start = 1, stop = 9}', "the range of slots takes either step, or count"),
    ('command = "fleet"\n[grid]\nslots = {start = 1, stop = 9, step = 0}', "the range of slots has 0 values"),
    ('command = "fleet"\n[grid]\nslots = {start = 9, stop = 1, step = 1}', "it must have 1 to 10,000,000"),
    ('command = "fleet"\n[grid]\nslots = {start = 1, stop = 1e15, step = 1}', "slots has 1000000000000000 values"),
    ('command = "fleet"\n[grid]\nslots = {start = 0, stop = 9, count = 3, scale = "log"}', "must be above 0"),
    ('command = "fleet"\n[grid]\nslots = {start = 1, stop = 9, count = 3, scale = "cubic"}', "scale ('linear'"),
    ('command = "fleet"\n[grid]\nslots = {from = 1, stop = 9, step = 3}', "the range of slots has no 'from'"),
    ('command = "fleet"\n[grid]\nslots = {start = "a", stop = 9, step = 3}', "needs start, a number"),
    ('command = "fleet"\n[grid]\nslots = {start = 1, stop = inf, step = 3}', "needs stop, a number"),
    ('command = "fleet"\n[grid]\nslots = [1, 2]\n[report]\nz = "slots"', "[report] has no 'z'; it has x, y"),
    ('command = "fleet"\n[grid]\nslots = [1, 2]\n[report]\nx = "blocks"', "x is 'blocks'; it must be one of slots"),
    ('command = "fleet"\n[report]\nx = "blocks"', "report.x is 'blocks'; it must be one of none"),
    ('command = "fleet"\nseeds = 10000000\n[grid]\nslots = [1, 2]', "20,000,000 points; a sweep takes at most"),
]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pools, "Processes", Inline)
    monkeypatch.setattr(report, "find_spec", lambda name: None)
    write_trace(tmp_path / "trace.jsonl", 5)
    return tmp_path


@pytest.mark.parametrize(("source", "words"), BAD, ids=range(len(BAD)))
def test_what_is_wrong_costs_one_line_before_anything_is_computed(here, capsys, source, words):
    (here / "bad.toml").write_text(source)
    status, out, err = sweep(capsys, "bad.toml")
    assert (status, out) == (2, "") and err.startswith("k3core: bad.toml: ") and err.count("\n") == 1
    assert words in err and len(err) < 600
    assert not (here / "bad-results").exists()


def test_a_spec_that_is_no_text_or_not_there(here, capsys):
    (here / "bad.toml").write_bytes(b"\xff\xfe")
    assert sweep(capsys, "bad.toml")[2] == "k3core: bad.toml: this is not text in UTF-8\n"
    assert sweep(capsys, "gone.toml") == (2, "", "k3core: gone.toml: No such file or directory\n")
    (here / "folder.toml").mkdir()
    assert sweep(capsys, "folder.toml") == (2, "", "k3core: folder.toml: Is a directory\n")
    (here / "empty.toml").write_text("")
    assert sweep(capsys, "empty.toml")[2].startswith("k3core: empty.toml: command is None; it must be one of size")


@pytest.mark.parametrize(("arguments", "words"), [
    (["--jobs", "0"], "--jobs is '0'; it must be a whole number from 1 to 1024"), (["--jobs", "x"], "--jobs is 'x'"),
    (["--jobs", "99999999"], "--jobs is '99999999'"),
    (["--site", "javascript:alert(1)"], "--site is 'javascript:alert(1)'"),
    (["--site", ""], "--site is ''"), (["--site", "https://x/#a"], "it must be the address of a built site"),
])  # fmt: skip
def test_options(here, capsys, arguments, words):
    (here / "one.toml").write_text('command = "size"\n[grid]\nmodel = "kimi-k3"')
    status, out, err = sweep(capsys, "one.toml", *arguments)
    assert (status, out) == (2, "") and words in err and err.count("\n") == 1


def test_a_file_may_have_a_number_for_a_name(here, capsys):
    (here / "7").write_text('{"num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 8}')
    (here / "one.toml").write_text('command = "size"\n[grid]\nmodel = 7')
    assert sweep(capsys, "one.toml")[1].startswith("1 point: 1 computed now, 0 before, 0 failed\n")


def test_help_and_the_last_line_say_where_results_are(here, capsys):
    with pytest.raises(SystemExit):
        main(["sweep", "--help"])
    said = " ".join(capsys.readouterr().out.split()).replace("- ", "-")  # lines may break at hyphens
    assert "SPEC-results in the current folder, where --out names no other" in said
    (here / "one.toml").write_text('command = "size"\n[grid]\nmodel = "kimi-k3"')
    for arguments, folder in (([], "one-results"), (["--out", "elsewhere"], "elsewhere")):
        out = sweep(capsys, "one.toml", *arguments)[1]
        assert out.splitlines()[-1] == f"results are in {here / folder}: report.html, results.csv, results.jsonl"
        assert {path.name for path in (here / folder).iterdir()} == {
            "journal.jsonl", "report.html", "results.csv", "results.jsonl"}


def test_a_folder_that_cannot_be(here, capsys):
    (here / "one.toml").write_text('command = "size"\n[grid]\nmodel = "kimi-k3"')
    status, out, err = sweep(capsys, "one.toml", "--out", "trace.jsonl")
    assert (status, out) == (2, "")
    assert err == "k3core: trace.jsonl is a file; results need a folder, which --out names\n"


MILLION = 'command = "fleet"\nseeds = 1000000\n'


def test_a_million_points_are_not_computed_unasked(here, capsys, monkeypatch):
    (here / "million.toml").write_text(MILLION)
    status, out, err = sweep(capsys, "million.toml")
    assert (status, out, err) == (2, "", "k3core: these are 1,000,000 points; --yes computes them all\n")

    class Answer:
        def __init__(self, line):
            self.line = line

        def isatty(self):
            return True

        def readline(self):
            return self.line

    monkeypatch.setattr(sys, "stdin", Answer("\n"))
    status, out, err = sweep(capsys, "million.toml")
    assert status == 2 and "These are 1,000,000 points. Compute them all? [y/N] " in err
    assert err.endswith("k3core: 1,000,000 points, not computed\n") and not (here / "million-results").exists()
    monkeypatch.setattr(cli_sweep, "ASK_ABOVE", 3)
    monkeypatch.setattr(sys, "stdin", Answer("y\n"))
    (here / "four.toml").write_text('command = "size"\n[grid]\nmodel = "kimi-k3"\ntp = [1, 2, 4, 8]')
    assert sweep(capsys, "four.toml")[1].startswith("4 points: 4 computed now")
    assert sweep(capsys, "four.toml", "--yes")[1].startswith("4 points: 0 computed now")


def test_paths_count_from_the_folder_of_the_spec(here, capsys, monkeypatch):
    (here / "specs").mkdir()
    write_trace(here / "specs/trace.jsonl", 5)
    (here / "trace.jsonl").unlink()
    (here / "specs/hits.toml").write_text(HITS)
    assert sweep(capsys, "specs/hits.toml", "--out", "out")[0] == 0
    assert (here / "out/results.csv").read_text().splitlines()[1].startswith("trace.jsonl,dense,1,8,")
