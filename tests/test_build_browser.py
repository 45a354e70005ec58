"""Which browser the tests drive: a named one, an installed one, a downloaded one, Debian's, in this order."""

import sys

import browser
import pytest


@pytest.fixture
def found(monkeypatch):
    """Dictionary of what each way finds; the ways that were tried, in order."""
    tried, finds = [], {}
    for way in ["_installed", "_playwright", "_download_playwright", "_apt_get"]:
        monkeypatch.setattr(browser, way, lambda way=way: tried.append(way) or finds.get(way))
    monkeypatch.delenv("K3_BROWSER", raising=False)
    return finds, tried


def test_the_named_browser_comes_first(found, monkeypatch):
    monkeypatch.setenv("K3_BROWSER", sys.executable)
    assert browser.find_browser() == sys.executable
    assert found[1] == []


def test_a_name_that_is_no_program_is_an_error(found, monkeypatch, capsys):
    monkeypatch.setenv("K3_BROWSER", "/nowhere/chromium")
    with pytest.raises(SystemExit) as stopped:
        browser.find_browser()
    assert stopped.value.code == 2 and "K3_BROWSER=/nowhere/chromium" in capsys.readouterr().err


def test_nothing_is_downloaded_where_a_browser_is_installed(found):
    finds, tried = found
    finds.update(_installed="/usr/bin/chromium", _apt_get="/other")
    assert browser.find_browser() == "/usr/bin/chromium" and tried == ["_installed"]


def test_debian_is_asked_last(found, capsys):
    finds, tried = found
    finds["_apt_get"] = "/usr/bin/chromium"
    assert browser.find_browser() == "/usr/bin/chromium"
    assert tried == ["_installed", "_playwright", "_download_playwright", "_apt_get"]
    finds.clear()
    with pytest.raises(SystemExit) as stopped:
        browser.find_browser()
    assert stopped.value.code == 2 and "K3_BROWSER" in capsys.readouterr().err
