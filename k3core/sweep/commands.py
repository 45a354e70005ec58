"""The commands that can be swept, each as a pure function: parameters, seed and files -> metrics and digest.

The functions are those behind the command line. A parameter has the name of the command's option, with underscores,
and its value is the option's text.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache

from .. import cli_fleet, cli_replay, cli_run, cli_size, models
from ..lab.contract import dumps, plain
from ..lab.params import Param, ParamError
from ..lab.registry import experiment
from ..sizing import resolve
from ..traces import read_trace
from .files import File


@dataclass(frozen=True)
class Command:
    """One command.

    names     parameters of a point -> names of all that it may have. Raises ValueError.
    check     (parameters, name): raises ValueError where this value is wrong, whatever the others are; how values fit
              together shows when the point is computed
    files     parameters -> names of those that are paths
    compute   (parameters, seed or None, files) -> ({metric: value}, digest). Raises ValueError.
    needed    parameters without a default
    seeded    whether a point may have a seed
    shown     metrics that a report draws first
    """

    names: Callable[[dict], tuple]
    check: Callable[[dict, str], None]
    files: Callable[[dict], tuple]
    compute: Callable[[dict, int | None, dict[str, File]], tuple[dict, str]]
    needed: tuple = ()
    seeded: bool = False
    shown: tuple = ()


def digest(data) -> str:
    """SHA-256 of what is exact in nested data: all but the floats."""
    return hashlib.sha256(dumps(_exact(data), sort_keys=True).encode()).hexdigest()


def _exact(data):
    if isinstance(data, dict):
        return {name: _exact(value) for name, value in data.items() if not isinstance(value, float)}
    if isinstance(data, (list, tuple)):
        return [_exact(value) for value in data if not isinstance(value, float)]
    return data


def _model(params: dict, files: dict) -> models.Model:
    if "model" in files:
        return cli_size.model_from(files["model"].read(), files["model"].name)
    return _preset(params.get("model", "kimi-k3"))


_preset = lru_cache(maxsize=8)(models.load)


@cache
def _presets() -> tuple:
    return tuple(models.names())


def _model_file(params: dict) -> tuple:
    return () if params.get("model", "kimi-k3") in _presets() else ("model",)


# --- size ---

NOT_METRICS = ("model", "title", "note", "state_dtype_from", "settings", "derivation", "two_pool_ratio")


def _check_size(params: dict, name: str) -> None:
    if name != "model":
        resolve(_preset("kimi-k3"), cli_size.read_settings({name: params[name]}))


def _size(params: dict, seed: int | None, files: dict) -> tuple[dict, str]:
    answer = cli_size.answer(_model(params, files), {k: v for k, v in params.items() if k != "model"})
    metrics = {}
    for name, value in answer.items():
        if isinstance(value, dict) and name not in NOT_METRICS:
            metrics |= {f"{name}.{inner}": number for inner, number in value.items()}
        elif name not in NOT_METRICS and value is not None and not isinstance(value, list):
            metrics[name] = value
    return metrics, digest(answer)


# --- replay ---

ECHOED = ("trace", "policy", "grain", "hash_block", "capacity_bytes", "eviction", "model", "tp", "kv_dtype")


def _check_replay(params: dict, name: str) -> None:
    if name not in ("trace", "model"):
        cli_replay.read_options({name: params[name]})


def _replay(params: dict, seed: int | None, files: dict) -> tuple[dict, str]:
    options = cli_replay.read_options({k: v for k, v in params.items() if k in cli_replay.READERS})
    requests, skipped = _requests(files["trace"], options["hash_block"], options["bad_lines"] == "skip")
    answer = cli_replay.answer(files["trace"].name, requests, _model(params, files), options)
    metrics = {name: value for name, value in answer.items() if name not in ECHOED} | {"lines_skipped": skipped}
    return metrics, digest(metrics)


@lru_cache(maxsize=2)  # the points of one file follow one another
def _requests(trace: File, hash_block: int, skip: bool) -> tuple[list, int]:
    """The requests of a trace, and how many lines were left out."""
    bad = []
    lines = trace.read().splitlines(keepends=True)
    try:
        requests = list(read_trace(lines, hash_block, bad.append if skip else None))
    except ValueError as error:
        raise ValueError(f"{trace.name}: {error}") from None
    return requests, len(bad)


# --- run ---


def _run_names(params: dict) -> tuple:
    chosen = experiment(params["slug"])
    return "slug", "preset", *(item.name for item in (*chosen.params, *chosen.inputs))


def _run_files(params: dict) -> tuple:
    return tuple(item.name for item in experiment(params["slug"]).inputs if item.name in params)


def _check_run(params: dict, name: str) -> None:
    chosen = experiment(params["slug"])
    if name == "preset":
        chosen.preset(params["preset"])
    known: dict[str, Param] = {param.name: param for param in chosen.params}
    if name in known:
        known[name].parse(params[name])


def _run(params: dict, seed: int | None, files: dict) -> tuple[dict, str]:
    settings = {k: v for k, v in params.items() if k not in ("slug", "preset")}
    texts = {name: _text(file) for name, file in files.items()}
    try:
        result = cli_run.answer(params["slug"], params.get("preset"), settings, seed, texts)
    except ParamError as error:
        raise ValueError(f"{files[error.name].name}: {error}" if error.name in files else str(error)) from None
    metrics = {one.key: plain(one.value) for one in result.metrics if one.kind != "error"}
    return metrics | {"checks_failed": sum(not check.passed for check in result.checks)}, result.digest()


@lru_cache(maxsize=2)
def _text(file: File) -> str:
    try:
        return file.read().decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{file.name}: this is not text in UTF-8") from None


# --- fleet ---


def _check_fleet(params: dict, name: str) -> None:
    if name == "preset":
        cli_fleet.preset_of(params["preset"])
    else:
        cli_fleet.read_value(name, params[name])


def _fleet(params: dict, seed: int | None, files: dict) -> tuple[dict, str]:
    preset = params.get("preset", "burst")
    scenario = cli_fleet.scenario_of(preset, {k: v for k, v in params.items() if k != "preset"})
    answer = cli_fleet.answer(scenario, preset, seed or 0)
    failed = sum(not check["passed"] for run in answer["runs"].values() for check in run["checks"])
    return answer["metrics"] | {"checks_failed": failed}, digest(answer["runs"])


COMMANDS = {
    "size": Command(lambda params: ("model", *cli_size.READERS), _check_size, _model_file, _size, needed=("model",),
                    shown=("max_concurrency", "block_size", "bytes_per_token", "padding_percent")),
    "replay": Command(lambda params: ("trace", "model", *cli_replay.READERS), _check_replay,
                      lambda params: ("trace", *_model_file(params)), _replay, needed=("trace",),
                      shown=("hit_rate", "peak_bytes", "checkpoints_written", "evicted_checkpoints")),
    "run": Command(_run_names, _check_run, _run_files, _run, needed=("slug",), seeded=True),
    "fleet": Command(lambda params: ("preset", *cli_fleet.KINDS), _check_fleet, lambda params: (), _fleet, seeded=True,
                     shown=("vip_p99_isolated_ms", "vip_p99_shared_ms", "hit_rate", "cost_per_request_usd")),
}
