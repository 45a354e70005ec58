"""Fixtures of the browser tests: the built site over http, below a sub-path, and from disk; pages report complaints."""

import functools
import os
import shutil
import threading
from contextlib import ExitStack, contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright
from visit import SLUG, QuietHandler, Visit

LAUNCH = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync",
          "--no-first-run",
          # Most tests start Python and compute little: what they compute need not be compiled twice.
          "--js-flags=--wasm-tiering-budget=2000000000"]
SUB_PATH = "some/sub/path"


@pytest.fixture(scope="session")
def site() -> Path:
    """The built site. `python tests` builds one and names it in K3_SITE; else site/ as it is."""
    folder = Path(os.environ.get("K3_SITE") or Path(__file__).parents[1] / "site").resolve()
    if not (folder / "index.html").exists():
        pytest.fail(f"no built site at {folder}: run `python tests`, or `python build_site.py` first")
    return folder


@contextmanager
def served(folder: Path, handler=QuietHandler):
    """A plain static server of a folder; its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def serve_folder():
    """A function: folder -> address of a plain static server of it, until the end of the test."""
    with ExitStack() as servers:
        yield lambda folder, handler=QuietHandler: servers.enter_context(served(folder, handler))


@pytest.fixture(scope="session")
def http_root(site, tmp_path_factory) -> str:
    """The address of the site served below a sub-path of a plain static server."""
    top = tmp_path_factory.mktemp("www")
    (top / SUB_PATH).parent.mkdir(parents=True)
    (top / SUB_PATH).symlink_to(site)
    with served(top) as address:
        yield f"{address}/{SUB_PATH}"


@pytest.fixture(scope="session")
def roots(site, http_root) -> dict:
    """Both ways to open the site: {"http": address, "file": address}."""
    return {"http": http_root, "file": site.as_uri()}


@pytest.fixture(scope="session")
def browser():
    """One browser for the whole run: K3_BROWSER, or whatever Chromium is on the path."""
    executable = os.environ.get("K3_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable or None, args=LAUNCH)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser):
    """A function that opens an address: `visit(url, python=True, expect_complaints=False, **context options) -> Visit`.

    Without `python` the runtime never arrives. At the end of the test every visit must be free of console errors,
    unless it expected some.
    """
    visits = []

    def open_address(url: str, python: bool = True, expect_complaints: bool = False, **options) -> Visit:
        opened = Visit(browser, options)
        visits.append((opened, expect_complaints))
        if not python:
            opened.without_python()
        opened.page.goto(url)
        return opened

    yield open_address
    for opened, expect_complaints in visits:
        opened.close()
        assert expect_complaints or not opened.complaints, opened.complaints


@pytest.fixture(params=["http", "file"])
def workbench(request, visit, roots):
    """The workbench that the test's module names as PAGE, opened both ways, at its defaults."""
    opened = visit(f"{roots[request.param]}/{request.module.PAGE}")
    opened.wait()
    opened.skip_prediction()
    return opened


@pytest.fixture(scope="session")
def pages(browser, roots):
    """A function: "http" or "file" -> the one page of the run that is opened this way, Python up, at its defaults."""
    opened = {}

    def at_defaults(way: str) -> Visit:
        if way not in opened:
            clipboard = {"permissions": ["clipboard-read", "clipboard-write"]} if way == "http" else {}
            opened[way] = Visit(browser, clipboard)
            opened[way].page.goto(f"{roots[way]}/tabs/{SLUG}.html")
            opened[way].skip_prediction()
        page = opened[way].page
        page.set_viewport_size({"width": 1440, "height": 1000})
        page.evaluate("() => K3.lab.reset()")
        opened[way].settle()
        return opened[way]

    yield at_defaults
    for visit in opened.values():
        visit.context.close()


@pytest.fixture
def live(pages):
    """The http page at its defaults; whatever a test does to it, it must not complain."""
    visit = pages("http")
    visit.complaints.clear()
    yield visit
    assert not visit.complaints, visit.complaints
