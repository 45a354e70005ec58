"""Which tabs there are. A module is imported only when its tab is asked for, so that the browser loads one."""

from importlib import import_module

from k3core.lab.contract import Experiment
from k3core.lab.params import shown
from k3core.lab.text import Text

TABS = {
    "speculative-replay": "speculative_replay",
    "byte-cost": "byte_cost",
    "verify-and-replay": "verify_and_replay",
    "replayssm-ring": "replayssm_ring",
    "page-table": "page_table",
    "allocation-jitter": "allocation_jitter",
    "unified-pool": "unified_pool",
    "prefix-hit": "prefix_hit",
    "prefix-miss": "prefix_miss",
    "checkpoint-atomicity": "checkpoint_atomicity",
    "consistent-hashing": "consistent_hashing",
    "minimal-disruption": "minimal_disruption",
    "budget-isolation": "budget_isolation",
    "fleet-simulation": "fleet_simulation",
}

# Pages of their own beside the tabs: the same contract, made for the reader's own model or trace.
WORKBENCHES = {
    "sizing": "sizing",
    "traces": "traces",
}

HOME = {"one-request": "one_request"}  # the figure of the home page

GROUPS = ((Text("Tabs"), TABS), (Text("Workbenches"), WORKBENCHES), (Text("Home page"), HOME))


def slugs() -> list:
    """The slugs of all tabs, in the order of the rail."""
    return list(TABS)


def experiment(slug: str) -> Experiment:
    """The experiment of a tab. Raises ValueError for an unknown slug."""
    modules = TABS | WORKBENCHES | HOME
    if slug not in modules:
        raise ValueError(f"there is no tab {shown(slug)}; there are {', '.join(modules)}")
    return import_module(f"k3core.lab.{modules[slug]}").EXPERIMENT


def experiments() -> list:
    """The experiments of all tabs, in the order of the rail."""
    return [experiment(slug) for slug in TABS]


def workbenches() -> list:
    """The experiments of all workbenches."""
    return [experiment(slug) for slug in WORKBENCHES]


def everything() -> list:
    """The slugs of all experiments: tabs, workbenches, and the home page's."""
    return [*TABS, *WORKBENCHES, *HOME]
