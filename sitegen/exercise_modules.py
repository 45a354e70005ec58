"""Run inside Pyodide by find_modules: use what pages use, then list the modules that this loaded from files.

Many modules load others only when a function is called (a codec, a traceback's helpers), so importing is not
enough: every kind of thing that k3core or edited code on a page may do is done once here.
"""

import importlib
import io
import pkgutil
import sys

# What code on a page may import whether or not k3core does today.
IMPORTS = """
    abc argparse array ast asyncio base64 bisect calendar cmath collections.abc colorsys contextlib
    contextvars copy csv dataclasses datetime decimal difflib encodings.ascii encodings.cp1252
    encodings.cp437 encodings.idna encodings.latin_1 encodings.raw_unicode_escape
    encodings.unicode_escape encodings.utf_16 encodings.utf_8_sig enum fractions functools graphlib gzip
    hashlib heapq hmac html importlib.abc importlib.metadata importlib.resources importlib.util inspect
    io itertools json keyword linecache logging math numbers operator os pathlib pickle pkgutil pprint
    queue random re reprlib secrets shlex shutil statistics string string.templatelib struct sys
    tempfile textwrap threading time timeit tokenize traceback types typing unicodedata urllib.parse
    uuid warnings weakref zipfile zlib
    numpy numpy.ma numpy.random numpy.linalg numpy.lib.stride_tricks numpy.lib.format numpy.typing
    numpy.exceptions
    pyodide.code pyodide.ffi pyodide.webloop
""".split()


def exercise_stdlib():
    import ast, csv, dataclasses, datetime, inspect, json, logging, statistics, traceback, warnings, zipfile

    for statement in ["{}['a']", "import nothere", "import sys; sys.modulez", "x ===", "int('x')", "1 / 0"]:
        try:
            exec(statement)
        except Exception:
            traceback.format_exc()
    point = dataclasses.make_dataclass("Point", [("x", int, 1)], frozen=True, order=True)
    inspect.signature(point)
    dataclasses.asdict(point())
    repr(point())
    inspect.getsource(dataclasses.replace)
    ast.unparse(ast.parse("x = 1"))
    json.loads(json.dumps({"a": [1.5, None, "\u00e9"]}, indent=1, sort_keys=True))
    list(csv.DictReader(io.StringIO("a,b\n1,2\n")))
    with zipfile.ZipFile(io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("\u00e9.txt", b"x")
        archive.read("\u00e9.txt")
    datetime.datetime.strptime("2026-01-02", "%Y-%m-%d").strftime("%A")
    statistics.median([1, 2])
    statistics.linear_regression([1, 2], [1, 2])
    int(str(10**4000))
    "{:,.3f}".format(1e9)
    "x".encode("latin-1")
    b"\xef\xbb\xbfx".decode("utf-8-sig")
    logging.getLogger("x").warning("a log line of the exercise")
    warnings.warn("a warning of the exercise")


def exercise_numpy():
    import numpy as np

    rng = np.random.default_rng(0)
    rng.integers(0, 5, 3)
    rng.choice(5, 3, replace=False)
    rng.permutation(5)
    rng.zipf(2, 3)
    rng.spawn(2)
    a = rng.normal(size=(4, 5))
    repr(a)
    repr(a.dtype)
    np.array2string(a, precision=2)
    np.array(["a", "b"])
    np.zeros(2, dtype=[("x", int), ("y", float)])
    np.rec.array([(1, 2.0)])
    np.datetime64("2026-01-02")
    np.iinfo(np.int64)
    np.finfo(np.float32)
    np.einsum("ij,kj->ik", a, a.astype(np.float16))
    np.linalg.norm(a @ a.T)
    np.linalg.solve(np.eye(3), np.ones(3))
    np.linalg.svd(a)
    np.median(a)
    np.nanmean(a)
    np.percentile(a, 50, axis=0)
    np.histogram(a)
    np.interp([0.5], [0, 1], [0, 1])
    np.poly1d([1, 2])
    np.unique([1, 1, 2], return_inverse=True)
    np.isin([1], [1])
    np.argsort(a, kind="stable")
    np.pad(a, 1)
    np.array_split(a, 2)
    np.vectorize(abs)(a)
    np.lib.stride_tricks.sliding_window_view(a, 2, axis=1)
    np.genfromtxt(io.StringIO("1 2"))
    file = io.BytesIO()
    np.savez(file, a=a)
    np.load(io.BytesIO(file.getvalue()))["a"]
    for expression in ["np.ones(2) + np.ones(3)", "np.linalg.inv(np.zeros((2, 2)))", "np.ones(4).reshape(3)"]:
        try:
            eval(expression)
        except Exception as error:
            str(error)


def exercise_k3core():
    """Every module, and every experiment with its default parameters."""
    import k3core

    for module in pkgutil.walk_packages(k3core.__path__, "k3core."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    from k3core import cli
    from k3core.lab.registry import everything

    run_json(cli, ["tabs", "--json"])
    for slug in everything():
        run_json(cli, ["run", slug, "--json"])


def run_json(cli, arguments):
    import contextlib
    import json

    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.redirect_stdout(output):
        cli.main(arguments)
    output.seek(0)
    return json.load(output)


def loaded():
    """Names of the modules that came out of the standard library's archive or NumPy's wheel."""
    result = set()
    for module in list(sys.modules.values()):
        origin = str(getattr(getattr(module, "__spec__", None), "origin", None))
        if "/python314.zip/" in origin or "/site-packages/numpy/" in origin:
            result.add(module.__spec__.name)
    return result


if __name__ == "__main__":
    for name in IMPORTS:
        importlib.import_module(name)
    exercise_stdlib()
    exercise_numpy()
    exercise_k3core()
    with open("/job/modules.txt", "w", encoding="utf-8") as target:
        target.writelines(f"{name}\n" for name in sorted(loaded()))
