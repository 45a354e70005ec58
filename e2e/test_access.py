"""Accessibility, by axe: no violation on any page, light and dark, in both languages, asked and answered."""

import json

import pytest
from axe_playwright_python.sync_playwright import Axe

from k3core.lab.registry import slugs

AXE = Axe()
PAGES = ["index.html", "zh/index.html", f"zh/tabs/{slugs()[0]}.html", *(f"tabs/{slug}.html" for slug in slugs())]


def violations(page, **options) -> list:
    """What axe objects to, short enough to read."""
    found = AXE.run(page, options={"resultTypes": ["violations"], **options}).response["violations"]
    return [f"{item['id']}: {item['help']}: {node['html'][:160]} ({node.get('failureSummary', '')[:300]})"
            for item in found for node in item["nodes"][:4]]


def in_both_schemes(page) -> dict:
    """Everything in light; in dark only what can differ."""
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    found = {"light": violations(page)}
    page.emulate_media(color_scheme="dark")
    return found | {"dark": violations(page, runOnly=["color-contrast"])}


@pytest.mark.parametrize("path", PAGES)
def test_no_violation_before_python_is_there(visit, http_root, path):
    tab = visit(f"{http_root}/{path}#guess=0", python=False, bypass_csp=True)
    assert in_both_schemes(tab.page) == {"light": [], "dark": []}


def test_no_violation_while_the_question_is_asked(visit, http_root):
    tab = visit(f"{http_root}/tabs/byte-cost.html", python=False, bypass_csp=True)
    assert tab.page.locator("#prediction .ask").is_visible()
    assert in_both_schemes(tab.page) == {"light": [], "dark": []}


def test_no_violation_on_a_live_page_nor_beside_a_problem(visit, http_root):
    tab = visit(f"{http_root}/tabs/byte-cost.html#preset=no-gate", bypass_csp=True)
    tab.settle()
    for details in tab.page.locator("details:not([open]) > summary").all():
        if details.is_visible():
            details.click()
    assert in_both_schemes(tab.page) == {"light": [], "dark": []}
    tab.go("dk=999")
    tab.settle()
    assert tab.page.locator("#notice.problem").is_visible()
    assert in_both_schemes(tab.page) == {"light": [], "dark": []}


def test_axe_can_object(visit, http_root):
    tab = visit(f"{http_root}/index.html#guess=0", python=False, bypass_csp=True)
    tab.page.evaluate("() => document.querySelector('main').append(document.createElement('button'))")
    assert "button-name" in json.dumps(violations(tab.page))
