"""The glossary: terms of the field in both languages, and where they occur in a text."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILE = Path(__file__).parent / "content" / "glossary.toml"
PAGE = "glossary.html"


@dataclass(frozen=True)
class Term:
    """One entry. `spellings` and `define` are by language; `only` lists the slugs of the pages that link it, and is
    empty where all do."""

    id: str
    group: str
    spellings: dict
    define: dict
    formula: str = ""
    tabs: tuple = ()
    only: tuple = ()

    def title(self, lang: str) -> str:
        title = self.spellings[lang][0]
        return title[0].upper() + title[1:] if lang == "en" and title.islower() and "_" not in title else title


@cache
def terms() -> tuple:
    """All terms, in the order of the file. Raises TypeError, KeyError for an entry that is not as the file says."""
    return tuple(Term(id=id, group=entry["group"], spellings={lang: entry[lang] for lang in ("en", "zh")},
                      define=entry["define"], formula=entry.get("formula", ""), tabs=tuple(entry.get("tabs", ())),
                      only=tuple(entry.get("only", ())))
                 for id, entry in _file().items() if id != "plain")


def entries(lang: str) -> list:
    """What a search finds: {"anchor", "title", "also", "text", "tabs"} of every term; the anchor is one of PAGE."""
    return [{"anchor": term.id, "title": term.title(lang), "also": list(term.spellings[lang][1:]),
             "text": term.define[lang], "tabs": list(term.tabs)} for term in terms()]


def pieces(text: str, lang: str, page: str = "", seen: set | None = None) -> Iterator:
    """`text` cut at the first occurrence of each term that is not yet in `seen`: pairs (text, Term or None).

    `page` is the slug whose prose this is; the ids of the terms that were found are added to `seen`."""
    seen, done = set() if seen is None else seen, 0
    pattern, by_spelling = _matcher(lang, page)
    for match in pattern.finditer(text):
        term = by_spelling.get(match.lastgroup)
        if term is None or term.id in seen:
            continue
        seen.add(term.id)
        if match.start() > done:
            yield text[done:match.start()], None
        yield match.group(), term
        done = match.end()
    if done < len(text):
        yield text[done:], None


def definitions(lang: str) -> dict:
    """What a preview shows: id -> [title, definition]."""
    return {term.id: [term.title(lang), term.define[lang]] for term in terms()}


def groups(lang: str) -> dict:
    """Group -> its entries as glossary.html lays them out; `define` is in pieces, so that one entry leads to others."""
    out = {}
    for term in terms():
        out.setdefault(term.group, []).append({
            "id": term.id, "title": term.title(lang), "also": term.spellings[lang][1:], "formula": term.formula,
            "define": list(pieces(term.define[lang], lang, seen={term.id})), "tabs": term.tabs})
    return out


@cache
def _matcher(lang: str, page: str) -> tuple:
    """A pattern with one named group per spelling, the longest first, and group name -> Term. Phrases listed as plain
    take part without a term, so that no term is found inside them."""
    found = [(spelling, term) for term in terms() if page in term.only or not term.only
             for spelling in term.spellings[lang]]
    found += [(phrase, None) for phrase in _file()["plain"][lang]]
    found.sort(key=lambda pair: (-len(pair[0]), pair[0]))
    terms_of = {f"s{index}": term for index, (_, term) in enumerate(found) if term}
    groups = (f"(?P<s{index}>{_pattern(spelling)})" for index, (spelling, _) in enumerate(found))
    return re.compile("|".join(groups)), terms_of


def _pattern(spelling: str) -> str:
    """Whole words where a spelling begins or ends with a Latin letter; what has no capitals also matches with one at
    the start and with a plural."""
    words = re.escape(spelling)
    if spelling.isascii() and spelling.islower():
        first = spelling[0]
        words = f"[{first.upper()}{first}]{words[1:]}(?:s|es)?"
    before = r"(?<![A-Za-z0-9-])" if spelling[0].isascii() else ""
    after = r"(?![A-Za-z0-9-])" if spelling[-1].isascii() else ""
    return before + words + after


@cache
def _file() -> dict:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))
