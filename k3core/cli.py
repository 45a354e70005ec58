"""The command line: `python -m k3core`. Exit status 0, or 2 with one line on standard error."""

import argparse
import json
import os
import sys

from k3core import __version__, cli_fleet, cli_hash, cli_replay, cli_size
from k3core.lab.registry import experiment, experiments
from k3core.lab.text import LANGUAGES


class Parser(argparse.ArgumentParser):
    """argparse, but a wrong option costs one line, not the usage text."""

    def error(self, message):
        raise ValueError(f"{message}; see `{self.prog} --help`")


def main(argv: list | None = None) -> int:
    """Run one command and return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8")
    try:
        args = build_parser().parse_args(argv)
        data = args.run(args)
        text = json.dumps(data, ensure_ascii=False, indent=1) if args.json else "\n".join(args.render(data))
        print(text, flush=True)
        return 0
    except BrokenPipeError:  # `| head` has read enough; what is left goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ValueError, OSError) as error:
        print(f"k3core: {' '.join(str(error).split())}", file=sys.stderr)
        return 2


def build_parser() -> Parser:
    """Every command sets `run`, arguments -> data, and `render`, data -> lines of text."""
    parser = Parser(prog="python -m k3core",
                    description="The serving layer of hybrid linear-attention models, computed.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", parser_class=Parser)
    _add_tabs(commands)
    _add_run(commands)
    cli_size.add_parser(commands)
    cli_replay.add_parser(commands)
    cli_hash.add_parser(commands)
    cli_fleet.add_parser(commands)
    return parser


def _add_tabs(commands) -> None:
    parser = commands.add_parser("tabs", help="list the tabs, their parameters and presets")
    _add_output(parser)
    parser.set_defaults(run=_tabs, render=_tab_lines)


def _add_run(commands) -> None:
    parser = commands.add_parser("run", help="run the experiment of one tab")
    parser.add_argument("slug", metavar="SLUG", help="a tab, as `tabs` lists them")
    parser.add_argument("--preset", metavar="NAME", help="a named situation of the tab")
    parser.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help="set a parameter; repeatable")
    parser.add_argument("--seed", metavar="N", help="seed of the generator (default: the preset's, else 0)")
    _add_output(parser)
    parser.set_defaults(run=_run, render=_result_lines)


def _add_output(parser) -> None:
    parser.add_argument("--lang", choices=LANGUAGES, default="en", help="language of labels (default: en)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _tabs(args) -> list:
    return [item.to_json(args.lang) for item in experiments()]


def _tab_lines(data: list) -> list:
    return [f"{tab['tab']:>2}  {tab['slug']:<22} {tab['title']}\n    {tab['question']}" for tab in data]


def _run(args) -> dict:
    chosen = experiment(args.slug)
    params, seed = {}, 0
    if args.preset is not None:
        preset = chosen.preset(args.preset)
        params, seed = dict(preset.params), preset.seed
    for setting in args.set:
        name, equals, value = setting.partition("=")
        if not equals:
            raise ValueError(f"--set takes NAME=VALUE, not {setting!r}")
        params[name] = value
    return chosen.run(params, seed if args.seed is None else args.seed).to_json(args.lang)


def _result_lines(data: dict) -> list:
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
