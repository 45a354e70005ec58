"""Starting from any Python: what is found, what is installed, and what is said where nothing suits."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sitegen import bootstrap

ROOT = Path(__file__).parent.parent
OLD_SYNTAX = [
    "build_site.py",
    "sitegen/__init__.py",
    "sitegen/bootstrap.py",
    "sitegen/options.py",
    "tests/__main__.py",
]
PYENV = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
OLD_PYTHONS = sorted(
    str(path) for pattern in ["2.7.*", "3.6.*", "3.10.*"] for path in PYENV.glob(pattern + "/bin/python")
)


def program(path: Path, shell: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)  # it may be a link to nowhere
    path.write_text(f"#!/bin/sh\n{shell}\n")
    path.chmod(0o755)
    return path


def python(path: Path, version: str) -> Path:
    """A stand-in for a Python of this version: answers what bootstrap asks."""
    return program(path, f"echo {version}")


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine where only PATH (tmp/bin) and pyenv (tmp/pyenv) count; the running Python is too old."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setattr(sys, "executable", str(python(tmp_path / "old", "3 8")))
    monkeypatch.setattr(bootstrap, "VENV", str(tmp_path / ".venv"))
    return tmp_path


@pytest.mark.parametrize("path", OLD_SYNTAX)
def test_the_first_files_parse_on_an_old_python(path):
    tree = ast.parse((ROOT / path).read_text(encoding="ascii"), feature_version=(3, 4))
    newer = (ast.JoinedStr, ast.AnnAssign, ast.AsyncFunctionDef, ast.Starred)
    assert not [node for node in ast.walk(tree) if isinstance(node, newer)]
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.arg) and node.annotation]


@pytest.mark.skipif(not OLD_PYTHONS, reason="no old Python in pyenv")
@pytest.mark.parametrize("old", OLD_PYTHONS)
def test_an_old_python_answers(old):
    done = subprocess.run([old, "-B", str(ROOT / "build_site.py"), "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and "--runtime-dir" in done.stdout
    nothing = {"PATH": "/nowhere", "PYENV_ROOT": "/nowhere"}
    code = "from sitegen import bootstrap; bootstrap.VENV = '/nowhere'; bootstrap.ensure(['build'])"
    done = subprocess.run([old, "-B", "-c", code], cwd=ROOT, env=nothing, capture_output=True, text=True)
    assert done.returncode == 2
    assert "no Python 3.12 or newer" in done.stderr and len(done.stderr.splitlines()) == 1


def test_path_comes_before_pyenv_and_newer_before_older(machine):
    python(machine / "pyenv" / "versions" / "3.13.1" / "bin" / "python", "3 13")
    twelve = python(machine / "bin" / "python3.12", "3 12")
    assert bootstrap.find_python() == [str(twelve)]
    fourteen = python(machine / "bin" / "python3.14", "3 14")
    assert bootstrap.find_python() == [str(fourteen)]


def test_pyenv_versions_are_ordered_as_numbers(machine):
    for version in ["3.9.18", "3.12.1", "3.12.10", "2.7.18"]:
        python(
            machine / "pyenv" / "versions" / version / "bin" / "python",
            version.replace(".", " ").rpartition(" ")[0],
        )
    assert bootstrap.find_python() == [str(machine / "pyenv" / "versions" / "3.12.10" / "bin" / "python")]


def test_a_shim_without_its_python_and_one_without_venv_are_passed_over(machine):
    program(machine / "bin" / "python3.14", "echo 'pyenv: python3.14: command not found' >&2; exit 127")
    program(
        machine / "bin" / "python3.13", "echo 'ModuleNotFoundError: No module named ensurepip' >&2; exit 1"
    )
    good = python(machine / "bin" / "python3", "3 12")
    assert bootstrap.find_python() == [str(good)]


def test_no_suitable_python(machine, capsys):
    python(machine / "bin" / "python3", "3 11")
    with pytest.raises(SystemExit) as stopped:
        bootstrap.find_python()
    error = capsys.readouterr().err
    assert stopped.value.code == 2
    assert error.startswith("error: found no Python 3.12 or newer") and len(error.splitlines()) == 1


def test_pins_are_missing_unless_installed_at_that_version(monkeypatch, tmp_path):
    import importlib.metadata

    have = importlib.metadata.version("pytest")
    (tmp_path / "pyproject.toml").write_text(
        f'[dependency-groups]\na = ["pytest=={have}"]\nb = ["pytest==0.1", "no-such-thing-here==1"]\n'
    )
    monkeypatch.setattr(bootstrap, "ROOT", str(tmp_path))
    assert bootstrap.missing(["a"]) == []
    assert bootstrap.missing(["a", "b"]) == ["pytest==0.1", "no-such-thing-here==1"]


def test_an_environment_that_has_everything_is_left_alone(monkeypatch):
    monkeypatch.setattr(bootstrap, "missing", lambda groups: [])
    monkeypatch.setattr(bootstrap, "_run", None)
    monkeypatch.setattr(bootstrap, "_works", None)
    bootstrap.ensure(["build"])


@pytest.fixture
def steps(machine, monkeypatch):
    """What ensure() does on a machine whose running Python lacks packages."""
    done = []

    def run(command):
        done.append(command)
        if "venv" in command:
            python(machine / ".venv" / "bin" / "python", "ok")

    monkeypatch.setattr(bootstrap, "missing", lambda groups: ["numpy==0"])
    monkeypatch.setattr(bootstrap, "_run", run)
    monkeypatch.setattr(bootstrap, "restart", lambda command: done.append(["restart"] + command))
    python(machine / "bin" / "python3", "3 12")
    return done


def expected_steps(machine, make: bool) -> list:
    venv = str(machine / ".venv" / "bin" / "python")
    made = (
        [[str(machine / "bin" / "python3"), "-m", "venv", "--clear", str(machine / ".venv")]] if make else []
    )
    return made + [[venv, "-m", "sitegen.bootstrap", "build", "--offline"], ["restart", venv]]


def test_venv_is_made_filled_and_started(machine, steps):
    bootstrap.ensure(["build"], offline=True)
    assert steps == expected_steps(machine, make=True)


def test_a_whole_venv_is_used_again(machine, steps):
    python(machine / ".venv" / "bin" / "python", "ok")
    bootstrap.ensure(["build"], offline=True)
    assert steps == expected_steps(machine, make=False)


@pytest.mark.parametrize("state", ["empty folder", "no pip", "dangling link"])
def test_a_broken_venv_is_made_again(machine, steps, state, capsys):
    half = machine / ".venv" / "bin" / "python"
    half.parent.mkdir(parents=True)
    if state == "no pip":
        program(half, "echo 'No module named pip' >&2; exit 1")
    if state == "dangling link":
        half.symlink_to("/nowhere/python3.12")
    bootstrap.ensure(["build"], offline=True)
    assert steps == expected_steps(machine, make=True)
    assert "Remaking .venv" in capsys.readouterr().out


def test_offline_installs_nothing(monkeypatch, capsys):
    monkeypatch.setattr(bootstrap, "missing", lambda groups: ["numpy==0"])
    with pytest.raises(SystemExit) as stopped:
        bootstrap.install(["build"], offline=True)
    assert stopped.value.code == 2
    assert "numpy==0" in capsys.readouterr().err


def test_a_package_that_cannot_be_installed_is_named(monkeypatch, capsys):
    class Pip:
        returncode = 1

        def __init__(self, command, stderr):
            assert command[-1] == "numpy==0"

        def communicate(self):
            return (
                None,
                b"WARNING: slow\nERROR: No matching distribution found for numpy==0\n[notice] hello\n",
            )

    monkeypatch.setattr(bootstrap, "missing", lambda groups: ["numpy==0"])
    monkeypatch.setattr(bootstrap.subprocess, "Popen", Pip)
    with pytest.raises(SystemExit) as stopped:
        bootstrap.install(["build"], offline=False)
    assert stopped.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "error: pip could not install numpy==0: ERROR: No matching distribution found for numpy==0"
    ]


def test_a_failed_step_shows_its_last_line(capsys):
    with pytest.raises(SystemExit) as stopped:
        bootstrap._run([sys.executable, "-c", "import sys; sys.exit('noise\\nerror: the reason')"])
    assert stopped.value.code == 2
    assert capsys.readouterr().err == "error: the reason\n"
