"""The command line: `python -m k3core`. Exit status 0, or 2 with one line on standard error."""

import argparse
import json
import os
import sys

from k3core import __version__, cli_fleet, cli_hash, cli_replay, cli_run, cli_size, cli_sweep
from k3core.lab.registry import experiments


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
    cli_run.add_parser(commands)
    cli_size.add_parser(commands)
    cli_replay.add_parser(commands)
    cli_hash.add_parser(commands)
    cli_fleet.add_parser(commands)
    cli_sweep.add_parser(commands)
    return parser


def _add_tabs(commands) -> None:
    parser = commands.add_parser("tabs", help="list the tabs, their parameters and presets")
    cli_run.add_output(parser)
    parser.set_defaults(run=_tabs, render=_tab_lines)


def _tabs(args) -> list:
    return [item.to_json(args.lang) for item in experiments()]


def _tab_lines(data: list) -> list:
    return [f"{tab['tab']:>2}  {tab['slug']:<22} {tab['title']}\n    {tab['question']}" for tab in data]
