"""What runs where a point is computed: a process of this machine, or a worker of a cluster."""

import time

from .. import __version__
from .files import File


def compute_batch(version: str, command: str, tasks: list, sources: dict) -> tuple[list, float]:
    """Records of these points, and the seconds they took.

    tasks: (key, parameters, seed, {parameter: (SHA-256, name of the file)}); sources: SHA-256 -> path or content.
    What is wrong with a point becomes its record; nothing about a point is raised. Raises ValueError for another
    version.
    """
    if version != __version__:
        raise ValueError(f"a worker has k3core {__version__}, this is {version}; install the same everywhere")
    start = time.perf_counter()
    records = [_record(command, *task, sources) for task in tasks]
    return records, time.perf_counter() - start


def _record(command: str, key: str, params: dict, seed: int | None, files: dict, sources: dict) -> dict:
    from ..lab.contract import json_value  # here, so that a process can start before it imports NumPy
    from .commands import COMMANDS

    try:
        files = {name: File(sha256, title, sources[sha256]) for name, (sha256, title) in files.items()}
        metrics, digest = COMMANDS[command].compute(params, seed, files)
        return {"key": key, "metrics": {name: json_value(value) for name, value in metrics.items()}, "digest": digest}
    except ValueError as error:
        return {"key": key, "error": _line(str(error))}
    except Exception as error:  # a defect at one point must not cost the others
        return {"key": key, "error": _line(f"{type(error).__name__}: {error}")}


def _line(message: str) -> str:
    """One line that every file can hold."""
    return " ".join(message.split()).encode("utf-8", "backslashreplace").decode("utf-8")
