"""`python -m k3core tabs`: everything that `run` runs, as data and as text."""

from textwrap import wrap

from k3core.cli_run import add_output
from k3core.lab.registry import GROUPS, experiment

WIDTH, INDENT = 110, " " * 6


def add_parser(subparsers) -> None:
    """Add the `tabs` command to an argparse subparsers object."""
    parser = subparsers.add_parser("tabs", help="list what `run` runs: tabs, workbenches, the home page's figure",
                                   description="List what `run` runs, with its presets and the names that --set "
                                               "takes. --json has the values they take, too.")
    add_output(parser)
    parser.set_defaults(run=run, render=render)


def run(args) -> list:
    """Every experiment as data, in the order of the site, with the heading that it stands under as "group"."""
    return [{"group": title.render(args.lang)} | experiment(slug).to_json(args.lang)
            for title, slugs in GROUPS for slug in slugs]


def render(data: list) -> list:
    """The list as lines for a terminal."""
    lines, group = [], None
    for one in data:
        if one["group"] != group:
            group = one["group"]
            lines += ["", group] if lines else [group]
        lines.append(f"{one['tab'] or '':>4}  {one['slug']:<22} {one['title']}")
        for option, names in (("--preset", one["presets"]), ("--set", one["params"])):
            words = f"{option} {', '.join(item['name'] for item in names)}"
            lines += wrap(words, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT + "    ",
                          break_on_hyphens=False)
    return lines
