"""The glossary: complete in both languages, and found in prose exactly where it should be."""

import re
from pathlib import Path

import pytest

from k3core.lab.registry import everything
from sitegen import content, glossary

TEMPLATES = Path(content.__file__).parent / "templates"
PROSE = sorted(path.stem for path in (content.CONTENT / "en").glob("*.md"))
TERMS = {term.id: term for term in glossary.terms()}


def found(text: str, lang: str = "en", page: str = "") -> list:
    return [(words, term.id) for words, term in glossary.pieces(text, lang, page) if term]


def links(html: str) -> list:
    return re.findall(r'<a class="term" href="([^"]*)">([^<]*)</a>', html)


# --- the file ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("term", TERMS.values(), ids=TERMS)
def test_an_entry_is_complete(term):
    headings = (TEMPLATES / "glossary.html").read_text(encoding="utf-8")
    assert f'"{term.group}": t(' in headings
    for lang in ("en", "zh"):
        assert term.spellings[lang] and all(text == text.strip() and text for text in term.spellings[lang])
        text = term.define[lang]
        assert text.endswith("." if lang == "en" else "。") and not re.search(r"[<>$`|]", text)
        assert bool(re.search(r"[\u4e00-\u9fff]", text)) == (lang == "zh")
    assert term.tabs and set(term.tabs) | set(term.only) <= set(everything()) - {"one-request"}
    assert not term.formula or content.equation(term.formula).startswith("<math")


def test_anchors_are_free_on_every_page():
    taken = {name for path in TEMPLATES.glob("*.html")
             for name in re.findall(r'\bid="([\w-]+)"', path.read_text(encoding="utf-8"))}
    assert set(TERMS) & taken == set()
    assert all(re.fullmatch(r"[a-z0-9-]+", id) for id in TERMS)


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("page", ["", *PROSE])
def test_a_spelling_means_one_thing_on_a_page(lang, page):
    spellings = [text.lower() for term in TERMS.values() if page in term.only or not term.only
                 for text in term.spellings[lang]]
    assert sorted(set(spellings)) == sorted(spellings)


def test_what_a_search_is_given():
    english, chinese = glossary.entries("en"), glossary.entries("zh")
    assert [entry["anchor"] for entry in english] == [entry["anchor"] for entry in chinese] == list(TERMS)
    assert {"anchor": "kda", "title": "Kimi Delta Attention", "also": ["KDA"], "text": TERMS["kda"].define["en"],
            "tabs": ["byte-cost", "verify-and-replay"]} in english
    assert {entry["title"] for entry in english} >= {"Time to first token", "P99", "fp8_ds_mla", "Mode align"}


# --- finding terms ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text, expected", [
    ("A hit is a hit.", [("hit", "hit")]),  # once
    ("States and Snapshots.", [("States", "state"), ("Snapshots", "snapshot")]),  # plural, start of a sentence
    ("restate, hitting, white", []),  # whole words
    ("the KDA group's state", [("KDA group", "kda-group"), ("state", "state")]),  # longest first
    ("kda and Kda", []),  # capitals as written
    ("a Beta distribution in a steady state", []),  # phrases that mean something else
    ("the token-bucket", []),
    ("flush, flushes; recomputed", [("flush", "flush"), ("recomputed", "recompute")]),
])
def test_english(text, expected):
    assert found(text, page="replayssm-ring") == expected


@pytest.mark.parametrize("text, expected", [
    ("循环层的状态只能在检查点处命中", [("状态", "state"), ("检查点", "checkpoint"), ("命中", "hit")]),
    ("KDA 检查点与状态，检查点", [("KDA 检查点", "checkpoint"), ("状态", "state")]),
    ("上一次选定的词元", []),
    ("K3的KDA层，NKDA", [("KDA", "kda")]),
])
def test_chinese(text, expected):
    assert found(text, "zh") == expected


def test_a_word_can_mean_something_else_on_another_page():
    assert found("the ring", page="replayssm-ring") == [("ring", "record-ring")]
    assert found("the ring", page="consistent-hashing") == [("ring", "hash-ring")]
    assert found("the ring", page="traces") == []


def test_pieces_are_the_text():
    text = "A state, a hit, and a checkpoint."
    assert "".join(words for words, _ in glossary.pieces(text, "en")) == text
    seen = {"state"}
    assert [term.id for _, term in glossary.pieces(text, "en", seen=seen) if term] == ["hit", "checkpoint"]
    assert seen == {"state", "hit", "checkpoint"}


# --- in prose ---------------------------------------------------------------------------------------------------


@pytest.fixture
def rendered(tmp_path, monkeypatch):
    """A function: Markdown -> HTML, as for an English page one folder down."""
    monkeypatch.setattr(content, "CONTENT", tmp_path)
    (tmp_path / "en").mkdir()

    def render(text: str) -> str:
        (tmp_path / "en" / "traces.md").write_text(text, encoding="utf-8")
        return content.prose("en", "traces", "../")

    return render


def test_the_first_in_each_section_is_a_link(rendered):
    html = rendered("## One\n\nA state, a state.\n\nA state.\n\n## Two\n\nA state.\n\n### Part\n\nA state.\n")
    assert links(html) == [("../glossary.html#state", "state")] * 2


def test_not_in_headings_code_formulas_links_or_names(rendered):
    html = rendered("## The state\n\n**The state.** `state` $state$ [state](x.html) *The state*\n\n"
                    "```\nstate\n```\n\n| state |\n|---|\n| a state |\n")
    assert links(html) == [("../glossary.html#state", "state")]  # the cell of the table
    assert '<td>a <a class="term"' in html


def test_text_stays_text(rendered):
    assert "&lt;b&gt; <a class" in rendered("<b> state & `x`\n")


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", PROSE)
def test_prose_keeps_its_words(lang, name):
    html = content.prose(lang, name)
    bare = content._markdown(lang).render((content.CONTENT / lang / f"{name}.md").read_text(encoding="utf-8"))
    unlinked = re.sub(r'<a class="term"[^>]*>(.*?)</a>', r"\1", html)
    assert re.sub(r'<li id="[^"]*">', "<li>", unlinked) == bare
    assert all(re.fullmatch(r"glossary\.html#[\w-]+", href) and href.split("#")[1] in TERMS for href, _ in links(html))
    assert re.search(r"<h\d>[^/]*class=\"term\"|<code>[^<]*<a|<a [^>]*><a ", html) is None


def test_most_terms_are_met_somewhere():
    met = {href.split("#")[1] for name in PROSE for href, _ in links(content.prose("en", name))}
    assert len(met) >= 0.85 * len(TERMS)
