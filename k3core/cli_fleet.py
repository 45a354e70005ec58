"""`python -m k3core fleet`: simulate a fleet under a burst, as data and as text."""

from dataclasses import asdict, fields, replace
from math import isnan

from .cli_run import read_settings
from .fleet.admission import POLICIES
from .fleet.results import ClassReport, Distribution, Load
from .fleet.routing import ROUTERS
from .fleet.scenario import HASHES, MEASURES, PRESETS, SERVICES, Outcome, Scenario, play
from .fleet.simulate import finish
from .lab.params import parse_seed, shown

KINDS = {field.name: type(getattr(Scenario(), field.name)) for field in fields(Scenario)}
CHOICES = {"policy": POLICIES, "router": ROUTERS, "scheme": HASHES, "measure": MEASURES, "service": SERVICES}


def add_parser(subparsers) -> None:
    """Add the `fleet` command to an argparse subparsers object; values are checked in `run`."""
    parser = subparsers.add_parser(
        "fleet",
        help="simulate VIP and ordinary traffic on a fleet",
        description="Simulate VIP and ordinary traffic on a fleet of clusters, isolated and sharing. "
        f"Parameters: {', '.join(field.name for field in fields(Scenario))}.",
    )
    parser.add_argument("--preset", metavar="NAME", default="burst", help=f"{', '.join(PRESETS)} (burst)")
    parser.add_argument(
        "--set", metavar="NAME=VALUE", action="append", default=[], help="set a parameter; repeatable"
    )
    parser.add_argument("--seed", metavar="N", default="0", help="seed of the traffic (0)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run, render=render)


def run(args) -> dict:
    """The answer for parsed arguments: preset, params, seed, metrics, runs per policy. Raises ValueError."""
    return answer(scenario_of(args.preset, read_settings(args.set)), args.preset, parse_seed(args.seed))


def answer(scenario: Scenario, preset: str, seed: int) -> dict:
    """What `run` returns, for a scenario that was made from a preset."""
    outcomes = finish(play(scenario, seed))
    return {
        "preset": preset,
        "params": asdict(scenario),
        "seed": seed,
        "metrics": metrics(scenario, outcomes),
        "runs": {policy: _outcome(outcome) for policy, outcome in outcomes.items()},
    }


def scenario_of(preset: str, settings: dict[str, str]) -> Scenario:
    """A preset with some of its fields set from text. Raises ValueError."""
    return replace(preset_of(preset), **{name: read_value(name, text) for name, text in settings.items()})


def preset_of(name: str) -> Scenario:
    """The scenario of that name. Raises ValueError."""
    if name not in PRESETS:
        raise ValueError(f"preset is {shown(name)}; it must be one of {', '.join(PRESETS)}")
    return PRESETS[name]


def read_value(name: str, text: str) -> int | float | str:
    """The value of a scenario's field from text. Raises ValueError; ranges are the scenario's to check."""
    if name not in KINDS:
        raise ValueError(f"there is no parameter {shown(name)}; there are {', '.join(KINDS)}")
    if text not in CHOICES.get(name, (text,)):
        raise ValueError(f"{name} is {shown(text)}; it must be one of {', '.join(CHOICES[name])}")
    try:
        return KINDS[name](text)
    except ValueError:
        wanted = "a whole number" if KINDS[name] is int else "a number"
        raise ValueError(f"{name} is {shown(text)}; it must be {wanted}") from None


def metrics(scenario: Scenario, outcomes: dict[str, Outcome]) -> dict:
    """The figures in brief; hit rate, cost and rejections are those of the scenario's own policy."""
    own, measure = outcomes[scenario.policy], scenario.measure
    p99 = {
        f"{name}_p99_{label}_ms": _or_none(outcomes[policy].p99_ms(klass, measure))
        for klass, name in enumerate(("vip", "ordinary"))
        for label, policy in (("isolated", "strict"), ("shared", "shared"))
    }
    return {
        **p99,
        "hit_rate": own.hit_rate,
        "cost_per_request_usd": own.cost_usd,
        "rejected": own.rejected,
    }


def _or_none(value: float) -> float | None:
    return None if isnan(value) else value


def _outcome(outcome: Outcome) -> dict:
    return {
        "classes": [_class(one) for one in outcome.classes],
        "in_burst": [_class(one) for one in outcome.in_burst],
        "hit_rate": outcome.hit_rate,
        "cost_per_request_usd": outcome.cost_usd,
        "rejected": outcome.rejected,
        "load": [_load(load) for load in outcome.load],
        "load_in_burst": [_load(load) for load in outcome.load_in_burst],
        "checks": [asdict(check) for check in outcome.checks],
    }


def _load(load: Load) -> dict:
    return {**asdict(load), "unstable": load.unstable}


def _class(one: ClassReport) -> dict:
    data = asdict(one)
    for name in ("wait", "ttft", "response"):
        data[f"{name}_ms"] = _milliseconds(getattr(one, name))
        del data[name]
    return data


def _milliseconds(times: Distribution) -> dict:
    data = asdict(times)
    del data["count"]
    data["p99_interval"] = [_or_none(1000 * bound) for bound in times.p99_interval]
    return {
        name: value if isinstance(value, list) else _or_none(1000 * value) for name, value in data.items()
    }


def _shown(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 or isinstance(value, int) else f"{value:.4g}"


def render(answer: dict) -> list[str]:
    """The answer as lines for a terminal."""
    measure = answer["params"]["measure"]
    lines = [f"{answer['preset']}, seed {answer['seed']}: P99 of {measure} over the whole run"]
    for name, value in answer["metrics"].items():
        lines.append(f"  {name:<28}{_shown(value):>12}")
    for policy, outcome in answer["runs"].items():
        lines += [
            "",
            f"{policy}: {measure} in ms",
            f"  {'':<20}{'served':>8}{'refused':>8}"
            + "".join(f"{name:>11}" for name in ("mean", "p50", "p90", "p99")),
        ]
        for when, classes in (("", outcome["classes"]), (" in burst", outcome["in_burst"])):
            for one in classes:
                times = one[f"{measure}_ms"]
                figures = (times[name] for name in ("mean", "p50", "p90", "p99"))
                row = "".join("          -" if value is None else f"{value:>11,.1f}" for value in figures)
                refused = sum(one["rejected"].values())
                lines.append(f"  {one['name'] + when:<20}{one['completed']:>8}{refused:>8}{row}")
        for when, loads in (("whole run", outcome["load"]), ("burst", outcome["load_in_burst"])):
            for load in loads:
                verdict = "  unstable: the queue grows" if load["unstable"] else ""
                lines.append(
                    f"  load of {load['name']} in the {when}: slots {load['slots']:.2f}, prefill "
                    f"{load['prefill']:.2f}{verdict}"
                )
        lines += [f"  CHECK FAILS: {check['key']}" for check in outcome["checks"] if not check["passed"]]
    return lines
