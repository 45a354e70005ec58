"""Fixtures of the browser tests: the built site over http, below a sub-path, and from disk; pages report complaints."""

import functools
import http.server
import os
import shutil
import threading
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

LAUNCH = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync",
          "--no-first-run"]
SUB_PATH = "some/sub/path"


@pytest.fixture(scope="session")
def site() -> Path:
    """The built site. `python tests` builds one and names it in K3_SITE; else site/ as it is."""
    folder = Path(os.environ.get("K3_SITE") or Path(__file__).parents[1] / "site").resolve()
    if not (folder / "index.html").exists():
        pytest.fail(f"no built site at {folder}: run `python tests`, or `python build_site.py` first")
    return folder


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing. HTTP/1.1, because the runtime is several files."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def http_root(site, tmp_path_factory) -> str:
    """The address of the site served below a sub-path of a plain static server."""
    top = tmp_path_factory.mktemp("www")
    (top / SUB_PATH).parent.mkdir(parents=True)
    (top / SUB_PATH).symlink_to(site)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(QuietHandler, directory=top))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/{SUB_PATH}"
    server.shutdown()
    server.server_close()


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


class Visit:
    """A page in a fresh browser context, with what it complained about and whom it asked."""

    def __init__(self, browser, options: dict):
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.complaints = []
        self.requests = []
        self.page.on("console", lambda message: self._console(message))
        self.page.on("pageerror", lambda error: self.complaints.append(f"page error: {error}"))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def _console(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(f"console {message.type}: {message.text}")

    def wait(self, *states: str, timeout: float = 90_000):
        """Wait until Python is in one of `states` ("idle": up, and the last request answered)."""
        selector = ", ".join(f'html[data-python="{state}"]' for state in states or ("idle",))
        self.page.wait_for_selector(selector, timeout=timeout)
        return self.page

    def skip_prediction(self):
        """Past the opening question, as a click on Skip does."""
        if self.page.locator("[data-skip]").is_visible():
            self.page.click("[data-skip]")

    def compute(self, slug: str, params: dict, seed=0, lang: str = "en") -> str:
        """The JSON text that Python in this page writes for one run."""
        request = {"slug": slug, "params": params, "seed": seed, "lang": lang, "frames": {}, "narrow": False}
        return self.page.evaluate("(request) => K3.lab.engine.run(request)", request)


@pytest.fixture
def visit(browser):
    """A function that opens an address: `visit(url, expect_complaints=False, **context options) -> Visit`.

    At the end of the test every visit must be free of console errors, unless it expected some.
    """
    visits = []

    def open_address(url: str, expect_complaints: bool = False, **options) -> Visit:
        opened = Visit(browser, {"viewport": {"width": 1440, "height": 1000}, **options})
        visits.append((opened, expect_complaints))
        opened.page.goto(url)
        return opened

    yield open_address
    for opened, expect_complaints in visits:
        opened.context.close()
        assert expect_complaints or not opened.complaints, opened.complaints
