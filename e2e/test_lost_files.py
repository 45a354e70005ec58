"""What cannot be had: files that are missing or damaged, a worker that the browser refuses, no network."""

import gzip
import os
import shutil

import pytest
from test_trouble import nothing_is_wrong, problem
from visit import EXPERIMENT, SLUG, TAB, QuietHandler, expected


@pytest.fixture
def broken(site, tmp_path, serve_folder):
    """A function: (way, pattern, change) -> address of a copy of the site; the files that match are changed in it."""
    def copy(way: str, pattern: str, change) -> str:
        shutil.copytree(site, tmp_path / "site", copy_function=os.link)
        files = sorted((tmp_path / "site").glob(pattern))
        assert files
        for file in files:
            change(file)
        return (tmp_path / "site").as_uri() if way == "file" else serve_folder(tmp_path / "site")

    return copy


def replace(file, data: bytes):
    """A file of its own in place of the link to the site's."""
    file.unlink()
    file.write_bytes(data)


def missing(file):
    file.unlink()


def cut(file):
    replace(file, file.read_bytes()[:5000])


def altered(file):
    data = bytearray(gzip.decompress(file.read_bytes()))
    data[len(data) // 2] ^= 1
    replace(file, gzip.compress(data, 1))  # as long as before, and a sound archive


def emptied(file):
    replace(file, b"")


def of_another_build(file):
    replace(file, file.read_bytes().replace(b'K3.file("', b'K3.file("old-'))


@pytest.mark.parametrize("way, pattern, change, words", [
    ("http", "assets/runtime/numpy*.whl*", missing, "numpy-"),
    ("http", "assets/runtime/pyodide.asm.*wasm*", cut, "pyodide.asm.wasm is damaged"),
    ("http", "assets/runtime/python_stdlib*.gz", altered, "python_stdlib.zip is damaged"),
    ("http", "assets/manifest.*.js", missing, "assets/manifest.js is missing"),
    ("file", "assets/runtime/numpy*.js", missing, "numpy-"),
    ("file", "assets/runtime/pyodide.mjs*.js", emptied, "pyodide.mjs is damaged"),
    ("file", "assets/runtime/k3core*.js", of_another_build, "k3core-"),
    ("file", "assets/manifest.*.js", missing, "assets/manifest.js is missing"),
])
def test_the_page_says_which_file_is_wrong_and_stays_readable(visit, broken, way, pattern, change, words):
    tab = visit(f"{broken(way, pattern, change)}/{TAB}#guess=1", expect_complaints=True)
    tab.wait("failed", timeout=30_000)
    assert words in problem(tab) and "Everything here can be read" in problem(tab)
    assert tab.text("#status .words") == "Python is not available"
    assert tab.shown() == expected(SLUG) and tab.page.locator(".picture svg").first.is_visible()
    tab.page.fill("#p-dk", "64")
    tab.page.locator("[data-step='-1']").click()
    tab.page.wait_for_timeout(100)
    assert words in problem(tab) and tab.page.locator("#lab").get_attribute("aria-busy") == "false"
    assert tab.text('[data-scene="window"] .caption') == EXPERIMENT.run().scenes[0].captions[8].render("en")


def test_it_can_be_tried_again_once_the_file_is_there(visit, broken):
    gone = []

    def take_away(file):
        gone.append((file, file.read_bytes()))
        file.unlink()

    address = broken("file", "assets/runtime/numpy*.js", take_away)
    tab = visit(f"{address}/{TAB}#dk=64", expect_complaints=True)
    tab.wait("failed", timeout=30_000)
    for file, data in gone:
        file.write_bytes(data)
    tab.page.locator("#notice button", has_text="Try again").click()
    tab.settle()
    assert nothing_is_wrong(tab) and tab.shown() == expected(SLUG, {"dk": 64})


def test_code_that_cannot_be_fetched_can_be_asked_for_again(visit, http_root):
    tab = visit(f"{http_root}/{TAB}#guess=1", python=False, expect_complaints=True)
    tab.page.route("**/assets/sources.*", lambda route: route.abort())
    tab.page.locator(".tools [data-edit]").click()
    tab.page.locator("#notice.problem").wait_for()
    assert "assets/sources." in problem(tab) and tab.page.locator("#editor").count() == 0
    tab.page.unroute("**/assets/sources.*")
    tab.page.locator(".tools [data-edit]").click()
    tab.page.locator("#editor textarea").wait_for()


@pytest.mark.parametrize("way", ["http", "file"])
def test_where_the_browser_allows_no_worker_the_page_says_so(visit, roots, way):
    tab = visit("about:blank")
    tab.page.add_init_script(
        "window.Worker = class { constructor() { throw new DOMException('not here', 'SecurityError'); } };")
    tab.page.goto(f"{roots[way]}/{TAB}#dk=64")
    tab.wait("failed", timeout=30_000)
    assert "Python could not start: not here. Everything here can be read" in problem(tab)
    tab.page.fill("#p-dk", "63")
    tab.page.locator("#notice button", has_text="Try again").click()
    tab.wait("failed")
    assert "not here" in problem(tab) and tab.page.locator("#lab").get_attribute("aria-busy") == "false"


def test_without_the_chart_library_the_rest_works(visit, broken):
    tab = visit(f"{broken('file', 'assets/vega.*.js', missing)}/{TAB}#dk=64", expect_complaints=True)
    tab.settle()
    assert "The charts could not be drawn and do not show these settings: assets/vega." in problem(tab)
    assert tab.shown() == expected(SLUG, {"dk": 64}) and tab.page.locator(".chart .static svg").first.is_visible()


# --- no network -------------------------------------------------------------------------------------------------


def test_it_keeps_working_offline(live):
    """Once loaded, nothing more is fetched: not for a run, not for a frame, not for a fresh worker."""
    live.context.set_offline(True)
    try:
        live.page.fill("#p-dk", "64")
        live.settle()
        live.page.locator("[data-step='-1']").click()
        live.settle()
        assert live.shown() == expected(SLUG, {"dk": 64}) and live.text('[data-scene="window"] .counter') == "7 / 8"
        before = len(live.requests)
        live.page.evaluate("() => K3.lab.engine.restart()")
        live.page.fill("#p-dk", "65")
        live.settle()
        assert live.shown() == expected(SLUG, {"dk": 65})
        fetched = [url for url in live.requests[before:] if not url.startswith(("blob:", "data:"))]
        assert [url for url in fetched if "/assets/icon." not in url] == []
    finally:
        live.context.set_offline(False)
    # Chromium itself asks for the icon again whenever the address changes.
    live.complaints[:] = [words for words in live.complaints if "/assets/icon." not in words]


def test_a_network_that_goes_while_loading_is_named(visit, http_root):
    tab = visit(f"{http_root}/{TAB}#guess=1", python=False, expect_complaints=True)
    for route in tab.held:
        route.abort()
    tab.held.clear()
    tab.wait("failed", timeout=30_000)
    assert "could not be fetched: the network is gone" in problem(tab) and tab.shown() == expected(SLUG)


def test_a_network_that_goes_in_the_middle_of_a_file_is_named_and_may_come_back(visit, site, serve_folder):
    class Half(QuietHandler):
        gone = True

        def copyfile(self, source, outputfile):
            data = source.read()
            self.close_connection = self.gone and "/runtime/numpy" in self.path
            outputfile.write(data[:len(data) // 2] if self.close_connection else data)

    tab = visit(f"{serve_folder(site, Half)}/{TAB}#dk=64", expect_complaints=True)
    tab.wait("failed", timeout=30_000)
    assert "numpy-" in problem(tab) and "could not be fetched: the network is gone" in problem(tab)
    Half.gone = False
    tab.page.locator("#notice button", has_text="Try again").click()
    tab.settle()
    assert nothing_is_wrong(tab) and tab.shown() == expected(SLUG, {"dk": 64})
