"""Commands of `python -m k3core`, called in this process."""

import argparse
from importlib import import_module


def parse(name, *words):
    """The arguments of `python -m k3core NAME WORDS`, as its module parses them."""
    parser = argparse.ArgumentParser()
    import_module(f"k3core.cli_{name}").add_parser(parser.add_subparsers())
    return parser.parse_args([name, *map(str, words)])


def command(name, *words):
    """(answer, lines of text) of `python -m k3core NAME WORDS`."""
    args = parse(name, *words)
    answer = args.run(args)
    return answer, args.render(answer)
