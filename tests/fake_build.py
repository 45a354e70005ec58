"""A whole build in milliseconds: fake runtime files, a tiny project, no network, a stub for the pages."""

import hashlib
import io
import sys
import types
import zipfile
from pathlib import Path

import sitegen
from sitegen import cli, compiler, options, pack, runtime

UNREACHABLE = "http://127.0.0.1:9/pyodide/"  # the discard port: refused at once


def archive(members: dict[str, str]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as target:
        for name, text in members.items():
            target.writestr(name, text)
    return data.getvalue()


CONTENTS = {
    "pyodide.mjs": b"export const version = 'fake';\n",
    "pyodide.asm.mjs": b"export default 1;\n" * 1000,
    "pyodide.asm.wasm": bytes(range(256)) * 100,
    "python_stdlib.zip": archive(
        {"json/__init__.py": "X = 1\n", "json/decoder.py": "Y = 2 in {'a', 'b', 'c'}\n", "turtle.py": "Z = 3\n"}
    ),
    runtime.NUMPY_WHEEL: archive(
        {
            "numpy/__init__.py": "N = 1\n",
            "numpy/tests/test_x.py": "",
            "numpy/_core/core.cpython-314-wasm32.so": "so",
            "numpy-2.4.3.dist-info/METADATA": "Name: numpy\n",
            "numpy-2.4.3.dist-info/RECORD": "wrong by now\n",
        }
    ),
}
WEIGHTS = bytes(range(7)) * 300
ALLOWED = "# a comment\njson\njson.decoder\nnumpy\nnumpy._core.core\n"


class FakeBuild:
    """cache, runtime_dir, out: folders of this build; none of them exists yet but runtime_dir."""

    def __init__(self, folder: Path, monkeypatch):
        self.folder = folder
        self.cache = folder / "cache" / "pyodide-314.0.3"
        self.runtime_dir = folder / "distribution"
        self.out = folder / "site"
        self.page = "first"
        self.runtime_dir.mkdir()
        for name, data in CONTENTS.items():
            (self.runtime_dir / name).write_bytes(data)
        project = folder / "project"
        (project / "k3core" / "models").mkdir(parents=True)
        (project / "k3core" / "models" / "tiny.npz").write_bytes(WEIGHTS)
        (project / "k3core" / "__init__.py").write_text("__version__ = '0.1.0'\n")
        (project / "README.md").write_text("A test.\n")
        (project / "pyproject.toml").write_text(
            '[project]\nname = "k3core"\nversion = "0.1.0"\ndescription = "A test."\nreadme = "README.md"\n'
        )
        (folder / "allowed.txt").write_text(ALLOWED)

        monkeypatch.setenv("K3_CACHE", str(folder / "cache"))
        monkeypatch.setattr(
            runtime, "FILES", {name: hashlib.sha256(data).hexdigest() for name, data in CONTENTS.items()}
        )
        monkeypatch.setattr(runtime, "CDN", UNREACHABLE)
        monkeypatch.setattr(runtime, "_run_pip", self.pip_fails)
        monkeypatch.setattr(compiler, "_routes", lambda runtime_dir: [])
        monkeypatch.setattr(pack, "ALLOW_LIST", folder / "allowed.txt")
        monkeypatch.setattr(cli, "ROOT", project)
        monkeypatch.setattr(cli.signal, "signal", lambda number, handler: None)
        self.stub = types.ModuleType("sitegen.render")
        self.stub.render = self.render
        monkeypatch.setitem(sys.modules, "sitegen.render", self.stub)
        monkeypatch.setattr(sitegen, "render", self.stub, raising=False)

    def render(self, out, assets, base_url, report):
        (out / "index.html").write_text(f"<!doctype html><title>{self.page}</title>{base_url or ''}")
        report("1 page")

    def pip_fails(self, command, temporary, report, unreachable):
        raise sitegen.failure.Failure(
            f"cannot be fetched: {unreachable}; pip: ERROR: No matching distribution"
        )

    def pip_brings(self, contents: dict[str, bytes]):
        def run(command, temporary, report, unreachable):
            with zipfile.ZipFile(temporary / "open_webui-0.12.4-py3-none-any.whl", "w") as wheel:
                for name, data in contents.items():
                    wheel.writestr("open_webui/frontend/pyodide/" + name, data)

        return run

    def fill_cache(self):
        for name, data in CONTENTS.items():
            runtime.write_atomically(self.cache / name, data)

    def build(self, *arguments: str) -> int:
        return cli.main(options.parse(["--out", str(self.out), *arguments]))

    def files(self, folder: Path | None = None) -> dict[str, bytes]:
        folder = folder or self.out
        return {
            str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()
        }
