"""Modules of k3core from text that a reader edited, in an interpreter that serves nothing but this edit."""

import io
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.util import spec_from_loader
from linecache import cache

from k3core.lab import catalogue
from k3core.lab.text import Text

PRINTED_CHARACTERS = 4000  # of what edited code prints: the last ones are kept

_edited = {}  # module name -> its text


class _EditedModules(MetaPathFinder, Loader):
    """Finds the edited modules before their originals, and runs their text."""

    def find_spec(self, name, path=None, target=None):
        return spec_from_loader(name, self, origin=_file_name(name)) if name in _edited else None

    def exec_module(self, module):
        name = module.__name__
        exec(compile(_edited[name], _file_name(name), "exec", dont_inherit=True), module.__dict__)


class _Printed(io.TextIOBase):
    text = ""

    def write(self, words):
        self.text = (self.text + words)[-PRINTED_CHARACTERS:]
        return len(words)


def install(sources: dict) -> None:
    """From now on `import` takes these modules of k3core from `sources`: name -> text.

    Words that the catalogue lacks stay English from then on. Raises ValueError for a module that is not k3core's or
    that is imported already.
    """
    for name, text in sources.items():
        if not name.startswith("k3core."):
            raise ValueError(f"{name} is not a module of k3core")
        if name in sys.modules:
            raise ValueError(f"{name} is imported already; an edit needs a fresh interpreter")
        cache[_file_name(name)] = len(text), None, text.splitlines(True), _file_name(name)
    if not any(isinstance(finder, _EditedModules) for finder in sys.meta_path):
        sys.meta_path.insert(0, _EditedModules())
    _edited.update(sources)
    catalogue.complete = False


def edited() -> list:
    """Names of the edited modules."""
    return sorted(_edited)


def listen() -> None:
    """From now on keep what is printed, for `printed`."""
    sys.stdout = _Printed()


def printed() -> str:
    """What was printed since the last call."""
    words, sys.stdout.text = sys.stdout.text, ""
    return words


def words(error: Exception, lang: str) -> str:
    """What went wrong in a run, for the reader."""
    if isinstance(error, MemoryError):
        return Text("Python's memory in this page is full; smaller settings need less").render(lang)
    return f"{type(error).__name__}: {error}"


def fault(error: Exception, lang: str) -> dict:
    """What went wrong with edited code, for the reader: module and line (None where no edited line took part)."""
    message = words(error, lang)
    module, line = _last_edited_line(error)
    if isinstance(error, SyntaxError) and _module(error.filename):
        message, module, line = f"{type(error).__name__}: {error.msg}", _module(error.filename), error.lineno
    elif isinstance(error, ModuleNotFoundError) and error.name and not error.name.startswith("k3core"):
        message = Text("this site does not ship {name}", name=error.name.split(".")[0]).render(lang)
    return {"module": module, "line": line, "message": message}


def _last_edited_line(error: Exception) -> tuple:
    module, line, trace = None, None, error.__traceback__
    while trace is not None:
        name = _module(trace.tb_frame.f_code.co_filename)
        if name:
            module, line = name, trace.tb_lineno
        trace = trace.tb_next
    return module, line


def _file_name(name: str) -> str:
    return f"<edited {name}>"


def _module(file_name: str | None) -> str | None:
    return next((name for name in _edited if _file_name(name) == file_name), None)
