"""Trimming and byte-compiling: what is kept, that it runs, and that the same input gives the same bytes."""

import ast
import importlib.util
import io
import json
import marshal
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from fake_build import ALLOWED, CONTENTS, archive

from sitegen import compile_modules, compiler, pack, runtime

ROOT = Path(__file__).parent.parent
NUMPY = CONTENTS[runtime.NUMPY_WHEEL]


def names(data: bytes) -> list[str]:
    return zipfile.ZipFile(io.BytesIO(data)).namelist()


@pytest.mark.parametrize(
    "path, name",
    [
        ("json/__init__.py", "json"),
        ("json/decoder.py", "json.decoder"),
        ("abc.py", "abc"),
        ("numpy/_core/_multiarray_umath.cpython-314-wasm32-emscripten.so", "numpy._core._multiarray_umath"),
        ("numpy/__init__.pyi", None),
        ("numpy/py.typed", None),
        ("numpy-2.4.3.dist-info/METADATA", None),
    ],
)
def test_module_names(path, name):
    assert compile_modules.module_name(path) == name


def test_repack_keeps_the_listed_modules_and_the_metadata():
    kept = compile_modules.repack(NUMPY, {"numpy", "numpy._core.core"})
    assert names(kept) == [
        "numpy-2.4.3.dist-info/METADATA",
        "numpy/__init__.pyc",
        "numpy/_core/core.cpython-314-wasm32.so",
    ]
    assert "numpy/__init__.py" in names(compile_modules.repack(NUMPY, {"numpy"}, compiled=False))


def test_repack_keeps_everything_without_a_list():
    data = archive(
        {"k3core/__init__.py": "", "k3core/models/k3.json": "{}", "k3core-0.1.0.dist-info/RECORD": ""}
    )
    assert names(compile_modules.repack(data)) == ["k3core/__init__.pyc", "k3core/models/k3.json"]


def test_repack_names_listed_modules_that_are_not_there():
    with pytest.raises(ValueError, match="numpy.gone"):
        compile_modules.repack(NUMPY, {"numpy", "numpy.gone"})


def test_byte_code_is_never_compared_with_a_source_and_runs():
    data = zipfile.ZipFile(io.BytesIO(compile_modules.repack(archive({"m.py": "X = 6 * 7\n"})))).read("m.pyc")
    assert data[:4] == importlib.util.MAGIC_NUMBER
    assert int.from_bytes(data[4:8], "little") == 0b01  # PEP 552: hash-based, not checked
    namespace = {}
    exec(marshal.loads(data[16:]), namespace)
    assert namespace["X"] == 42


def test_an_archive_of_byte_code_can_be_imported_from(tmp_path):
    (tmp_path / "lib.zip").write_bytes(
        compile_modules.repack(archive({"pkg/__init__.py": "", "pkg/m.py": "X = 7\n"}))
    )
    code = "import pkg.m; print(pkg.m.X, pkg.m.__file__.endswith('m.pyc'))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "lib.zip")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["7", "True"]


def test_repack_depends_on_nothing_but_its_input():
    other_order = archive(dict(reversed({"b.py": "B = {'x', 'y'}\n", "a.py": "A = 1\n"}.items())))
    data = archive({"b.py": "B = {'x', 'y'}\n", "a.py": "A = 1\n"})
    assert compile_modules.repack(data) == compile_modules.repack(other_order)


@pytest.fixture
def route(tmp_path, monkeypatch):
    """compile_archives with the running interpreter as the only route, as if it were the browser's."""
    monkeypatch.setenv("K3_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(compiler, "MAGIC", importlib.util.MAGIC_NUMBER.hex())
    monkeypatch.setattr(compiler, "_pythons", lambda: [sys.executable])
    return lambda jobs: compiler.compile_archives(jobs, tmp_path, print)


def test_the_python_route_compiles_as_repack_does_and_only_once(route, monkeypatch, capsys, tmp_path):
    jobs = {
        "stdlib.zip": (CONTENTS["python_stdlib.zip"], {"json", "json.decoder"}),
        "k3core.whl": (NUMPY, None),
    }
    expected = {name: compile_modules.repack(*job) for name, job in jobs.items()}
    assert route(jobs) == (expected, "python3.14")
    assert "compiling stdlib.zip, k3core.whl" in capsys.readouterr().out
    monkeypatch.setattr(compiler, "_run", None)
    assert route(jobs) == (expected, "python3.14")
    assert capsys.readouterr().out == ""


def test_the_cache_notices_another_input_and_keeps_few(route, tmp_path, capsys):
    for number in range(compiler.KEPT + 3):
        route({"k3core.whl": (archive({"m.py": f"X = {number}\n"}), None)})
    assert capsys.readouterr().out.count("compiling") == compiler.KEPT + 3
    assert len(list((tmp_path / "cache" / "compiled").iterdir())) == compiler.KEPT


def test_a_python_with_other_byte_code_is_no_route(monkeypatch, tmp_path):
    monkeypatch.setattr(compiler, "_pythons", lambda: [sys.executable])
    monkeypatch.setattr(compiler, "MAGIC", "00000000")
    monkeypatch.setattr(compiler, "node", lambda: None)
    assert list(compiler._routes(tmp_path)) == []
    (tmp_path / "jobs.json").write_text(json.dumps({"magic": "00000000", "jobs": []}))
    with pytest.raises(SystemExit, match="the browser reads 00000000"):
        compile_modules.main(str(tmp_path / "jobs.json"))


def test_the_wheel_does_not_depend_on_when_and_where_it_is_built(tmp_path, monkeypatch):
    wheels = []
    for number in range(2):
        project = tmp_path / str(number)
        (project / "k3core" / "models").mkdir(parents=True)
        (project / "k3core" / "__init__.py").write_text("__version__ = '0.1.0'\n")
        (project / "k3core" / "models" / "k3.json").write_text("{}")
        (project / "pyproject.toml").write_text(
            '[project]\nname = "k3core"\nversion = "0.1.0"\n'
            'description = "A test."\nrequires-python = ">=3.12"\n'
        )
        os.utime(project / "k3core" / "__init__.py", (number, 1e9 + number))
        monkeypatch.setenv("SOURCE_DATE_EPOCH", str(1_000_000_000 + number))
        wheels.append(pack.build_wheel(project, project / "dist"))
        assert os.environ["SOURCE_DATE_EPOCH"] == str(1_000_000_000 + number)
    assert wheels[0].name == "k3core-0.1.0-py3-none-any.whl"
    assert wheels[0].read_bytes() == wheels[1].read_bytes()
    assert "k3core/models/k3.json" in names(wheels[0].read_bytes())


def test_the_allow_list_splits_by_archive(monkeypatch, tmp_path):
    (tmp_path / "allowed.txt").write_text(ALLOWED)
    monkeypatch.setattr(pack, "ALLOW_LIST", tmp_path / "allowed.txt")
    assert pack.read_allow_list() == ({"json", "json.decoder"}, {"numpy", "numpy._core.core"})


def test_the_allow_list_has_what_k3core_imports():
    """A quick warning; that everything imports is proven in test_build_boot."""
    listed = set().union(*pack.read_allow_list())
    wanted = {}
    for path in (ROOT / "k3core").rglob("*.py"):
        if path.relative_to(ROOT).as_posix().startswith(pack.NOT_FOR_PAGES):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                wanted |= {alias.name: path for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                wanted[node.module] = path
    for name, path in wanted.items():
        origin = "" if name.startswith("k3core") else str(importlib.util.find_spec(name).origin)
        if origin.endswith(".py"):  # neither built in nor frozen
            assert (
                name in listed
            ), f"{path} imports {name}: use it in exercise_modules.py, then python -m sitegen.find_modules"
