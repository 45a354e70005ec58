"""A browser page that reports on itself, and what a result looks like on it."""

import json
import xml.etree.ElementTree as ElementTree
from http.server import SimpleHTTPRequestHandler
from urllib.parse import parse_qsl, urlsplit

from playwright.sync_api import Error

from k3core.lab.registry import experiment

SLUG = "byte-cost"  # the tab on which the tests of the page itself act
EXPERIMENT = experiment(SLUG)
TAB = f"tabs/{SLUG}.html"
SCENE = '[data-scene="window"]'
OWN_HOSTS = ("127.0.0.1", "localhost")  # whatever else a page asks is a complaint, in every test
PHONE = {"viewport": {"width": 360, "height": 740}}

SHOWN = """() => {
  const text = (node) => node.textContent.trim();
  const entries = (selector, name, value) =>
    Object.fromEntries([...document.querySelectorAll(selector)].map((node) => [node.dataset[name], value(node)]));
  return {
    metrics: entries("[data-metric]", "metric", (node) => text(node.querySelector(".value"))),
    checks: entries("[data-check]", "check", (node) =>
      [node.classList.contains("pass"), text(node.querySelector(".detail"))]),
    tables: entries("[data-table]", "table", (node) =>
      [...node.querySelectorAll("tbody tr")].map((row) => [...row.children].map(text))),
    digest: text(document.querySelector("[data-digest]")),
  };
}"""
SETTLED = """async () => {
  const lab = K3.lab, until = Date.now() + 60000;
  const busy = () => !lab.engine.ready || lab.engine.running || lab.engine.waiting || lab.engine.asked.size
    || document.getElementById("lab").getAttribute("aria-busy") === "true";
  while (busy() && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 10));
  await lab.charts.drawing;
  lab.address.write();
  return !busy();
}"""


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files and says nothing. HTTP/1.1, because the runtime is several files."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass


# A page that stays open has an image of Python's memory made, by a second Python: most tests are better off without.
NO_IMAGE = """(() => {
  const later = window.setTimeout;
  window.setTimeout = (what, ms, ...rest) => (ms === 15000 ? 0 : later(what, ms, ...rest));
})();"""


class Visit:
    """A page in a fresh browser context, with what it complained about and whom it asked."""

    def __init__(self, browser, options: dict, image: bool = False):
        self.context = browser.new_context(**{"viewport": {"width": 1440, "height": 1000}, **options})
        if not image:
            self.context.add_init_script(NO_IMAGE)
        self.page = self.context.new_page()
        self.complaints = []
        self.requests = []
        self.held = []
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self._complain(f"page error: {error}"))
        self.page.on("dialog", self._dialog)
        self.page.on("request", self._request)

    def _complain(self, words: str):
        if isinstance(self.complaints, list):
            self.complaints.append(words)

    def _console(self, message):
        if message.type in ("error", "warning"):
            self._complain(f"console {message.type}: {message.text} {message.location['url']}")

    def _request(self, request):
        self.requests.append(request.url)
        if urlsplit(request.url).hostname not in (None, *OWN_HOSTS):
            self._complain(f"request to another place: {request.url}")

    def _dialog(self, dialog):
        self._complain(f"dialog: {dialog.message}")
        dialog.dismiss()

    # --- waiting ------------------------------------------------------------------------------------------------

    def wait(self, *states: str, timeout: float = 90_000):
        """Wait until Python is in one of `states` ("idle": up, and the last request answered)."""
        selector = ", ".join(f'html[data-python="{state}"]' for state in states or ("idle",))
        self.page.wait_for_selector(selector, timeout=timeout)
        return self.page

    def settle(self):
        """Wait until everything that was asked is answered, drawn and written to the address."""
        assert self.page.evaluate(SETTLED), "the page did not settle"

    def resize(self, width: int, height: int):
        """Another size of window, and wait until everything is drawn for it, which the page does after a while."""
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.wait_for_timeout(300)
        self.settle()

    # --- acting -------------------------------------------------------------------------------------------------

    def without_python(self):
        """From now on the runtime's files never arrive; what the page shows is what the build wrote."""
        self.page.route("**/assets/runtime/**", self._hold)

    def with_python(self):
        """Now they do."""
        held, self.held = self.held, None
        for route in held:
            route.continue_()

    def _hold(self, route):
        if self.held is None:
            route.continue_()
        else:
            self.held.append(route)

    def close(self):
        """End the visit. What it complained about until now counts."""
        self.complaints = tuple(self.complaints)
        for route in self.held or ():
            try:
                route.abort()
            except Error:  # the page has gone elsewhere since
                pass
        self.context.close()

    def go(self, fragment: str):
        """Follow a link to another state of the same page."""
        self.page.evaluate("""(fragment) => new Promise((resolve) => {
          const before = location.href;
          window.addEventListener("hashchange", resolve, { once: true });
          location.hash = fragment;
          if (location.href === before) resolve();
        })""", fragment)

    def walk_to(self, place: str):
        """Follow the rail to a page of the site, in the same document, so that Python stays; past its question."""
        self.page.evaluate("""(place) =>
          [...document.querySelectorAll(".rail a")].find((link) => link.href.endsWith(`/${place}`)).click()""", place)
        self.page.wait_for_function("(place) => K3.lab && K3.navigation.shown.endsWith(`/${place}`)", arg=place)
        self.page.evaluate("() => K3.lab.prediction.reveal()")
        self.settle()

    def skip_prediction(self):
        """Past the opening question, as a click on Skip does."""
        if self.page.locator("[data-skip]").is_visible():
            self.page.click("[data-skip]")

    def compute(self, slug: str, params: dict, seed=0, lang: str = "en") -> str:
        """The JSON text that Python in this page writes for one run."""
        request = {"slug": slug, "params": params, "seed": seed, "lang": lang, "frames": {}, "narrow": False}
        return self.page.evaluate("(request) => K3.lab.engine.run(request)", request)

    # --- looking ------------------------------------------------------------------------------------------------

    @property
    def state(self) -> dict:
        """What the address holds."""
        return dict(parse_qsl(urlsplit(self.page.url).fragment, keep_blank_values=True))

    def shown(self) -> dict:
        """Numbers, checks, tables and digest as they stand on the page."""
        return self.page.evaluate(SHOWN)

    def text(self, selector: str) -> str:
        return self.page.locator(selector).first.text_content().strip()

    def scrolls_sideways(self) -> bool:
        return self.page.evaluate("() => document.documentElement.scrollWidth > document.documentElement.clientWidth")


def expected(slug: str, params: dict | None = None, seed: int = 0, lang: str = "en") -> dict:
    """What `Visit.shown` should be: the same run in this process."""
    data = json.loads(json.dumps(experiment(slug).run(params, seed).to_json(lang)))
    tables = {}
    for name, table in data["tables"].items():
        if table["title"]:
            shown = [index for index, column in enumerate(table["columns"]) if column["key"] != "id"]
            tables[name] = [[row[index] for index in shown] for row in table["text"]]
    return {"metrics": {metric["key"]: metric["text"] for metric in data["metrics"]},
            "checks": {check["key"]: [check["passed"], check["text"]] for check in data["checks"]},
            "tables": tables, "digest": data["digest"]}


def _picture(svg: str) -> list:
    """A drawing as (element, attributes, text) in document order, whatever wrote it."""
    return [(node.tag, dict(node.attrib), (node.text or "").strip()) for node in ElementTree.fromstring(svg).iter()]


def drawn(visit) -> list:
    """The drawing on the page."""
    return _picture(visit.page.evaluate(
        f"() => new XMLSerializer().serializeToString(document.querySelector('{SCENE} .picture svg'))"))


def native_picture(frame: int, params: dict | None = None, narrow: bool = False, lang: str = "en") -> list:
    """What `drawn` should be."""
    return _picture(EXPERIMENT.picture(EXPERIMENT.run(params), "window", frame, lang, narrow).svg)


def shows(page, key: str, words: str):
    """Wait until this number of the result reads so."""
    page.wait_for_function("""([key, words]) =>
      document.querySelector(`[data-metric="${key}"] .value`).textContent === words""",
                           arg=[key, words], timeout=60_000)


def caption(frame: int, params: dict | None = None, lang: str = "en") -> str:
    """The words of a frame."""
    return EXPERIMENT.run(params).scenes[0].captions[frame].render(lang)
