"""The build, phase by phase; see options.py for what a user can ask for."""

import contextlib
import errno
import json
import shutil
import signal
import sys
import tempfile
import time
import webbrowser
from pathlib import Path

from sitegen import bootstrap, runtime, serve
from sitegen.failure import Failure

ROOT = Path(bootstrap.ROOT)
RECORD = "assets/build.json"  # says what was built; a folder without it is not ours to replace


def main(args) -> int:
    """Build, or clean. Exit status: 0, 2 for a failure (with one line on stderr), 130 for Ctrl-C."""
    out = Path(args.out or ROOT / "site").absolute()
    try:
        signal.signal(signal.SIGTERM, _interrupt)
        if args.clean:
            clean(out)
            return 0
        server = None
        build(
            out,
            runtime_dir=args.runtime_dir and Path(args.runtime_dir),
            offline=args.offline,
            base_url=args.base_url,
        )
        address = (out / "index.html").as_uri()
        if args.serve is not None:
            server = serve.make_server(out, args.serve)
            address = f"http://127.0.0.1:{server.server_port}/"
            print(f"Serving {address} until Ctrl-C", flush=True)
        if args.open:
            webbrowser.open(address)
        if server:
            serve.serve(server)
        return 0
    except Failure as error:
        return _fail(str(error))
    except OSError as error:
        if error.errno is None:
            raise
        return _fail(_describe(error, out))
    except KeyboardInterrupt:
        print(f"\ninterrupted; {out} is as it was", file=sys.stderr)
        return 130


def build(
    out: Path, runtime_dir: Path | None = None, offline: bool = False, base_url: str | None = None
) -> None:
    """Build the site into out, which is replaced only when everything else has succeeded."""
    from sitegen import pack, render, service_worker  # these need the installed packages; --clean does not

    started = time.monotonic()
    check_replaceable(out)
    with _beside(out) as new:
        with _phase("1/4 browser runtime") as report:
            files = runtime.fetch(report, runtime_dir, offline)
        with _phase("2/4 Python for the browser") as report:
            assets = pack.pack(ROOT, files, new, report)
        with _phase("3/4 pages") as report:
            render.render(new, assets, base_url, report)
            service_worker.write(new, {extra.path for extra in assets.extras})
        with _phase("4/4 into place") as report:
            _write_record(new, assets)
            _swap(new, out)
            report(str(out))
    sizes = [path.stat().st_size for path in out.rglob("*") if path.is_file()]
    versions = assets.versions
    print(
        f"Built in {time.monotonic() - started:.0f} s: k3core {versions['k3core']} for the browser, "
        f"with Python {versions['python']} (Pyodide {versions['pyodide']}) and NumPy {versions['numpy']}\n"
        f"Compile route: {assets.route}\n"
        f"Size: {len(sizes)} files, {sum(sizes) / 1e6:.1f} MB; starting Python over http loads "
        f"{assets.wire_bytes / 1e6:.1f} MB\n"
        f"Where: {out}\n"
        f"Open: {(out / 'index.html').as_uri()}  (or run with --serve)",
        flush=True,
    )


def check_replaceable(out: Path) -> None:
    """Raise Failure unless out is a site that this program built, an empty folder, or nothing yet."""
    if not out.exists() and not out.is_symlink():
        return
    if not out.is_dir() or out.is_symlink():
        raise Failure(f"{out} exists and is not a folder: name another with --out")
    if any(out.iterdir()) and not (out / RECORD).is_file():
        raise Failure(
            f"{out} exists and is not a site built by this program: name another with --out, or remove it"
        )


def clean(out: Path) -> None:
    """Remove the built site and what earlier builds cached; .venv stays."""
    check_replaceable(out)
    cache = runtime.cache_dir()
    candidates = [out, cache / f"pyodide-{runtime.PYODIDE}", cache / "compiled", cache / "charts"]
    found = [path for path in candidates if path.exists()]
    for path in found:
        shutil.rmtree(path)
        print(f"removed {path}")
    if not found:
        print(f"nothing to remove: no {out}, nothing cached in {cache}")


@contextlib.contextmanager
def _phase(title: str):
    """Print the phase and its progress lines, then how long it took."""
    started = time.monotonic()
    print(f"[{title}]", flush=True)
    yield lambda text: print(f"    {text}", flush=True)
    print(f"    {time.monotonic() - started:.1f} s", flush=True)


@contextlib.contextmanager
def _beside(out: Path):
    """A folder on out's file system to build in; gone afterwards, whatever happened."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}-"))
    except OSError as error:
        raise Failure(f"{out.parent} cannot be written: {error.strerror}") from None
    try:
        new = temporary / "new"
        new.mkdir()
        yield new
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _swap(new: Path, out: Path) -> None:
    """Put new where out is; if that fails half-way, out is put back."""
    old = new.with_name("old")
    if out.exists():
        out.rename(old)
    try:
        new.rename(out)
    except BaseException:
        if old.exists():
            old.rename(out)
        raise


def _write_record(new: Path, assets) -> None:
    record = {"generator": "sitegen", "route": assets.route, "versions": assets.versions}
    (new / RECORD).write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _describe(error: OSError, out: Path) -> str:
    where = error.filename or out
    if error.errno == errno.ENOSPC:
        return f"no space left on the disk of {where}"
    return f"{where}: {error.strerror}"


def _fail(message: str) -> int:
    print("error: " + " ".join(message.split()), file=sys.stderr)
    return 2


def _interrupt(signum, frame):
    raise KeyboardInterrupt
