"""The command line: `python -m k3core`. Exit status 0; 2 with one line on standard error; 130 after Ctrl-C."""

import argparse
import contextlib
import json
import os
import sys

from k3core import __version__, cli_fleet, cli_hash, cli_replay, cli_run, cli_size, cli_sweep, cli_tabs
from k3core.lab.params import shown

LONGEST = 1000  # characters of an error


class Parser(argparse.ArgumentParser):
    """argparse, but a wrong option costs one line, not the usage text."""

    def error(self, message):
        raise ValueError(f"{message}; see `{self.prog} --help`")

    def exit(self, status=0, message=None):
        """After --help and --version."""
        _print("", end="")
        raise SystemExit(status)


def main(argv: list | None = None) -> int:
    """Run one command and return its exit status."""
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None where the caller closed it
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        args = build_parser().parse_args(argv)
        data = args.run(args)
        _print(json.dumps(data, ensure_ascii=False, indent=1) if args.json else "\n".join(args.render(data)))
        return 0
    except KeyboardInterrupt as error:
        return _say("stopped", error, 130)
    except (ValueError, OSError) as error:
        return _say(_words(error), error, 2)
    except MemoryError as error:
        return _say(f"this machine has too little memory for that: {str(error) or 'ask for less'}", error, 2)


def _print(text: str, end: str = "\n") -> None:
    """Write to standard output. That a reader leaves early (`| head`) is no error."""
    try:
        print(text, end=end, flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left goes nowhere
        if not isinstance(error, BrokenPipeError):
            raise OSError(f"cannot write the output: {error.strerror}") from None


def _say(message: str, error: BaseException, status: int) -> int:
    """One line on standard error, an error's notes at its end -> the exit status."""
    line = " ".join("; ".join([message, *getattr(error, "__notes__", ())]).split())
    if len(line) > LONGEST:  # it quotes something very long
        line = f"{line[:LONGEST // 2]} ... {line[-LONGEST // 3:]}"
    if sys.stderr:
        with contextlib.suppress(OSError):
            print(f"k3core: {line}", file=sys.stderr, flush=True)
    return status


def _words(error: Exception) -> str:
    """What is wrong; where the system says it, the file and its words, without their number."""
    if isinstance(error, UnicodeEncodeError):
        return f"{shown(error.object)} is not text in UTF-8"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror if error.filename is None else f"{error.filename or shown('')}: {error.strerror}"
    return str(error)


def build_parser() -> Parser:
    """Every command sets `run`, arguments -> data, and `render`, data -> lines of text."""
    parser = Parser(prog="python -m k3core",
                    description="The serving layer of hybrid linear-attention models, computed.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND", parser_class=Parser)
    for command in (cli_tabs, cli_run, cli_size, cli_replay, cli_hash, cli_fleet, cli_sweep):
        command.add_parser(commands)
    return parser
