"""The text of the modules that a page offers to edit: wheels in the browser hold byte code only."""

import inspect
import pkgutil
from importlib import import_module
from pathlib import Path

from k3core import lab
from k3core.lab.contract import Experiment
from k3core.lab.registry import HOME, TABS, WORKBENCHES


def places(experiment: Experiment) -> list:
    """What the editor of this experiment offers, as {module, name, line}: the functions of `experiment.code`, then
    (with an empty name) its own modules."""
    functions = [{"module": code.__module__, "name": code.__qualname__, "line": inspect.getsourcelines(code)[1]}
                 for code in experiment.code]
    return functions + [{"module": module, "name": "", "line": 1} for module in _own_modules(experiment.slug)]


def texts(experiments: list) -> dict:
    """Module -> text, of all modules that these experiments offer."""
    modules = {place["module"] for experiment in experiments for place in places(experiment)}
    return {module: Path(import_module(module).__file__).read_text(encoding="utf-8") for module in sorted(modules)}


def _own_modules(slug: str) -> list:
    name = (TABS | WORKBENCHES | HOME)[slug]
    return [f"k3core.lab.{module.name}" for module in pkgutil.iter_modules(lab.__path__)
            if module.name == name or module.name.startswith(f"{name}_")]
