"""The command line: what it prints, in words and as JSON, and one line for everything that is wrong."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from k3core import __version__
from k3core.cli import main
from k3core.lab.params import ParamError
from k3core.lab.registry import everything, experiment

ROOT = Path(__file__).parents[1]


@pytest.fixture
def run(capsys):
    """A function: arguments -> (exit status, standard output, standard error)."""
    def call(*arguments):
        status = main(list(arguments))
        return status, *capsys.readouterr()
    return call


def python(*arguments, **options) -> subprocess.CompletedProcess:
    """`python -m k3core` as a process, with an output that is not UTF-8 by itself."""
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, "-m", "k3core", *arguments], capture_output=True, env=environment, **options)


# --- what it prints ---------------------------------------------------------------------------------------------


def test_the_list_of_tabs(run):
    status, out, err = run("tabs", "--json")
    assert (status, err) == (0, "")
    tabs = json.loads(out)
    assert [tab["slug"] for tab in tabs] == everything()
    for tab in tabs:
        assert {"slug", "tab", "title", "family", "params", "presets"} <= set(tab)
        assert all({"name", "kind", "default", "min", "max", "choices"} <= set(param) for param in tab["params"])
        assert all({"name", "title", "params", "seed"} <= set(preset) for preset in tab["presets"])


def test_the_list_of_tabs_in_words_has_a_heading_for_each_kind(run):
    status, out, err = run("tabs")
    assert (status, err) == (0, "")
    for slug in everything():
        chosen = experiment(slug)
        assert f"{chosen.tab or '':>4}  {slug} " in out and chosen.title.render("en") in out
        part = " ".join(out.split(f"  {slug} ")[1].split("\n\n")[0].split())
        assert f"--preset {', '.join(preset.name for preset in chosen.presets)} --set " in part
        assert f"--set {', '.join(param.name for param in chosen.params)}" in part
    assert all(len(line) <= 110 for line in out.splitlines())
    lines = out.splitlines()
    assert [line for line in lines if line and line[0] != " "] == ["Tabs", "Workbenches", "Home page"]
    places = [next(i for i, line in enumerate(lines) if f"  {slug} " in line) for slug in everything()]
    assert places == sorted(places)
    assert lines.index("Workbenches") < places[14] and lines.index("Home page") < places[16]
    chinese = run("tabs", "--lang", "zh")[1]
    assert chinese.count("字节账") == 1 and "工作台\n" in chinese and "Workbenches" not in chinese


def test_everything_that_is_listed_can_be_run(run):
    for slug in everything()[14:]:
        assert json.loads(run("run", slug, "--json")[1])["slug"] == slug


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_run_as_json_is_the_result(run, lang):
    status, out, err = run("run", "byte-cost", "--preset", "no-gate", "--set", "dk=64", "--set", "layout=bf16",
                           "--seed", "7", "--lang", lang, "--json")
    assert (status, err) == (0, "")
    params = {"count_gate": False, "dk": 64, "layout": "bf16"}
    assert json.loads(out) == json.loads(json.dumps(experiment("byte-cost").run(params, 7).to_json(lang)))


def test_a_run_in_words(run):
    status, out, err = run("run", "byte-cost", "--set", "layout=recover")
    assert (status, err) == (0, "")
    result = experiment("byte-cost").run({"layout": "recover"}).to_json("en")
    assert out.splitlines()[0].startswith("byte-cost  dk=128 dv=128 drafts=7 layout=recover")
    for metric in result["metrics"]:
        assert f"{metric['text']:>14}  {metric['label']}  [computed]" in out
    for row in result["tables"]["model_scale"]["text"]:
        assert any(all(cell in line for cell in row[1:]) for line in out.splitlines())
    assert out.count("\nok  ") == 3 and "FAIL" not in out and out.endswith(f"digest {result['digest']}\n")
    assert "design:snapshot" not in out  # marks link drawings; nobody reads them


def test_a_failing_check_is_shown_with_its_numbers(run):
    out = run("run", "byte-cost", "--preset", "no-gate")[1]
    assert "FAIL  the record arrays are as large as the formula says: measured 12.03 KiB, required 8.031 KiB" in out


def test_chinese_words(run):
    out = run("run", "byte-cost", "--lang", "zh")[1]
    assert "8 个位置的快照" in out and "per sequence" not in out


def test_a_setting_may_hold_an_equals_sign_and_the_last_one_counts(run):
    assert "layout is 'a=b'" in run("run", "byte-cost", "--set", "layout=a=b")[2]
    assert json.loads(run("run", "byte-cost", "--set", "dk=1", "--set", "dk=2", "--json")[1])["params"]["dk"] == 2


def test_version_and_help(capsys):
    for arguments, words in ((["--version"], __version__), (["--help"], "run"), (["run", "--help"], "--set")):
        with pytest.raises(SystemExit) as end:
            main(arguments)
        assert end.value.code == 0 and words in capsys.readouterr().out


# --- what it refuses --------------------------------------------------------------------------------------------

WRONG = [
    ([], "COMMAND"), (["nope"], "nope"), (["--nope"], "COMMAND"), (["tabs", "extra"], "extra"),
    (["tabs", "--lang", "fr"], "fr"), (["tabs", "--lang"], "--lang"), (["run"], "SLUG"),
    (["run", ""], "there is no tab ''"),
    (["run", "nope"], "there is no tab 'nope'; there are "), (["run", "byte-cost", "extra"], "extra"),
    (["run", "Byte-Cost"], "there is no tab"), (["run", "byte-cost", "--preset", "nope"], "there is no preset 'nope'"),
    (["run", "byte-cost", "--preset"], "--preset"), (["run", "byte-cost", "--set"], "--set"),
    (["run", "byte-cost", "--set", "dk"], "--set takes NAME=VALUE, not 'dk'"),
    (["run", "byte-cost", "--set", "=5"], "there is no parameter ''"),
    (["run", "byte-cost", "--set", "nope=5"], "there is no parameter 'nope'; there are dk, dv"),
    (["run", "byte-cost", "--set", "dk="], "dk is ''; it takes a whole number from 1 to 256"),
    (["run", "byte-cost", "--set", "dk=0"], "dk is 0; it takes a whole number from 1 to 256"),
    (["run", "byte-cost", "--set", "dk=257"], "dk is 257"), (["run", "byte-cost", "--set", "dk=1.5"], "dk is '1.5'"),
    (["run", "byte-cost", "--set", "dk=nan"], "dk is 'nan'"),
    (["run", "byte-cost", "--set", "dk=1e999"], "dk is '1e999'"),
    (["run", "byte-cost", "--set", "dk=" + "9" * 5000], "dk is '999"),
    (["run", "byte-cost", "--set", "dk=\u0665"], "dk is"),
    (["run", "byte-cost", "--set", "dk=5\n6"], "dk is '5\\n6'"),
    (["run", "byte-cost", "--set", "dk=\udcff"], "dk is '\\udcff'"),
    (["run", "byte-cost", "--set", "dk=<img src=x onerror=alert(1)>"], "dk is '<img src=x onerror=alert(1)>'"),
    (["run", "byte-cost", "--set", "layout=fp16"], "one of fp32, mixed, bf16, recover, sglang"),
    (["run", "byte-cost", "--set", "conv=maybe"], "conv is 'maybe'; it takes true or false"),
    (["run", "byte-cost", "--seed", "-1"], "seed is -1; it takes a whole number from 0 to 4294967295"),
    (["run", "byte-cost", "--seed", "x"], "seed is 'x'"), (["run", "byte-cost", "--seed", ""], "seed is ''"),
    (["run", "byte-cost", "--seed"], "--seed"), (["run", "byte-cost", "--seed", "4294967296"], "seed is 4294967296"),
]


@pytest.mark.parametrize("arguments, words", WRONG, ids=[" ".join(arguments)[:50].encode("ascii", "replace").decode()
                                                        for arguments, _ in WRONG])
def test_what_is_wrong_costs_one_line_and_status_2(run, arguments, words):
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith("k3core: ") and err.endswith("\n") and err.count("\n") == 1 and words in err
    assert len(err) < 400 and "Traceback" not in err and err[:-1].isprintable()


def test_api_and_command_line_say_the_same(run):
    with pytest.raises(ParamError) as caught:
        experiment("byte-cost").run({"dk": "0"})
    assert run("run", "byte-cost", "--set", "dk=0")[2] == f"k3core: {caught.value}\n"


# --- files that are not what they should be ---

READS_A_FILE = {
    "size": ["size", "FILE"], "replay": ["replay", "FILE"], "model": ["replay", "trace.csv", "--model", "FILE"],
    "keys": ["hash", "modulo", "--nodes", "3", "--keys", "FILE"], "sweep": ["sweep", "FILE"],
}
DAMAGED = {
    "gone": None, "folder": "", "empty": b"", "binary": b"\x00\xff\xfe\x80" * 99, "deep": b"[" * 100_000,
    "odd\udcff": b"\xff", "n" * 300: None,
}


@pytest.fixture
def damaged(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("trace.csv").write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n0,5,5\n")
    Path("loop").symlink_to("loop")
    for name, content in DAMAGED.items():
        if isinstance(content, bytes):
            Path(name).write_bytes(content)
        elif content is not None:
            Path(name).mkdir()


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="file names of any bytes")
@pytest.mark.parametrize("arguments", READS_A_FILE.values(), ids=READS_A_FILE)
def test_a_damaged_file_costs_one_line_that_names_it(run, damaged, arguments):
    for name in (*DAMAGED, "loop", ""):
        status, out, err = run(*(name if argument == "FILE" else argument for argument in arguments))
        if "--keys" in arguments and (not os.path.exists(name) or name == "deep"):
            continue  # that is a key
        assert (status, out) == (2, ""), name
        assert err.startswith("k3core: ") and err.count("\n") == 1 and len(err) < 1100, err
        assert name.encode("utf-8", "backslashreplace").decode()[:40] in err, (name, err)
        assert "Errno" not in err and "codec" not in err and "Traceback" not in err, err


def test_a_value_of_any_length_is_quoted_in_part(run):
    status, out, err = run("hash", "jump", "--nodes", "3", "--keys", "a", "--style", "x" * 50_000)
    assert (status, out) == (2, "") and err.count("\n") == 1 and len(err) < 1100


def test_too_little_memory_is_one_line(run, monkeypatch):
    def run_out(*args):
        raise MemoryError

    monkeypatch.setattr("k3core.cli_size.answer", run_out)
    assert run("size", "kimi-k3") == (2, "", "k3core: this machine has too little memory for that: ask for less\n")


def test_ctrl_c_is_one_line_and_status_130(run, monkeypatch):
    def stop(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("k3core.cli_fleet.answer", stop)
    assert run("fleet") == (130, "", "k3core: stopped\n")


# --- as a process -----------------------------------------------------------------------------------------------


def test_it_runs_as_a_module_and_writes_utf_8():
    done = python("run", "byte-cost", "--lang", "zh", "--json")
    assert (done.returncode, done.stderr) == (0, b"")
    result = experiment("byte-cost").run().to_json("zh")
    assert json.loads(done.stdout.decode("utf-8")) == json.loads(json.dumps(result))


def test_a_process_that_is_refused_says_so_in_one_line():
    done = python("run", "byte-cost", "--set", "dk=\u7532")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode("utf-8") == "k3core: dk is '\u7532'; it takes a whole number from 1 to 256\n"


@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX pipe")
def test_a_reader_that_leaves_early_is_no_error():
    for arguments in ("tabs --json", "--help"):
        command = f"'{sys.executable}' -m k3core {arguments} | true"
        done = subprocess.run(command, shell=True, capture_output=True, cwd=ROOT)
        assert done.stderr == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_an_output_without_room_is_one_line():
    with open("/dev/full", "wb") as full:
        done = subprocess.run([sys.executable, "-m", "k3core", "tabs"], stdout=full, stderr=subprocess.PIPE, cwd=ROOT)
    assert (done.returncode, done.stderr) == (2, b"k3core: cannot write the output: No space left on device\n")
