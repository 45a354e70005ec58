"""Prose and code as HTML: Markdown with equations as MathML, highlighted sources."""

import inspect
import textwrap
from collections.abc import Callable
from pathlib import Path

from latex2mathml.converter import convert as mathml
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

CONTENT = Path(__file__).parent / "content"


def prose(lang: str, name: str) -> str:
    """`content/<lang>/<name>.md` as HTML. Raises FileNotFoundError."""
    return _markdown().render((CONTENT / lang / f"{name}.md").read_text(encoding="utf-8"))


def source(function: Callable, repository: str | None) -> dict:
    """The source of a function: name, module, highlighted HTML, and its line in the repository where one is known."""
    lines, first = inspect.getsourcelines(function)
    module = function.__module__
    url = f"{repository}/blob/main/{module.replace('.', '/')}.py#L{first}" if repository else None
    formatter = HtmlFormatter(nowrap=True)
    html = highlight(textwrap.dedent("".join(lines)), PythonLexer(), formatter)
    return {"name": function.__qualname__, "module": module, "html": html, "url": url}


def _markdown() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table").use(dollarmath_plugin, renderer=_equation)
    markdown.add_render_rule("table_open", lambda *_: '<div class="scroll" tabindex="0"><table>')
    markdown.add_render_rule("table_close", lambda *_: "</table></div>")
    return markdown


def _equation(tex: str, options: dict) -> str:
    return mathml(tex, display="block" if options["display_mode"] else "inline")
