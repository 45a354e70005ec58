"""Every page as a picture, in both languages and three widths: kept with the test run, to be looked at."""

import os
from pathlib import Path

WIDTHS = (1440, 768, 360)
TALLEST = 2400  # CSS pixels of a picture: prose below that looks like the prose above


def test_every_page_is_pictured(visit, http_root, site):
    folder = Path(os.environ.get("K3_SHOTS") or Path(__file__).parents[1] / "build" / "shots")
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.jpg"):
        old.unlink()
    pages = sorted(path.relative_to(site) for path in site.rglob("*.html"))
    tab = visit(f"{http_root}/index.html#guess=1", python=False)
    for path in pages:
        tab.page.goto(f"{http_root}/{path}#guess=1")
        for width in WIDTHS:
            tab.page.set_viewport_size({"width": width, "height": 900})
            height = min(TALLEST, tab.page.evaluate("() => document.documentElement.scrollHeight"))
            name = f"{str(path.with_suffix('')).replace('/', '-')}-{width}.jpg"
            tab.page.set_viewport_size({"width": width, "height": height})
            tab.page.screenshot(path=folder / name, type="jpeg", quality=60)
    taken = sorted(folder.glob("*.jpg"))
    assert len(taken) == len(WIDTHS) * len(pages) and min(path.stat().st_size for path in taken) > 5000
