"""Embedded in a page of another origin: the figure and its controls, and nothing else."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from visit import SCENE, SLUG, TAB, expected

from k3core.lab.registry import experiment, experiments, workbenches
from sitegen.render import page_path

HIDDEN = (".question", ".rail", ".foot", ".numbers", ".tables", ".prose", ".code", "#prediction", "#copy",
          ".languages", "#menu", ".save")


class Host(BaseHTTPRequestHandler):
    """A page of another origin, with a frame in it that it fits to the height it is told."""

    protocol_version = "HTTP/1.1"
    frame = ""

    def do_GET(self):
        body = f"""<!doctype html><title>host</title>{self.frame}<script>
        addEventListener("message", (event) => {{
          if (event.data.type === "k3:height") document.querySelector("iframe").height = event.data.height; }});
        </script>""".encode()
        self.send_response(200)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def host():
    server = ThreadingHTTPServer(("localhost", 0), Host)  # another host name, and another port
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://localhost:{server.server_port}/"
    server.shutdown()
    server.server_close()


def test_the_copied_frame_works_in_a_page_of_another_origin(live, visit, host):
    live.go("dk=64&frame.window=3")
    live.settle()
    live.page.locator(".take summary").click()
    Host.frame = live.text('.way:has(h3:text-is("In another page")) pre')
    live.page.locator(".take summary").click()
    assert 'embed=1#dk=64&amp;frame.window=3"' in Host.frame
    around = visit(host, viewport={"width": 900, "height": 900})
    frame = around.page.frame_locator("iframe")
    frame.locator('html[data-python="idle"]').wait_for(timeout=60_000)
    assert frame.locator(f"{SCENE} .counter").text_content() == "3 / 8"
    for selector in HIDDEN:
        assert frame.locator(selector).first.is_hidden(), selector
    inside = around.page.frames[1]
    around.page.wait_for_function("() => document.querySelector('iframe').height > 300")
    fits = "() => document.documentElement.scrollHeight <= document.documentElement.clientHeight + 1"
    inside.wait_for_function(fits)
    frame.locator("#p-dk").fill("32")
    size = expected(SLUG, {"dk": 32})["metrics"]["record_bytes"]
    frame.locator('[data-metric="record_bytes"] .value', has_text=size).wait_for(state="attached")
    link = frame.locator(".full")
    link.focus()
    assert link.get_attribute("href").endswith(f"{TAB}#dk=32&frame.window=3")
    assert link.get_attribute("target") == "_blank"


@pytest.mark.parametrize("fragment", ["?embed=1", "?embed=1#dk=64", "#embed=1", "#embed=1&dk=64"])
def test_either_address_embeds_and_asks_nothing(visit, http_root, fragment):
    tab = visit(f"{http_root}/{TAB}{fragment}", python=False)
    assert tab.page.locator("html.embed").count() == 1 and tab.page.locator("html.asking").count() == 0
    assert tab.page.locator(SCENE).is_visible() and tab.page.locator("#controls").is_visible()
    tab.page.locator(".full").focus()
    assert "embed" not in tab.page.locator(".full").get_attribute("href")


@pytest.mark.parametrize("fragment", ["?embed=0", "?embed=%3Cimg%20src=x%20onerror=alert(1)%3E", "#embed=<img src=x>"])
def test_other_values_embed_nothing(visit, http_root, fragment):
    tab = visit(f"{http_root}/{TAB}{fragment}", python=False)
    assert tab.page.locator("html.embed").count() == 0 and tab.page.locator("h1").is_visible()
    assert tab.page.locator("img").count() == 0


def test_every_embed_has_a_figure_and_controls_and_fits_its_width(visit, http_root):
    tab = visit(f"{http_root}/{TAB}?embed=1", python=False)
    for chosen in [*experiments(), *workbenches()]:
        for lang in ("", "zh/"):
            tab.page.goto(f"{http_root}/{lang}{page_path(chosen)}?embed=1")
            for width in (1000, 320):
                tab.page.set_viewport_size({"width": width, "height": 700})
                assert not tab.scrolls_sideways(), (chosen.slug, lang, width)
            figure = ".scene .picture svg" if experiment(chosen.slug).run().scenes else ".charts svg"
            assert tab.page.locator(f"{figure} >> visible=true").count() >= 1, chosen.slug
            assert tab.page.locator("#controls").is_visible()
