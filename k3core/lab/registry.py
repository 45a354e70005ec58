"""Which tabs there are. A module is imported only when its tab is asked for, so that the browser loads one."""

from importlib import import_module

from k3core.lab.contract import Experiment

TABS = {
    "byte-cost": "byte_cost",
}


def slugs() -> list:
    """The slugs of all tabs, in the order of the rail."""
    return list(TABS)


def experiment(slug: str) -> Experiment:
    """The experiment of a tab. Raises ValueError for an unknown slug."""
    if slug not in TABS:
        raise ValueError(f"there is no tab {slug!r}; there are {', '.join(TABS)}")
    return import_module(f"k3core.lab.{TABS[slug]}").EXPERIMENT


def experiments() -> list:
    """Every experiment, in the order of the rail."""
    return [experiment(slug) for slug in TABS]
