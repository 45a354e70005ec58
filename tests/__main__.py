"""python tests [pytest arguments]: install what is missing, find a browser, build the site, run every test."""
# Syntax that an old Python can parse: see build_site.py.
from __future__ import print_function

import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SITE = os.path.join(ROOT, "build", "site")
sys.path.insert(0, ROOT)


def main():
    from sitegen import bootstrap
    bootstrap.ensure(["build", "test"])

    from browser import find_browser
    environment = dict(os.environ, K3_BROWSER=find_browser(), K3_SITE=SITE)
    print("Browser: " + environment["K3_BROWSER"])
    sys.stdout.flush()
    build = [sys.executable, os.path.join(ROOT, "build_site.py"), "--out", SITE]
    status = subprocess.call(build, cwd=ROOT, env=environment)
    if status:
        return status
    return subprocess.call([sys.executable, "-m", "pytest"] + sys.argv[1:], cwd=ROOT, env=environment)


if __name__ == "__main__":
    sys.exit(main())
