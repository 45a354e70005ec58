"""Prose and code as HTML: Markdown with equations as MathML, highlighted sources."""

import inspect
import textwrap
from collections.abc import Callable
from pathlib import Path

from latex2mathml.converter import convert as mathml
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from sitegen import glossary

CONTENT = Path(__file__).parent / "content"
OPENING, CLOSING = tuple("(（“"), tuple(",.;:)，。；：、）”")  # what a line may not end, or begin with
FULL_WIDTH = tuple("，。；：、！？（）「」")  # as wide as a character, with room beside them


def prose(lang: str, name: str, here: str = "") -> str:
    """`content/<lang>/<name>.md` as HTML; the first occurrence of a term in each section is a link to the glossary,
    which lies `here` from the page. Raises FileNotFoundError."""
    markdown = _markdown(lang)
    markdown.core.ruler.push("terms", lambda state: _link_terms(state.tokens, lang, name, here))
    markdown.core.ruler.push("reports", lambda state: _name_reports(state.tokens))
    return markdown.render(_text(lang, name))


def reports(lang: str, name: str) -> list:
    """The field reports of a page, the list under its last heading: (anchor, what is in bold at its start, all)."""
    found = []
    for anchor, _, tokens in _reports(_markdown(lang).parse(_text(lang, name))):
        bold = [index for index, token in enumerate(tokens) if token.type in ("strong_open", "strong_close")]
        title = _plain(tokens[bold[0] : bold[1]]) if bold and bold[0] <= 1 else ""
        found.append((anchor, title, _plain(tokens)))
    return found


def equation(tex: str) -> str:
    """MathML of an equation that stands in a line."""
    return mathml(tex, display="inline")


def source(function: Callable, repository: str | None) -> dict:
    """The source of a function: name, module, highlighted HTML, and its line in the repository where one is known."""
    lines, first = inspect.getsourcelines(function)
    module = function.__module__
    url = f"{repository}/blob/main/{module.replace('.', '/')}.py#L{first}" if repository else None
    formatter = HtmlFormatter(nowrap=True)
    html = highlight(textwrap.dedent("".join(lines)), PythonLexer(), formatter)
    return {"name": function.__qualname__, "module": module, "html": html, "url": url}


def _text(lang: str, name: str) -> str:
    return (CONTENT / lang / f"{name}.md").read_text(encoding="utf-8")


def _reports(tokens: list) -> list:
    """(anchor, its token, the tokens of its words) of every list item under the last heading of a page."""
    last = max((index for index, token in enumerate(tokens) if token.type == "heading_open"), default=0)
    items = [index for index in range(last, len(tokens)) if tokens[index].type == "list_item_open"]
    return [(f"report-{number}", tokens[index], tokens[index + 2].children) for number, index in enumerate(items, 1)]


def _name_reports(tokens: list) -> None:
    for anchor, item, _ in _reports(tokens):
        item.attrSet("id", anchor)


def _plain(tokens: list) -> str:
    """The words of inline tokens, without marks."""
    return "".join(" " if token.type == "softbreak" else token.content for token in tokens)


def _markdown(lang: str) -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table").use(dollarmath_plugin, renderer=_equation)
    if lang == "zh":
        markdown.core.ruler.push("spaces", lambda state: _close_up(state.tokens))
    markdown.core.ruler.push("join", lambda state: _join(state.tokens))
    markdown.add_render_rule("table_open", lambda *_: '<div class="scroll" tabindex="0"><table>')
    markdown.add_render_rule("table_close", lambda *_: "</table></div>")
    markdown.add_render_rule("math_block", _math_block)
    return markdown


def _math_block(_renderer, tokens, index, _options, _env) -> str:
    """A formula on its own, which scrolls where it is wider than the page, with keys too."""
    equation = _equation(tokens[index].content.strip(), {"display_mode": True})
    return f'<div class="math block" tabindex="0">{equation}</div>\n'


def _equation(tex: str, options: dict) -> str:
    return mathml(tex, display="block" if options["display_mode"] else "inline")


def _join(tokens: list) -> None:
    """Punctuation stays on the line of the formula that it follows or opens: a word joiner between them."""
    for token in tokens:
        children = token.children or []
        for before, after in zip(children, children[1:]):
            if before.type == "math_inline" and after.content.startswith(CLOSING):
                after.content = "\N{WORD JOINER}" + after.content
            if after.type == "math_inline" and before.content.endswith(OPENING):
                before.content += "\N{WORD JOINER}"


def _close_up(tokens: list) -> None:
    """Takes out the space after a full-width mark of punctuation, which Markdown needs after bold words and has where a
    line of the source ends; the mark brings its own."""
    for token in tokens:
        last = ""
        for child in token.children or []:
            if last in FULL_WIDTH and child.type in ("text", "softbreak"):
                child.type, child.content = "text", child.content.lstrip(" ")
            last = child.content[-1:] or last


def _link_terms(tokens: list, lang: str, page: str, here: str) -> None:
    """Links terms in place: not in headings, nor in the first row of a table, which is one too."""
    seen, heading = set(), False
    for token in tokens:
        if token.type in ("heading_open", "th_open"):
            heading = True
            if token.tag == "h2":
                seen = set()
        elif token.type in ("heading_close", "th_close"):
            heading = False
        elif token.type == "inline" and not heading:
            token.children = list(_linked(token.children, lang, page, here, seen))


def _linked(children: list, lang: str, page: str, here: str, seen: set):
    """The tokens of a paragraph with its terms as links. What is set in bold serves as a heading, what is in italics is
    the name of a situation or a control; they and existing links stay as they are."""
    inside = 0
    for child in children:
        inside += child.nesting
        if child.type != "text" or inside:
            yield child
            continue
        for text, term in glossary.pieces(child.content, lang, page, seen):
            if term:
                yield Token("link_open", "a", 1, attrs={"class": "term", "href": f"{here}{glossary.PAGE}#{term.id}"})
            yield Token("text", "", 0, content=text)
            if term:
                yield Token("link_close", "a", -1)
