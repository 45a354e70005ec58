"""Arrival: from navigation to the first live result, beside plain pages that load Pyodide and import NumPy.

Needs a built site (K3_SITE, else site/), Chromium (K3_BROWSER, else on the path) and what the build cached. All pages
come from one local server that compresses text, as static hosts do, and lets the browser keep files for ten minutes.
`plain` loads Pyodide and NumPy as published; `bare` the same with the site's own trimmed, byte-compiled standard
library and NumPy, so it is an interpreter with NumPy imported and nothing else. Cold is a fresh browser profile; warm
is a second visit in it, after the first one was left open for STAY_MS: the site then has stored what it stores, and
Chromium the code that it compiled. K3_RUNS: how many of each (5).
"""

import functools
import gzip
import os
import shutil
import statistics
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from mimetypes import guess_type
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

RUNS = int(os.environ.get("K3_RUNS", "5"))
SITE = Path(os.environ.get("K3_SITE") or Path(__file__).parents[1] / "site").resolve()
PAGES = {"plain": "plain/index.html", "bare": "bare/index.html", "site": "site/tabs/byte-cost.html#guess=1"}
SWITCHES = 200
STAY_MS = 22_000
MIME = {".mjs": "text/javascript", ".js": "text/javascript", ".wasm": "application/wasm", ".gz": "application/gzip"}
PLAIN = """<!doctype html><meta charset="utf-8"><title>plain</title><script type="module">
import { loadPyodide } from "./pyodide.mjs";
const pyodide = await loadPyodide();
await pyodide.loadPackage("numpy");
pyodide.runPython("import numpy; numpy.arange(3).sum()");
document.documentElement.dataset.python = "idle";
</script>
"""
# The moment at which an attribute says that Python has answered, in the page's own clock from the navigation on.
WATCH = """new MutationObserver((_, observer) => {
  if (document.documentElement && document.documentElement.dataset.python === "idle") {
    window.__live = performance.now();
    observer.disconnect();
  }
}).observe(document, { attributes: true, subtree: true, attributeFilter: ["data-python"] });"""


class Handler(BaseHTTPRequestHandler):
    """Files of one folder, text compressed; `sent` is the list of (path, bytes of the body)."""

    protocol_version = "HTTP/1.1"

    def __init__(self, *args, folder: Path, sent: list):
        self.folder, self.sent = folder, sent
        super().__init__(*args)

    def do_GET(self):
        path = self.folder / urlsplit(self.path).path.lstrip("/")
        kind = MIME.get(path.suffix) or guess_type(path.name)[0] or "application/octet-stream"
        found = path.is_file()
        body = path.read_bytes() if found else b""
        self.send_response(200 if found else 404)
        if kind.startswith("text/") or kind.endswith(("json", "xml")):
            body = gzip.compress(body)
            self.send_header("Content-Encoding", "gzip")
        for name, value in (("Content-Type", kind), ("Content-Length", len(body)), ("Cache-Control", "max-age=600")):
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)
        self.sent.append((self.path, len(body)))

    def log_message(self, *_):
        pass


def serve(folder: Path) -> tuple[str, list]:
    """The address of a server of this folder that ends with the process, and the list of what it sent."""
    sent = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, folder=folder, sent=sent))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}", sent


def lay_out(folder: Path) -> None:
    """The site, the plain and the bare page side by side."""
    from sitegen import pack, runtime

    (folder / "site").symlink_to(SITE)
    wheel = runtime.NUMPY_WHEEL
    for name in ("plain", "bare"):
        own = folder / name
        own.mkdir()
        for file in runtime.FILES:
            shutil.copy(runtime.cache_dir() / f"pyodide-{runtime.PYODIDE}" / file, own / file)
        (own / "index.html").write_text(PLAIN)
    for file in ("python_stdlib.zip", wheel):
        (packed,) = (SITE / "assets" / "runtime").glob(f"{file}.*.gz")
        (folder / "bare" / file).write_bytes(gzip.decompress(packed.read_bytes()))
    for name in ("plain", "bare"):
        (folder / name / "pyodide-lock.json").write_text(pack.lock_file({wheel: (folder / name / wheel).read_bytes()}))


def milliseconds(context, address: str, stay_ms: int) -> float:
    """From navigation to a live result, in a new page of this context, which then stays open for a while."""
    page = context.new_page()
    page.goto(address)
    page.wait_for_function("() => window.__live", timeout=120_000)
    took = page.evaluate("() => window.__live")
    page.wait_for_timeout(stay_ms)
    page.close()
    return took


def times(browser, root: str) -> dict:
    """Milliseconds of every run: name -> {"cold": [...], "warm": [...]}; the pages take turns."""
    took = {name: {"cold": [], "warm": []} for name in PAGES}
    for _ in range(RUNS):
        for name, path in PAGES.items():
            context = browser.new_context()
            context.add_init_script(WATCH)
            for way, stay_ms in (("cold", STAY_MS), ("warm", 0)):
                took[name][way].append(milliseconds(context, f"{root}/{path}", stay_ms))
            context.close()
    return took


def megabytes(browser, root: str, sent: list) -> dict:
    """What one first visit to the site is sent, in MB: until Python answers; of that, until the figure can be read."""
    context = browser.new_context(service_workers="block")
    page = context.new_page()
    sent.clear()
    page.goto(f"{root}/{PAGES['site']}")
    page.wait_for_selector('html[data-python="idle"]', timeout=120_000)
    until_live = list(sent)
    context.close()
    after_paint = ("/runtime/", "/vega.", "/sw.js")
    return {"live": sum(size for _, size in until_live) / 1e6,
            "readable": sum(size for path, size in until_live if not any(late in path for late in after_paint)) / 1e6}


def print_times(took: dict) -> None:
    """Medians and ratios, and every run of the site."""
    for way in ("cold", "warm"):
        plain, bare, own = (statistics.median(took[name][way]) for name in PAGES)
        runs = ", ".join(f"{run:.0f}" for run in took["site"][way])
        print(f"  {way}: plain {plain:,.0f} ms, bare {bare:,.0f} ms, site {own:,.0f} ms (runs: {runs}); "
              f"site / plain {own / plain:.2f}, site / bare {own / bare:.2f}")


def main():
    """Print the measurements."""
    from playwright.sync_api import sync_playwright

    from e2e.visit import Visit
    from e2e.wander import growth

    with TemporaryDirectory() as temporary, sync_playwright() as playwright:
        lay_out(Path(temporary))
        root, sent = serve(Path(temporary))
        executable = os.environ.get("K3_BROWSER") or shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=executable or None, args=["--no-sandbox"])
        print_times(times(browser, root))
        size = megabytes(browser, root, sent)
        print(f"  on the wire: {size['live']:.2f} MB until the first live result, "
              f"{1000 * size['readable']:.0f} KB until the figure can be read")
        visit = Visit(browser, {})
        visit.page.goto(f"{root}/{PAGES['site']}")
        visit.wait()
        grown = growth(visit, SWITCHES)
        print(f"  after {SWITCHES} switches of tab with two runs each: scripts {grown['heap'] / 1e6:+.1f} MB, "
              f"Python {grown['python'] / 1e6:+.1f} MB, nodes {grown['nodes']:+}, listeners {grown['listeners']:+}")
        visit.close()
        browser.close()
