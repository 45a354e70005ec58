"""What only a public address makes possible: absolute links, the list of pages, a page for a wrong address."""

import re
from types import SimpleNamespace

import pytest

from sitegen import glossary, render

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
    policy = re.search('Content-Security-Policy" content="(.*?)"', text)[1]
    assert policy.startswith("default-src 'none'; script-src 'self' ") and "script-src 'unsafe" not in policy


def test_absolute_links_have_one_slash(pages):
    pages.write(render.NOT_FOUND, "zh", render.NOT_FOUND)
    text = (pages.out / "zh" / render.NOT_FOUND).read_text(encoding="utf-8")
    assert f'hreflang="en" href="{BASE}404.html"' in text and f'content="{BASE}zh/404.html"' in text
    assert "//" not in text.replace("https://", "")


def test_only_the_page_for_a_wrong_address_is_kept_from_search_engines(pages):
    for lang in ("en", "zh"):
        pages.write(render.NOT_FOUND, lang, render.NOT_FOUND)
        pages.write("glossary.html", lang, glossary.PAGE, groups=glossary.groups(lang), tabs=pages.places(lang))
    kept = {place: '<meta name="robots" content="noindex">' in (pages.out / place).read_text(encoding="utf-8")
            for place in pages.written}
    assert kept == {"404.html": True, "glossary.html": False, "zh/404.html": True, "zh/glossary.html": False}


def heads(pages, base_url: str | None) -> dict:
    """Language -> the head of the glossary as built for this address."""
    pages.base_url = base_url
    texts = {}
    for lang in ("en", "zh"):
        pages.write("glossary.html", lang, glossary.PAGE, groups=glossary.groups(lang), tabs=pages.places(lang))
        texts[lang] = (pages.out / pages.written[-1]).read_text(encoding="utf-8").split("</head>")[0]
    return texts


def test_both_languages_name_each_other_and_themselves_to_others(pages):
    for lang, head in heads(pages, BASE).items():
        own = f"{BASE}{'' if lang == 'en' else 'zh/'}glossary.html"
        assert dict(re.findall(r'hreflang="(.*?)" href="(.*?)"', head)) == {
            "en": f"{BASE}glossary.html", "zh-Hans": f"{BASE}zh/glossary.html", "x-default": f"{BASE}glossary.html"}
        cards = dict(re.findall(r'<meta property="og:(.*?)" content="(.*?)">', head))
        assert set(cards) == {"type", "site_name", "locale", "title", "description", "url"} and all(cards.values())
        assert cards["url"] == own and cards["locale"] == {"en": "en_US", "zh": "zh_CN"}[lang]
        assert cards["title"] == re.search("<title>(.*?)</title>", head)[1]


def test_without_an_address_nothing_is_claimed_of_one(pages):
    for head in heads(pages, None).values():
        assert "hreflang" not in head and "og:" not in head and "Content-Security-Policy" in head


def test_search_engines_may_read_everything():
    assert render.robots(None) == "User-agent: *\nAllow: /\n"
    assert render.robots(BASE).splitlines()[-1] == f"Sitemap: {BASE}sitemap.xml"


def test_the_list_of_pages():
    text = render.sitemap(BASE, ["index.html", "zh/tabs/a&b.html"])
    assert re.findall("<loc>(.*)</loc>", text) == [f"{BASE}index.html", f"{BASE}zh/tabs/a&amp;b.html"]
