"""The packed files, exactly as a page gets them, start Python; every module that ships can be imported."""

import gzip
import json
import subprocess
from pathlib import Path

import pytest

from sitegen import compiler, pack, runtime

ROOT = Path(__file__).parent.parent
CACHED = all((runtime.cache_dir() / f"pyodide-{runtime.PYODIDE}" / name).is_file() for name in runtime.FILES)
pytestmark = [
    pytest.mark.skipif(not compiler.node(), reason="needs Node 18 or newer"),
    pytest.mark.skipif(not CACHED, reason="the browser runtime is not cached: build the site first"),
]

# Runs in Pyodide: imports what /job/modules.json lists and k3core, and writes what it found.
PROBE = """
import importlib, json, pkgutil, sys
failed = {}
import k3core
names = json.load(open("/job/modules.json"))
modules = [module.name for module in pkgutil.walk_packages(k3core.__path__, "k3core.")]
names += [name for name in modules if not name.endswith("__main__")]
for name in names:
    try:
        importlib.import_module(name)
    except Exception as error:
        failed[name] = repr(error)
import numpy
found = {"failed": failed, "python": list(sys.version_info[:2]), "numpy": numpy.__version__,
         "k3core": k3core.__version__, "bits": int(numpy.int_(0).itemsize),
         "normal": numpy.random.default_rng(7).normal(size=3).tolist(),
         "compiled": sorted({m.__spec__.origin.rpartition(".")[2] for n, m in sys.modules.items()
                             if n.split(".")[0] in ("numpy", "k3core", "json") and m.__spec__.origin}),
         "trimmed": not importlib.util.find_spec("xml") and not importlib.util.find_spec("numpy.fft")}
json.dump(found, open("/job/found.json", "w"))
"""


@pytest.fixture(scope="module", params=["node", "sources"])
def booted(request, tmp_path_factory):
    """(route, what the probe found) for files that were packed by this route."""
    folder = tmp_path_factory.mktemp(request.param)
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "sources":
            patch.setattr(compiler, "_routes", lambda runtime_dir: [])
        else:
            patch.setattr(compiler, "_pythons", lambda: [])
        assets = pack.pack(ROOT, runtime.fetch(print, offline=True), folder / "site", print)
    assert assets.route == request.param
    files, work = folder / "files", folder / "work"
    files.mkdir()
    work.mkdir()
    for file in assets.files:
        (files / file.name).write_bytes(gzip.decompress((folder / "site" / file.path).read_bytes()))
    (work / "modules.json").write_text(json.dumps(sorted(set().union(*pack.read_allow_list()))))
    (folder / "probe.py").write_text(PROBE)
    command = compiler.in_node(compiler.node(), files, work, folder / "probe.py", lock=assets.lock)
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return assets, json.loads((work / "found.json").read_text())


def test_everything_that_ships_can_be_imported(booted):
    assert booted[1]["failed"] == {}


def test_python_and_numpy_are_the_announced_ones(booted):
    assets, found = booted
    assert ".".join(map(str, found["python"])) == assets.versions["python"]
    assert (found["numpy"], found["k3core"]) == (assets.versions["numpy"], assets.versions["k3core"])
    assert found["bits"] == 4  # the platform whose default integers overflow: see CONTRIBUTING.md


def test_the_route_decides_between_byte_code_and_sources(booted):
    assets, found = booted
    assert found["compiled"] == sorted(["so", "pyc" if assets.route == "node" else "py"])


def test_what_is_not_listed_is_not_there(booted):
    assert booted[1]["trimmed"]


def test_random_numbers_are_those_of_this_machine(booted):
    import numpy

    assert booted[1]["normal"] == numpy.random.default_rng(7).normal(size=3).tolist()


def test_a_first_visit_loads_little(booted):
    assert booted[0].wire_bytes < 8_500_000


def test_compiling_twice_gives_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(compiler, "_pythons", lambda: [])
    folder = runtime.fetch(print, offline=True)
    jobs = {"a.zip": ((folder / "python_stdlib.zip").read_bytes(), {"json", "json.decoder", "typing"})}
    results = []
    for number in range(2):
        monkeypatch.setenv("K3_CACHE", str(tmp_path / str(number)))
        results.append(compiler.compile_archives(jobs, folder, print))
    assert results[0] == results[1] and results[0][1] == "node"


def test_the_magic_number_is_that_of_this_pyodide(tmp_path):
    script = tmp_path / "magic.py"
    script.write_text("import importlib.util as u; open('/job/magic', 'w').write(u.MAGIC_NUMBER.hex())")
    (tmp_path / "work").mkdir()
    folder = runtime.fetch(print, offline=True)
    subprocess.run(compiler.in_node(compiler.node(), folder, tmp_path / "work", script), check=True)
    assert (tmp_path / "work" / "magic").read_text() == compiler.MAGIC
