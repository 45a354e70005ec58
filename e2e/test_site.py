"""The built files themselves: links that resolve, nothing inline, nothing from elsewhere."""

import re
from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag

import pytest

VOID_SCHEMES = ("http:", "https:", "mailto:")


class Page(HTMLParser):
    """What a page links to, loads and declares."""

    def __init__(self, text: str):
        super().__init__()
        self.links, self.loads, self.ids, self.inline, self.policy = [], [], set(), [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if "id" in attributes:
            assert attributes["id"] not in self.ids, f"two elements are called {attributes['id']}"
            self.ids.add(attributes["id"])
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        elif tag == "script" and "src" in attributes:
            self.loads.append(attributes["src"])
        elif tag == "script" and attributes.get("type") != "application/json":
            self.inline.append(tag)
        elif tag in ("link", "img", "iframe", "source"):
            self.loads += [value for name, value in attrs if name in ("href", "src", "srcset")]
        self.inline += [f"{tag} {name}" for name, value in attrs
                        if name.startswith("on") or (value or "").strip().lower().startswith("javascript:")]
        if attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = attributes["content"]


@pytest.fixture(scope="module")
def pages_of(site) -> dict:
    return {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}


def test_both_languages_have_the_same_pages(site, pages_of):
    paths = {path.relative_to(site) for path in pages_of}
    chinese = {path.relative_to("zh") for path in paths if path.parts[0] == "zh"}
    assert chinese == {path for path in paths if path.parts[0] != "zh"} and len(chinese) >= 2


def test_every_internal_link_resolves(site, pages_of):
    for path, page in pages_of.items():
        for link in (*page.links, *page.loads):
            if link.startswith(VOID_SCHEMES):
                continue
            file, fragment = urldefrag(link)
            target = (path.parent / unquote(file)).resolve() if file else path
            assert target.is_file() and target.is_relative_to(site), f"{path.name}: {link}"
            named = not fragment or "=" in fragment or fragment in pages_of[target].ids  # name=value is a state
            assert named, f"{path.name}: {link}"


def test_every_tab_is_linked_from_every_page(site, pages_of):
    for path, page in pages_of.items():
        own = site / "zh" if path.is_relative_to(site / "zh") else site
        inside = [link for link in page.links if not link.startswith(VOID_SCHEMES)]
        linked = {(path.parent / urldefrag(link)[0]).resolve() for link in inside}
        assert {other for other in pages_of if other.is_relative_to(own / "tabs")} <= linked, path


def test_pages_load_only_files_of_the_site(pages_of):
    for path, page in pages_of.items():
        assert [load for load in page.loads if load.startswith(("/", *VOID_SCHEMES))] == [], path.name


def test_nothing_is_inline(pages_of):
    for path, page in pages_of.items():
        assert page.inline == [], path.name
        policy = dict(part.strip().split(" ", 1) for part in page.policy.split(";"))
        assert policy["default-src"] == "'none'" and "unsafe-inline" not in policy["script-src"]
        assert "unsafe-eval" not in policy["script-src"].replace("'wasm-unsafe-eval'", "")


def test_style_sheets_ask_for_nothing(site):
    for path in site.rglob("*.css"):
        assert [url for url in re.findall(r"url\(([^)]*)\)", path.read_text(encoding="utf-8")) if url[0] != "#"] == []


def test_texts_do_not_name_the_place_they_were_built_at(site):
    for path in (path for path in site.rglob("*") if path.suffix in (".html", ".js", ".css", ".json", ".svg")):
        if "runtime" not in path.parts:
            text = path.read_text(encoding="utf-8")
            assert str(site) not in text and "/root/" not in text and "/home/" not in text, path.name
