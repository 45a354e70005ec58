"""What runs where a point is computed: a process of this machine, or a worker of a cluster."""

import time

from .. import __version__
from .files import File


def compute_batch(version: str, command: str, tasks: list, sources: dict) -> tuple[list, float]:
    """Records of these points, and the seconds they took.

    tasks: (key, parameters, seed, {parameter: (SHA-256, name of the file)}); sources: SHA-256 -> path or content. What is
    wrong with a point becomes its record; nothing about a point is raised. Raises ValueError for another version.
    """
    if version != __version__:
        raise ValueError(f"a worker has k3core {__version__}, this is {version}; install the same everywhere")
    start = time.perf_counter()
    records = [_record(command, *task, sources) for task in tasks]
    return records, time.perf_counter() - start


def _record(command: str, key: str, params: dict, seed: int | None, files: dict, sources: dict) -> dict:
    from .commands import COMMANDS  # here, so that a worker starts before it imports NumPy

    try:
        files = {name: File(sha256, title, sources[sha256]) for name, (sha256, title) in files.items()}
        metrics, digest = COMMANDS[command].compute(params, seed, files)
        return {"key": key, "metrics": metrics, "digest": digest}
    except ValueError as error:
        return {"key": key, "error": " ".join(str(error).split())}
    except Exception as error:  # a defect at one point must not cost the others
        return {"key": key, "error": " ".join(f"{type(error).__name__}: {error}".split())}
