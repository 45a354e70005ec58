"""Nodes and clusters by hand: drag a bead round the ring, drag a weight, take nodes down, bring them up."""

import pytest


@pytest.fixture
def tab(visit, roots):
    """A function: slug -> the page of that tab with Python up."""

    def open_tab(slug: str):
        opened = visit(f"{roots['http']}/tabs/{slug}.html")
        opened.skip_prediction()
        opened.settle()
        return opened

    return open_tab


def value(page, name: str) -> str:
    return page.evaluate("(name) => K3.lab.address.get(name)", name)


def drag(page, selector: str, right: float, down: float):
    box = page.locator(selector).bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + right / 2, y + down / 2, steps=3)
    page.mouse.move(x + right, y + down, steps=3)
    page.mouse.up()
    return x + right, y + down


def test_ring_by_hand(tab):
    opened = tab("consistent-hashing")
    page = opened.page
    before = page.inner_text('[data-metric="cv"] .value')

    x, y = drag(page, "[data-drag-turn][data-item='1']", 120, 160)
    opened.settle()
    turns = value(page, "turns").split(",")
    assert turns[1] != "0" and set(turns[:1] + turns[2:]) == {"0"}
    bead = page.locator("[data-drag-turn][data-item='1']").bounding_box()
    away = abs(bead["x"] + bead["width"] / 2 - x) + abs(bead["y"] + bead["height"] / 2 - y)
    assert away < 40  # the bead stays on its ring, near the pointer
    assert page.inner_text('[data-metric="cv"] .value') != before

    drag(page, "[data-drag-x='weights'][data-item='2']", 22, 0)
    opened.settle()
    assert value(page, "weights").startswith("1,1,3,1")

    page.locator("[data-click='nodes'][data-value='bcdefgh']").click()
    opened.settle()
    assert value(page, "nodes") == "bcdefgh"
    page.locator("[data-click='nodes'][data-value='abcdefgh']").click()
    opened.settle()
    assert value(page, "nodes") == "abcdefgh"


def test_clusters_by_hand(tab):
    opened = tab("minimal-disruption")
    page = opened.page
    page.locator("[data-click='after'][data-value='abcefghijk']").click()
    opened.settle()
    assert value(page, "after") == "abcefghijk"
    page.locator("[data-click='after'][data-value='abcdefghijk']").click()
    opened.settle()
    assert value(page, "after") == "abcdefghijk"
    page.locator("[data-click='scheme'][data-value='modulo']").click()
    opened.settle()
    assert page.inner_text('[data-metric="moved_fraction"] .value').startswith("91")
