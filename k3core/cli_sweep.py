"""`python -m k3core sweep`: one command at many points, on this machine's cores or a Dask cluster."""

import os
import sys
from contextlib import closing
from pathlib import Path

ASK_ABOVE = 100_000  # points


def add_parser(subparsers) -> None:
    """Add the `sweep` command to an argparse subparsers object; values are checked in `run`."""
    parser = subparsers.add_parser(
        "sweep", help="run, size, replay or fleet at every point of a grid, here or on a Dask cluster",
        description="Computes one command at every point that a TOML file describes, and leaves results.csv, "
                    "results.jsonl and report.html in a folder of their own: SPEC-results in the current folder, where "
                    "--out names no other. What is in that folder already is not computed again.")
    parser.add_argument("spec", metavar="SPEC.toml", help="command, seeds, [grid] or [[points]], [report]")
    parser.add_argument("--jobs", metavar="N", help="processes on this machine (its cores)")
    parser.add_argument("--scheduler", metavar="tcp://HOST:PORT", help="compute on the cluster of this Dask scheduler")
    parser.add_argument("--out", metavar="DIR", help="the folder for the results (SPEC-results, here)")
    parser.add_argument("--site", metavar="URL", help="a built site; the report links each point's page there")
    parser.add_argument("--retry-failed", action="store_true", help="compute points again that failed before")
    parser.add_argument("--yes", action="store_true", help=f"do not ask before more than {ASK_ABOVE:,} points")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run, render=render)


def run(args) -> dict:
    """Compute what is missing and write the results -> counts and paths.

    Raises ValueError, and OSError or KeyboardInterrupt, which then have a note of what is kept.
    """
    from .sweep.journal import Journal
    from .sweep.report import check_site
    from .sweep.spec import read_spec

    spec, jobs = Path(args.spec), _jobs(args)
    check_site(args.site)
    sweep = read_spec(spec)
    _ask(len(sweep), args.yes)
    folder = Path(args.out or f"{spec.stem}-results")
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; results need a folder, which --out names")
    with closing(Journal(folder)) as journal:
        try:
            return _sweep(sweep, journal, folder, jobs, args)
        except (OSError, KeyboardInterrupt) as error:
            error.add_note(f"{len(journal.places):,} points are in {folder}, and the same command goes on from there")
            raise


def _sweep(sweep, journal, folder: Path, jobs: int, args) -> dict:
    from .sweep.journal import REPORT, RESULTS, TABLE, write_tables
    from .sweep.report import write_report
    from .sweep.running import Progress, missing

    indices = missing(sweep, journal, args.retry_failed)
    progress = Progress(len(sweep), len(sweep) - len(indices), sys.stderr)
    try:
        if indices:
            _compute(sweep, indices, journal, progress, jobs, args.scheduler)
    finally:
        progress.clear()
    written = write_tables(sweep, journal, folder)
    drawn = write_report(sweep, written, folder, args.site)
    return {"points": len(sweep), "computed": progress.done, "kept": progress.kept, "failed": written.failed,
            "errors": written.errors[:3], "charts": drawn, "results": str(folder / RESULTS),
            "table": str(folder / TABLE), "report": str(folder / REPORT)}


def _compute(sweep, indices: list, journal, progress, jobs: int, scheduler: str | None) -> None:
    from .sweep.pools import Cluster, Processes
    from .sweep.running import compute

    files = list(set(sweep.files.values()))
    if scheduler is not None:
        pool = Cluster(sweep.command, files, scheduler)
    else:
        pool = Processes(sweep.command, files, min(jobs, len(indices)))
    try:
        compute(sweep, indices, pool, journal, progress)
    finally:
        pool.close()


def render(answer: dict) -> list[str]:
    """The counts and paths as lines for a terminal."""
    points = "1 point" if answer["points"] == 1 else f"{answer['points']:,} points"
    lines = [f"{points}: {answer['computed']:,} computed now, {answer['kept']:,} before, "
             f"{answer['failed']:,} failed"]
    lines += [f"  {error}" for error in answer["errors"]]
    if answer["failed"] > len(answer["errors"]):
        lines.append("  ... all of them are in the tables")
    if not answer["charts"]:
        lines.append("  the report has no charts: pip install 'k3core[report]' brings what draws them")
    files = [Path(answer[name]) for name in ("report", "table", "results")]
    return [*lines, f"results are in {files[0].parent.resolve()}: {', '.join(file.name for file in files)}"]


def _jobs(args) -> int:
    if args.jobs is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if args.scheduler is not None:
        raise ValueError("--jobs is for this machine; with --scheduler the cluster decides")
    if not (args.jobs.isascii() and args.jobs.isdigit() and 1 <= int(args.jobs[:5]) <= 1024):
        raise ValueError(f"--jobs is {args.jobs!r}; it must be a whole number from 1 to 1024")
    return int(args.jobs)


def _ask(points: int, yes: bool) -> None:
    """Raises ValueError where there are many points and no one says yes."""
    if points <= ASK_ABOVE or yes:
        return
    if not sys.stdin.isatty():
        raise ValueError(f"these are {points:,} points; --yes computes them all")
    print(f"These are {points:,} points. Compute them all? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ValueError(f"{points:,} points, not computed")
