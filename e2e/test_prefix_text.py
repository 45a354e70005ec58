"""Real text on the tabs of prefixes: the controls that apply are shown, the text is CPython's."""

import pytest
from visit import expected

from k3core.lab.registry import experiment


@pytest.mark.parametrize("way", ["http", "file"])
def test_a_real_text_is_chosen_and_its_characters_are_drawn(visit, roots, way):
    page = visit(f"{roots[way]}/tabs/prefix-hit.html")
    page.skip_prediction()
    assert page.page.is_hidden("[data-param=prompt]") and page.page.is_visible("[data-param=shared]")
    page.page.click("[data-preset=real-text]")
    page.page.wait_for_selector("[data-scene=turns] .glyph", timeout=60_000)
    page.settle()
    assert page.page.is_visible("[data-param=prompt]") and page.page.is_hidden("[data-param=shared]")
    scene = experiment("prefix-hit").run({"source": "text"}).scenes[0]
    assert page.text("[data-scene=turns] .caption") == scene.captions[scene.poster].render("en")
    assert page.shown() == expected("prefix-hit", {"source": "text"})
    assert not page.scrolls_sideways()
