"""python tests [pytest arguments]: install what is missing, find a browser, build site/, run every test."""

# Syntax that an old Python can parse: see build_site.py.
from __future__ import print_function

import glob
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)


def main():
    from sitegen import bootstrap

    bootstrap.ensure(["build", "test"])

    from browser import find_browser

    environment = dict(os.environ, K3_BROWSER=find_browser(), K3_SITE=os.path.join(ROOT, "site"))
    environment.setdefault("K3_TRACES", find_traces())
    print("Browser: " + environment["K3_BROWSER"])
    sys.stdout.flush()
    status = subprocess.call([sys.executable, "build_site.py"], cwd=ROOT, env=environment)
    if status:
        return status
    arguments = sys.argv[1:] or side_by_side()
    return subprocess.call([sys.executable, "-m", "pytest"] + arguments, cwd=ROOT, env=environment)


def side_by_side():
    """The whole suite runs in several processes, each with a browser of its own."""
    return ["-n", str(min(4, os.cpu_count() or 1)), "--dist", "worksteal"]


def find_traces():
    """A folder of published traces: in a folder beside this one, else traces/ here."""
    beside = sorted(glob.glob(os.path.join(os.path.dirname(ROOT), "*", "traces")))
    return (beside + [os.path.join(ROOT, "traces")])[0]


if __name__ == "__main__":
    sys.exit(main())
