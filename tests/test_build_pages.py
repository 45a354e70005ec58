"""What only a public address makes possible: absolute links, the list of pages, a page for a wrong address."""

import re
from types import SimpleNamespace

import pytest

from sitegen import render

ASSETS = SimpleNamespace(wheel="assets/k3core-0.1.0-py2.py3-none-any.whl")
STATIC = dict.fromkeys(("style", "scripts", "icon", "manifest"), "assets/x")
BASE = "https://example.org/lab/"  # as options.py hands it over


@pytest.fixture
def pages(tmp_path):
    return render.Pages(tmp_path, ASSETS, STATIC, "", BASE)


@pytest.mark.parametrize("lang, here", [("en", BASE), ("zh", f"{BASE}zh/")])
def test_the_page_for_a_wrong_address_works_from_any_address(pages, lang, here):
    pages.write(render.NOT_FOUND, lang, render.NOT_FOUND)
    text = (pages.out / pages.written[0]).read_text(encoding="utf-8")
    links = re.findall(r'(?:href|src)="([^"#][^"]*)"', text)
    assert f"{here}index.html" in links and f"{here}tabs/byte-cost.html" in links and f"{BASE}assets/x" in links
    assert [link for link in links if not link.startswith(BASE)] == []
    assert 'id="status"' not in text  # no Python starts there


def test_absolute_links_have_one_slash(pages):
    pages.write(render.NOT_FOUND, "zh", render.NOT_FOUND)
    text = (pages.out / "zh" / render.NOT_FOUND).read_text(encoding="utf-8")
    assert f'hreflang="en" href="{BASE}404.html"' in text and f'content="{BASE}zh/404.html"' in text
    assert "//" not in text.replace("https://", "")


def test_the_list_of_pages():
    text = render.sitemap(BASE, ["index.html", "zh/tabs/a&b.html"])
    assert re.findall("<loc>(.*)</loc>", text) == [f"{BASE}index.html", f"{BASE}zh/tabs/a&amp;b.html"]
