"""Byte-compile what the browser imports, by the best means this machine has."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from sitegen import compile_modules, runtime

MAGIC = "2b0e0d0a"  # of the .pyc files that Pyodide's Python 3.14 reads
SCRIPT = Path(compile_modules.__file__)
NODE_RUNNER = SCRIPT.with_name("run_in_node.mjs")
KEPT = 8  # compiled archives that the cache keeps, per name


def compile_archives(jobs: dict, runtime_dir: Path, report) -> tuple[dict, str]:
    """Repack archives, byte-compiled if there is a Python 3.14 or a Node to do it.

    jobs: name -> (archive bytes, modules to keep or None for all). Returns name -> archive bytes, and the
    route taken: "python3.14", "node", or "sources" for not compiled. The bytes depend on the route.
    """
    for route, identity, command in _routes(runtime_dir):
        try:
            return _compile(jobs, route, identity, command, report), route
        except subprocess.CalledProcessError as error:
            lines = error.stderr.splitlines()
            reason = [line for line in lines if "Error" in line] or lines or ["no reason given"]
            report(f"{route} could not compile: {reason[-1]}")
    report(
        "found neither Python 3.14 nor Node 18 or newer: sources are not byte-compiled, "
        "so pages take about 2 s longer to start computing"
    )
    sources = {
        name: compile_modules.repack(data, keep, compiled=False) for name, (data, keep) in jobs.items()
    }
    return sources, "sources"


def _routes(runtime_dir: Path):
    """(route, what else the bytes depend on, folder -> command that does its jobs.json), best first."""
    for python in _pythons():
        code = "import importlib.util as u, sys; print(u.MAGIC_NUMBER.hex(), sys.version)"
        done = subprocess.run([python, "-c", code], capture_output=True, text=True)
        if done.returncode == 0 and done.stdout.startswith(MAGIC):
            command = [python, "-S", "-B", str(SCRIPT)]
            yield "python3.14", done.stdout, lambda folder, command=command: [*command, str(folder / "jobs.json")]
            break
    path = node()
    if path:
        arguments = [SCRIPT, "/job/jobs.json"]
        yield "node", runtime.PYODIDE, lambda folder: in_node(path, runtime_dir, folder, *arguments)


def _pythons():
    if sys.version_info[:2] == (3, 14):
        yield sys.executable
    if shutil.which("python3.14"):
        yield shutil.which("python3.14")
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from map(str, sorted(root.glob("versions/3.14*/bin/python")))


def node() -> str | None:
    """Path of a Node that can run Pyodide, or None."""
    path = shutil.which("node")
    if not path:
        return None
    done = subprocess.run([path, "--version"], capture_output=True, text=True)
    version = re.match(r"v(\d+)\.", done.stdout)
    return path if version and int(version[1]) >= 18 else None


def in_node(
    node: str, runtime_dir: Path, folder: Path, script: Path, *arguments: str, lock: str = ""
) -> list[str]:
    """Command that runs a Python script in Pyodide under Node, with folder as /job.

    lock: text of a lock file whose wheels are in runtime_dir and are installed first.
    """
    shutil.copy(script, folder)
    (folder / "lock.json").write_text(lock or json.dumps({"info": runtime.INFO, "packages": {}}))
    return [node, str(NODE_RUNNER), str(runtime_dir.resolve()), str(folder), script.name, *arguments]


def _compile(jobs: dict, route: str, identity: str, command, report) -> dict:
    """Archives from the cache; those that are not there are compiled in one process, and cached."""
    folder = runtime.cache_dir() / "compiled"
    paths, result = {}, {}
    for name, (data, keep) in jobs.items():
        digest = hashlib.sha256(data).hexdigest()
        inputs = [digest, keep and sorted(keep), SCRIPT.read_text(), route, identity]
        key = hashlib.sha256(json.dumps(inputs).encode()).hexdigest()
        paths[name] = folder / f"{name}.{key[:16]}.zip"
        if paths[name].is_file():
            result[name] = paths[name].read_bytes()
    todo = [name for name in jobs if name not in result]
    if todo:
        report(f"compiling {', '.join(todo)} with {route}")
        for name, data in _run({name: jobs[name] for name in todo}, command).items():
            runtime.write_atomically(paths[name], data)
            result[name] = data
            for old in sorted(folder.glob(f"{name}.*.zip"), key=lambda path: path.stat().st_mtime)[:-KEPT]:
                old.unlink(missing_ok=True)
    return result


def _run(jobs: dict, command) -> dict:
    with tempfile.TemporaryDirectory(prefix="k3-compile-") as temporary:
        folder = Path(temporary)
        task = {"magic": MAGIC, "jobs": []}
        for name, (data, keep) in jobs.items():
            (folder / f"{name}.in").write_bytes(data)
            keep = keep and sorted(keep)
            task["jobs"].append({"source": f"{name}.in", "target": f"{name}.out", "keep": keep})
        (folder / "jobs.json").write_text(json.dumps(task))
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        subprocess.run(command(folder), env=environment, check=True, capture_output=True, text=True)
        return {name: (folder / f"{name}.out").read_bytes() for name in jobs}
