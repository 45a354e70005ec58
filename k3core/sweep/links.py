"""The page of the site that shows a point, as an address relative to the site's root."""

from dataclasses import asdict
from types import SimpleNamespace
from urllib.parse import quote

from .. import cli_fleet, cli_replay, cli_run, cli_size, models
from ..fleet.scenario import Scenario
from ..lab.registry import TABS, experiment
from ..sizing import resolve
from .spec import Point, text

GIB = 2**30


def address(point: Point) -> str | None:
    """Page and fragment that set everything the point sets; None where no page can show it."""
    try:
        found = PAGES[point.command](point)
        if found is None:
            return None
        slug, params, seed = found
        chosen = experiment(slug)
        state = {param.name: text(param.name, param.parse(params[param.name])) for param in chosen.params
                 if param.name in params and param.parse(params[param.name]) != param.default}
    except ValueError:  # beyond what the page's controls can hold
        return None
    if seed:
        state["seed"] = str(seed)
    for item in chosen.inputs:
        parameter = "model" if point.command == "size" else item.name
        if parameter in point.files:
            state[f"file.{item.name}"] = point.files[parameter].sha256
    fragment = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in state.items())
    return ("tabs/" if slug in TABS else "") + f"{slug}.html" + (f"#{fragment}" if fragment else "")


def _run(point: Point) -> tuple:
    params, seed = cli_run.situation(point.params["slug"], point.params.get("preset"))
    return point.params["slug"], params | point.texts, seed if point.seed is None else point.seed


def _size(point: Point) -> tuple:
    options = {name: value for name, value in point.texts.items() if name != "model"}
    settings = cli_size.read_settings(options)
    file = point.files.get("model")
    model = cli_size.model_from(file.read(), file.name) if file else models.load(point.params["model"])
    full = resolve(model, settings)
    same = ("tp", "kv_dtype", "drafts", "conv_dtype", "align", "mode", "grouping")
    params = {name: getattr(full, name) for name in same}
    params |= {"state_dtype": settings.state_dtype or "model", "num_blocks": settings.num_blocks or 0}
    params |= {} if file else {"model": model.name}
    params |= {} if full.max_model_len is None else {"max_model_len": full.max_model_len}
    params |= {} if settings.memory_bytes is None else {"memory_gib": settings.memory_bytes / GIB}
    return "sizing", params, 0


def _replay(point: Point) -> tuple | None:
    options = cli_replay.read_options({k: v for k, v in point.texts.items() if k in cli_replay.READERS})
    grain, block, capacity = options["grain"], options["hash_block"], options["capacity_gib"]
    if "model" in point.files or options["kv_dtype"] != "bf16" or grain % block:
        return None
    policy = str(options["policy"]).replace(f"retain:{8 * grain}", "retain:8g")
    return "traces", {"policy": policy, "grain_blocks": grain // block, "hash_block": block,
                      "capacity_gib": 0.0 if capacity is None else capacity / GIB, "eviction": options["eviction"],
                      "model": point.params.get("model", "kimi-k3"), "tp": options["tp"],
                      "bad_lines": options["bad_lines"]}, 0


def _fleet(point: Point) -> tuple | None:
    """The tab has fewer parameters; it shows the point where the rest is one of its kinds of traffic."""
    from ..lab.fleet_simulation_runs import TRAFFIC, situation

    settings = {name: value for name, value in point.texts.items() if name != "preset"}
    wanted = cli_fleet.scenario_of(point.params.get("preset", "burst"), settings)
    repair = wanted.recover_at - wanted.fail_at if wanted.recover_at > 0 else 0
    for traffic in TRAFFIC:
        params = {"traffic": traffic, "policy": wanted.policy, "router": wanted.router, "burst": wanted.burst_factor,
                  "vip_percent": wanted.vip_percent, "clusters": wanted.clusters, "size": 1, "mistake": "none",
                  "deaths": [max(0.0, wanted.fail_at)] + [0] * 7, "repair": repair,
                  "joins": [max(0.0, wanted.add_at)] + [0] * 3}
        there = situation(SimpleNamespace(**params))
        if _compared(there) == _compared(wanted) and wanted.policy != "token_bucket":
            return "fleet-simulation", params, point.seed or 0
    return None


def _compared(scenario: Scenario) -> dict:
    """What the tab must have alike. Its incidents and its token bucket are set another way."""
    apart = ("token_rate", "token_burst", "fail_at", "recover_at", "add_at", "incidents", "mistake")
    return {name: value for name, value in asdict(scenario).items() if name not in apart}


PAGES = {"run": _run, "size": _size, "replay": _replay, "fleet": _fleet}
