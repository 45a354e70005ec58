"""The Python runtime for the browser: where its files come from, and that they are the right ones."""

import hashlib
import http.client
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
import zipfile
from pathlib import Path

from sitegen import bootstrap
from sitegen.failure import Failure

PYODIDE = "314.0.3"
NUMPY = "2.4.3"
NUMPY_WHEEL = f"numpy-{NUMPY}-cp314-cp314-pyemscripten_2026_0_wasm32.whl"
# What a lock file must say about this build of Pyodide, as in the lock that it comes with.
INFO = {"abi_version": "2026_0", "arch": "wasm32", "platform": "emscripten_5_0_3", "python": "3.14.0"}

# SHA-256 of the files of Pyodide's npm package, and of the NumPy wheel as Pyodide's own lock file states it.
FILES = {
    "pyodide.mjs": "5cfc46f5dcbaf2a16f26e2363f441873eb424762609cc03db00d6a2ace4d00e5",
    "pyodide.asm.mjs": "1a9775427ef6e8abaa7db88ece0515422d1886915ae5c9093776410c865dfd8d",
    "pyodide.asm.wasm": "e7f8fac36f8bf11085309cbc5c829b3ec3057c18bf1d73b05a6741612d63cdbf",
    "python_stdlib.zip": "444c770dfd75a32097fc0a7d5c1413fd3140601f49c3a1f2e9af0376fcd124b4",
    NUMPY_WHEEL: "0cad9c1b91f0082e4f959bc0e0bf5835a2efbba6ab3b1e9d1fe6e7e564cca98e",
}

CDN = f"https://cdn.jsdelivr.net/pyodide/v{PYODIDE}/full/"
# A package that carries the same files, for machines that reach a package index but not the CDN.
CARRIER = "open-webui==0.12.4"
CARRIER_FOLDER = "open_webui/frontend/pyodide/"
CARRIER_MEGABYTES = 106


def cache_dir() -> Path:
    """The folder that keeps fetched and compiled files between builds: $K3_CACHE, else ~/.cache/k3serve."""
    return Path(os.environ.get("K3_CACHE") or Path.home() / ".cache" / "k3serve")


def fetch(report, runtime_dir: Path | None = None, offline: bool = False) -> Path:
    """A folder that holds every file of FILES, each with the right SHA-256.

    report: called with one line of text on progress. Raises Failure where a file cannot be had or is wrong.
    """
    if runtime_dir is not None:
        for name in FILES:
            if not (runtime_dir / name).is_file():
                raise Failure(
                    f"--runtime-dir {runtime_dir} has no {name}: give an unpacked Pyodide {PYODIDE} "
                    f"distribution with its NumPy {NUMPY} wheel"
                )
            verify(name, (runtime_dir / name).read_bytes(), str(runtime_dir / name))
        report(f"taken from {runtime_dir}")
        return runtime_dir

    folder = cache_dir() / f"pyodide-{PYODIDE}"
    wanted = [name for name in FILES if not (folder / name).is_file()]
    for name in FILES.keys() - wanted:
        verify(name, (folder / name).read_bytes(), f"cached in {folder}; delete it to fetch it again")
    if not wanted:
        report(f"cached in {folder}")
        return folder
    if offline:
        raise Failure(
            f"{wanted[0]} is not cached in {folder} and --offline forbids to fetch it: "
            "build once without --offline, or give --runtime-dir"
        )
    folder.mkdir(parents=True, exist_ok=True)
    unreachable = _from_cdn(wanted, folder, report)
    if unreachable:
        _from_carrier([name for name in wanted if not (folder / name).is_file()], folder, report, unreachable)
    return folder


def verify(name: str, data: bytes, source: str) -> None:
    """Raise Failure, naming both hashes and the source, unless data has the SHA-256 pinned for this file."""
    found = hashlib.sha256(data).hexdigest()
    if found != FILES[name]:
        raise Failure(f"{name} has SHA-256 {found} where {FILES[name]} is expected (source: {source})")


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that nobody ever sees half of it, whatever happens in the middle."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        half.write_bytes(data)
        half.replace(path)
    finally:
        half.unlink(missing_ok=True)


def _from_cdn(names: list[str], folder: Path, report) -> str:
    """Fetch into folder; returns "" or, as soon as one file could not be had, why."""
    for name in names:
        url = CDN + name
        report(f"fetching {url}")
        try:
            with urllib.request.urlopen(url, timeout=5) as response:
                if response.headers.get_content_type() == "text/html":  # a proxy's own page, not the file
                    return f"{url} answers with a web page"
                data = response.read()
        except (OSError, http.client.HTTPException) as error:  # URLError is an OSError
            return f"{url}: {getattr(error, 'reason', error)}"
        verify(name, data, url)
        write_atomically(folder / name, data)
    return ""


def _from_carrier(names: list[str], folder: Path, report, unreachable: str) -> None:
    report(f"not reachable: {unreachable}")
    report(
        f"downloading the wheel of {CARRIER} with pip, which carries the same files ({CARRIER_MEGABYTES} MB)"
    )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".download-") as temporary:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--no-deps",
            "--only-binary=:all:",
            "--python-version",
            "3.12",  # without it a newer Python refuses the package
            "--quiet",
            "--disable-pip-version-check",
            "--timeout",
            "10",
            "--retries",
            "2",
            "--dest",
            temporary,
            CARRIER,
        ]
        _run_pip(command, Path(temporary), report, unreachable)
        wheel = next(Path(temporary).glob("*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            for name in names:
                try:
                    data = archive.read(CARRIER_FOLDER + name)
                except KeyError:
                    raise Failure(f"{wheel.name} does not carry {CARRIER_FOLDER}{name}") from None
                verify(name, data, f"{CARRIER_FOLDER} in {wheel.name}, downloaded with pip")
                write_atomically(folder / name, data)


def _run_pip(command: list[str], temporary: Path, report, unreachable: str) -> None:
    """Run pip; its own progress bar needs a terminal, so report the size of what it has written so far."""
    environment = {**os.environ, "TMPDIR": str(temporary), "TEMP": str(temporary), "TMP": str(temporary)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        started = reported = time.monotonic()
        while True:
            try:
                errors = process.communicate(timeout=1)[1]
                break
            except subprocess.TimeoutExpired:
                if time.monotonic() - reported >= 5:
                    reported = time.monotonic()
                    report(
                        f"{_megabytes(temporary)} of {CARRIER_MEGABYTES} MB after {reported - started:.0f} s"
                    )
    finally:
        process.kill()
        process.wait()
    if process.returncode:
        raise Failure(
            f"the browser runtime is not cached and cannot be fetched: {unreachable}; "
            f"pip download {CARRIER}: {bootstrap.last_line(errors)}"
        )


def _megabytes(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size
        except OSError:  # moved or removed meanwhile
            pass
    return total // 1_000_000
