"""`python -m k3core run`: the computation behind one tab, as data and as text."""

from k3core.lab.contract import Result
from k3core.lab.params import shown
from k3core.lab.registry import experiment
from k3core.lab.text import LANGUAGES


def add_parser(subparsers) -> None:
    """Add the `run` command to an argparse subparsers object; values are checked in `run`."""
    parser = subparsers.add_parser("run", help="run the experiment of a tab, a workbench or the home page")
    parser.add_argument("slug", metavar="SLUG", help="a tab or workbench, as `tabs` lists them")
    parser.add_argument("--preset", metavar="NAME", help="a named situation of the tab")
    parser.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help="set a parameter; repeatable")
    parser.add_argument("--seed", metavar="N", help="seed of the generator (default: the preset's, else 0)")
    add_output(parser)
    parser.set_defaults(run=run, render=render)


def add_output(parser) -> None:
    """Options of commands whose labels are in a language."""
    parser.add_argument("--lang", choices=LANGUAGES, default="en", help="language of labels (default: en)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args) -> dict:
    """The result for parsed arguments. Raises ValueError."""
    return answer(args.slug, args.preset, read_settings(args.set), args.seed).to_json(args.lang)


def read_settings(given: list[str]) -> dict[str, str]:
    """What --set options set; the last one of a name counts. Raises ValueError."""
    settings = {}
    for setting in given:
        name, equals, value = setting.partition("=")
        if not equals:
            raise ValueError(f"--set takes NAME=VALUE, not {shown(setting)}")
        settings[name] = value
    return settings


def answer(slug: str, preset: str | None, settings: dict, seed=None, files: dict | None = None) -> Result:
    """The result of a tab: its preset, changed by settings; seed None is the preset's. Raises ValueError."""
    params, usual = situation(slug, preset)
    return experiment(slug).run(params | settings, usual if seed is None else seed, files)


def situation(slug: str, preset: str | None) -> tuple[dict, int]:
    """What a preset (None: the defaults) sets: parameters and seed. Raises ValueError."""
    if preset is None:
        return {}, 0
    chosen = experiment(slug).preset(preset)
    return dict(chosen.params), chosen.seed


def render(data: dict) -> list:
    """The result as lines for a terminal."""
    settings = " ".join(f"{name}={value}" for name, value in data["params"].items())
    lines = [f"{data['slug']}  {settings}  seed={data['seed']}", ""]
    lines += [f"{metric['text']:>14}  {metric['label']}  [{metric['badge']}]" for metric in data["metrics"]]
    for table in data["tables"].values():
        if table["title"]:
            lines += ["", table["title"], *_table_lines(table)]
    lines += ["", *(f"{'ok  ' if check['passed'] else 'FAIL'}  {check['label']}: {check['text']}"
                    for check in data["checks"])]
    return [*lines, "", f"digest {data['digest']}"]


def _table_lines(table: dict) -> list:
    shown = [index for index, column in enumerate(table["columns"]) if column["key"] != "id"]
    rows = [[table["columns"][index]["label"] for index in shown],
            *([row[index] for index in shown] for row in table["text"])]
    widths = [max(len(row[index]) for row in rows) for index in range(len(shown))]
    return ["  ".join(cell.rjust(width) if index else cell.ljust(width)
                      for index, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in rows]
