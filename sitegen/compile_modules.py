"""Repack archives of Python modules for the browser: only the listed ones, byte-compiled where asked.

Needs the standard library only, because it also runs outside the build's own environment: under a Python
3.14, or inside Pyodide under Node. As a program it takes a job file: JSON with `magic` (the browser's .pyc
magic number, hex) and `jobs`, a list of {source, target, keep: [module, ...] or null for all}.
"""

import importlib.util
import io
import json
import marshal
import os
import sys
import zipfile
from types import CodeType

# Modules that a page imports and has no use for, and what is left of them: those of NumPy only write docstrings, those
# of asyncio open sockets and start processes. Pyodide has an event loop of its own.
CUT_DOWN = {
    "numpy._core._add_newdocs": "",
    "numpy._core._add_newdocs_scalars": "",
    "asyncio.base_events": "__all__ = ()",
    "asyncio.streams": "__all__ = ()",
    "asyncio.subprocess": "__all__ = ()",
    "asyncio.unix_events": (
        "from asyncio.events import _BaseDefaultEventLoopPolicy as _DefaultEventLoopPolicy\n__all__ = ()"
    ),
}
HASH_BASED_UNCHECKED = b"\x01\x00\x00\x00"  # never compared with a source, which is not there


def module_name(path):
    """numpy/_core/__init__.py -> numpy._core; None for a file that is no module."""
    folder, _, file = path.rpartition("/")
    stem, _, kind = file.partition(".")
    if kind != "py" and not kind.endswith("so"):
        return None
    parts = folder.split("/") if folder else []
    return ".".join(parts if stem == "__init__" else [*parts, stem])


def repack(data, keep=None, compiled=True):
    """Archive bytes -> archive bytes that depend on nothing but the input and the Python that compiles.

    keep: names of the modules to keep, or None for every file. Metadata of a wheel is kept (it holds the
    licences) except RECORD, whose hashes would be wrong. Members are stored, not deflated: the archive is
    sent gzipped as a whole, which is smaller, and importing from it is faster. ValueError names modules
    that `keep` lists and the archive has not.
    """
    source = zipfile.ZipFile(io.BytesIO(data))
    target = io.BytesIO()
    left = set(keep or ())
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(source.namelist()):
            module = module_name(path)
            if path.endswith(("/", "/RECORD")):
                continue
            if keep is not None and ".dist-info/" not in path and module not in keep:
                continue
            left.discard(module)
            content = CUT_DOWN[module].encode() if module in CUT_DOWN else source.read(path)
            if compiled and path.endswith(".py"):
                # Docstrings are a tenth of the bytes that travel, line tables a third (they hardly shrink in gzip), and
                # nobody reads them in a .pyc: the page shows what an error says, and edited code keeps its lines.
                code = without_lines(compile(content, path, "exec", dont_inherit=True, optimize=2))
                checksum = importlib.util.source_hash(content)
                content = importlib.util.MAGIC_NUMBER + HASH_BASED_UNCHECKED + checksum + marshal.dumps(code)
                path += "c"
            member = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            member.external_attr = 0o644 << 16
            archive.writestr(member, content)
    if left:
        raise ValueError("modules that the archive does not have: " + ", ".join(sorted(left)))
    return target.getvalue()


def without_lines(code):
    """The same code object, and those inside it, without the table from instructions to source lines."""
    inside = tuple(without_lines(const) if isinstance(const, CodeType) else const for const in code.co_consts)
    return code.replace(co_linetable=b"", co_consts=inside)


def main(path):
    with open(path, encoding="utf-8") as file:
        task = json.load(file)
    if importlib.util.MAGIC_NUMBER.hex() != task["magic"]:
        sys.exit(
            f"this Python {sys.version.split()[0]} writes byte code {importlib.util.MAGIC_NUMBER.hex()}, "
            f"the browser reads {task['magic']}"
        )
    folder = os.path.dirname(path)
    for job in task["jobs"]:
        with open(os.path.join(folder, job["source"]), "rb") as file:
            data = file.read()
        with open(os.path.join(folder, job["target"]), "wb") as file:
            file.write(repack(data, job["keep"]))


if __name__ == "__main__":
    main(sys.argv[1])
