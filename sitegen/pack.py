"""Put the browser's Python into the site: small, and readable over http as well as from a folder."""

import base64
import gzip
import hashlib
import io
import json
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

from flit_core.wheel import make_wheel_in
from pyodide_lock import PackageSpec, PyodideLockSpec
from pyodide_lock.spec import InfoSpec

from sitegen import compiler, runtime

ALLOW_LIST = Path(__file__).with_name("runtime_modules.txt")
FOLDER = "assets/runtime"
EXTRAS = {"tiny.npz": "k3core/models/tiny.npz"}  # name -> path in the wheel; left out of what every page loads
NOT_FOR_PAGES = "k3core/sweep/"  # many processes or a cluster: nothing that a page could use
SCRIPT_CHARACTERS = 3 << 20  # of base64 in one script, so that progress shows while a big file loads


@dataclass(frozen=True)
class RuntimeFile:
    """One file of the browser's Python, in the two forms in which the site holds it.

    name: what Pyodide asks for. path: the file for http, relative to the site's root, gzipped. scripts: the
    same bytes for file://, as classic scripts that each call `K3.file(name, part)`; the parts, joined in this
    order, are base64. wire_bytes: size of the file at path; raw_bytes and sha256: of what gzip undoes it to.
    """

    name: str
    path: str
    scripts: tuple[str, ...]
    wire_bytes: int
    raw_bytes: int
    sha256: str


@dataclass(frozen=True)
class Extra(RuntimeFile):
    """A file of k3core that only some runs load (see `k3core.lab.host`). target: its path in the installed package."""

    target: str


@dataclass(frozen=True)
class Assets:
    """What the pages need to know about the browser's Python. route: how it was compiled (see compiler)."""

    files: tuple[RuntimeFile, ...]
    extras: tuple[Extra, ...]
    lock: str
    wheel: str
    versions: dict[str, str]
    route: str

    @property
    def wire_bytes(self) -> int:
        """Bytes that a first visit over http loads to start Python."""
        return sum(file.wire_bytes for file in self.files)


def pack(project: Path, runtime_dir: Path, out: Path, report) -> Assets:
    """Build the k3core wheel, trim and compile everything, write it below out, and describe it.

    project: folder of pyproject.toml and k3core/. runtime_dir: as returned by runtime.fetch.
    """
    wheel = build_wheel(project, out / "assets")
    report(f"built {wheel.name}")
    code, extras = take_out(wheel.read_bytes(), EXTRAS)
    stdlib, numpy = read_allow_list()
    jobs = {
        "python_stdlib.zip": ((runtime_dir / "python_stdlib.zip").read_bytes(), stdlib),
        runtime.NUMPY_WHEEL: ((runtime_dir / runtime.NUMPY_WHEEL).read_bytes(), numpy),
        wheel.name: (code, None),
    }
    archives, route = compiler.compile_archives(jobs, runtime_dir, report)
    contents = {
        name: archives.get(name) or (runtime_dir / name).read_bytes() for name in [*runtime.FILES, wheel.name]
    }
    version = wheel.name.split("-")[1]
    return Assets(
        files=tuple(_place(name, data, out) for name, data in contents.items()),
        extras=tuple(
            Extra(**vars(_place(name, data, out)), target=EXTRAS[name]) for name, data in extras.items()
        ),
        lock=lock_file({name: data for name, data in contents.items() if name.endswith(".whl")}),
        wheel=f"assets/{wheel.name}",
        versions={"pyodide": runtime.PYODIDE, "python": "3.14", "numpy": runtime.NUMPY, "k3core": version},
        route=route,
    )


def build_wheel(project: Path, folder: Path) -> Path:
    """The installable wheel of the project; its bytes depend on the sources alone."""
    folder.mkdir(parents=True, exist_ok=True)
    before = os.environ.get("SOURCE_DATE_EPOCH")
    os.environ["SOURCE_DATE_EPOCH"] = "315532800"  # 1980, the first date that a zip can hold
    try:
        return make_wheel_in(project / "pyproject.toml", folder).file
    finally:
        if before is None:
            del os.environ["SOURCE_DATE_EPOCH"]
        else:
            os.environ["SOURCE_DATE_EPOCH"] = before


def take_out(wheel: bytes, paths: dict[str, str]) -> tuple[bytes, dict[str, bytes]]:
    """The wheel without NOT_FOR_PAGES and the files at `paths` (name -> path), and what these hold (name -> bytes)."""
    buffer, source = io.BytesIO(), zipfile.ZipFile(io.BytesIO(wheel))
    with zipfile.ZipFile(buffer, "w") as rest:
        for member in source.infolist():
            if member.filename not in paths.values() and not member.filename.startswith(NOT_FOR_PAGES):
                rest.writestr(member, source.read(member))
    return buffer.getvalue(), {name: source.read(path) for name, path in paths.items()}


def read_allow_list() -> tuple[set[str], set[str]]:
    """Names of the modules to ship: of the standard library, of NumPy."""
    lines = ALLOW_LIST.read_text(encoding="utf-8").splitlines()
    names = {line for line in map(str.strip, lines) if line and not line.startswith("#")}
    numpy = {name for name in names if name.split(".")[0] == "numpy"}
    return names - numpy, numpy


def lock_file(contents: dict[str, bytes]) -> str:
    """Text of Pyodide's lock file for these wheels: file name -> bytes. All but NumPy need NumPy."""
    packages = {}
    for file_name, data in sorted(contents.items()):
        name, version = file_name.split("-")[:2]
        packages[name] = PackageSpec(
            name=name,
            version=version,
            file_name=file_name,
            install_dir="site",
            imports=[name],
            depends=[] if name == "numpy" else ["numpy"],
            sha256=hashlib.sha256(data).hexdigest(),
        )
    lock = PyodideLockSpec(info=InfoSpec(**runtime.INFO), packages=packages)
    return json.dumps(lock.to_dict(), sort_keys=True)


def _place(name: str, data: bytes, out: Path) -> RuntimeFile:
    digest = hashlib.sha256(data).hexdigest()
    packed = _gzipped(data)
    path = f"{FOLDER}/{name}.{digest[:8]}.gz"
    (out / FOLDER).mkdir(parents=True, exist_ok=True)
    (out / path).write_bytes(packed)
    text = base64.b64encode(packed).decode("ascii")
    parts = [text[start : start + SCRIPT_CHARACTERS] for start in range(0, len(text), SCRIPT_CHARACTERS)]
    scripts = tuple(f"{path}.{number}.js" for number in range(1, len(parts) + 1))
    for script, part in zip(scripts, parts):
        (out / script).write_text(f'K3.file("{name}", "{part}");\n', encoding="ascii")
    return RuntimeFile(name, path, scripts, len(packed), len(data), digest)


def _gzipped(data: bytes) -> bytes:
    buffer = io.BytesIO()
    # Not gzip.compress: the header that it writes differs between Python 3.12 and 3.13.
    with gzip.GzipFile("", "wb", 9, buffer, mtime=0) as file:
        file.write(data)
    return buffer.getvalue()
