"""Same result in the browser as in CPython: how two results are compared, and which parameters are tried."""

import json

import numpy as np

from k3core.lab.contract import Experiment, dumps
from k3core.lab.host import Host


def native(slug: str, params: dict, seed=0, lang: str = "en") -> str:
    """The JSON text that CPython writes for one run, through the same host as the browser."""
    host = Host()
    reply = host.handle(dumps({"do": "start", "slug": slug, "params": params, "seed": seed, "lang": lang}))
    while reply.startswith('{"state":"progress"'):
        reply = host.handle('{"do":"step"}')
    return reply


def differences(here: str, there: str) -> list:
    """What two replies disagree about, beyond what their kinds allow; [] if nothing."""
    here, there = json.loads(here), json.loads(there)
    if here["state"] != "done" or there["state"] != "done":
        return [] if here == there else [f"{here} / {there}"]
    a, b = here["result"], there["result"]
    found = [f"{key}: {a[key]} / {b[key]}" for key in ("slug", "params", "seed", "digest") if a[key] != b[key]]
    found += _named(a["metrics"], b["metrics"], lambda x, y: _values(x["value"], y["value"], x))
    found += _named(a["checks"], b["checks"], lambda x, y: x["passed"] == y["passed"])
    if list(a["tables"]) != list(b["tables"]):
        return [*found, f"tables: {list(a['tables'])} / {list(b['tables'])}"]
    for name in a["tables"]:
        found += _tables(name, a["tables"][name], b["tables"][name])
    scenes = [[(s["name"], s["frames"], s["poster"]) for s in result["scenes"]] for result in (a, b)]
    return found + ([] if scenes[0] == scenes[1] else [f"scenes: {scenes}"])


def _named(a: list, b: list, same) -> list:
    if [x["key"] for x in a] != [y["key"] for y in b]:
        return [f"keys: {[x['key'] for x in a]} / {[y['key'] for y in b]}"]
    return [f"{x['key']}: {x} / {y}" for x, y in zip(a, b) if not same(x, y)]


def _tables(name: str, a: dict, b: dict) -> list:
    if a["columns"] != b["columns"] or len(a["rows"]) != len(b["rows"]):
        return [f"table {name}: {len(a['rows'])} rows of {a['columns']} / {len(b['rows'])} of {b['columns']}"]
    return [f"table {name}, row {number}, {column['key']}: {x} / {y}"
            for number, (row, other) in enumerate(zip(a["rows"], b["rows"]))
            for column, x, y in zip(a["columns"], row, other) if not _values(x, y, column)]


def _values(x, y, declared: dict) -> bool:
    """Whether two values agree as their kind promises: see k3core.lab.contract.Metric."""
    if declared["kind"] == "exact" or not all(isinstance(v, (int, float)) for v in (x, y)):
        return x == y and type(x) is type(y)
    if declared["kind"] == "error":
        return max(abs(x), abs(y)) <= declared["scale"]
    return abs(x - y) <= declared["tolerance"] * max(abs(x), abs(y), declared["scale"])


def sample(experiment: Experiment, rng: np.random.Generator) -> dict:
    """One point of an experiment's parameter space, every parameter drawn from its whole range."""
    return {param.name: _draw(param, rng) for param in experiment.params}


def _draw(param, rng):
    if param.kind == "bool":
        return bool(rng.integers(2))
    if param.kind == "choice":
        return param.choices[int(rng.integers(len(param.choices)))][0]
    if param.kind == "text":
        return str(param.default)[: int(rng.integers(1, len(str(param.default)) + 1))]
    if param.kind == "list":
        count = int(rng.integers(1, min(8, param.max_length) + 1))
        return [_draw_number(param, isinstance(param.default[0], int), rng) for _ in range(count)]
    return _draw_number(param, param.kind == "int", rng)


def _draw_number(param, whole: bool, rng):
    if whole:
        step = int(param.step or 1)
        return int(param.minimum) + step * int(rng.integers((param.maximum - param.minimum) // step + 1))
    return round(float(rng.uniform(param.minimum, param.maximum)), 3)
