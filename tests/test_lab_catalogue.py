"""Chinese is complete: every English template in code, pages and page scripts has its entry, and only those."""

import ast
import re
import string
from pathlib import Path

import jinja2
import pytest
from jinja2 import nodes

from k3core.lab.catalogue import chinese
from k3core.lab.contract import BADGES
from k3core.lab.text import Text
from sitegen import search, words
from sitegen.render import FAMILY_TITLES

ROOT = Path(__file__).parents[1]
LAB = sorted((ROOT / "k3core" / "lab").rglob("*.py"))
TEMPLATES = sorted((ROOT / "sitegen" / "templates").glob("*.html"))
SCRIPTS = sorted((ROOT / "sitegen" / "static" / "js").glob("*.js"))
CHINESE = r"[\u4e00-\u9fff]"


def fields(template: str) -> set:
    """The names between braces. Raises ValueError where they do not match."""
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


def texts(path: Path) -> list:
    """Every call of Text in a module, as (line, first argument's node, keyword names)."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", None)) == "Text":
            found.append((node.lineno, node.args, {keyword.arg for keyword in node.keywords}))
    return found


def spoken_in_templates() -> set:
    """Every template that a page asks for with t("..."); with t(table[key]) and t(badge), all that these can be."""
    found = set()
    for path in TEMPLATES:
        tree = jinja2.Environment().parse(path.read_text(encoding="utf-8"))
        for call in tree.find_all(nodes.Call):
            if not isinstance(call.node, nodes.Name) or call.node.name != "t":
                continue
            asked = call.args[0]
            if isinstance(asked, nodes.Const):
                found.add(asked.value)
            elif isinstance(asked, nodes.Getitem) and isinstance(asked.node, nodes.Dict):
                assert {pair.key.value for pair in asked.node.items} == set(BADGES)
                found |= {pair.value.value for pair in asked.node.items}
            else:
                assert isinstance(asked, nodes.Getattr) and asked.attr == "badge", f"{path.name}:{call.lineno}"
                found |= set(BADGES)
    return found


def spoken_in_scripts() -> dict:
    """Every template that a script asks for with say("...", {fields}) -> the fields it passes."""
    found = {}
    for path in SCRIPTS:
        script = path.read_text(encoding="utf-8")
        for call in re.finditer(r"(?<!function )\bsay\((?!PHASES\[)", script):
            said = re.match(r'"((?:[^"\\]|\\.)*)"\s*(?:,\s*\{(.*?)\})?\s*\)', script[call.end():], re.S)
            assert said, f"{path.name}: say({script[call.end():call.end() + 60]}... does not start with plain words"
            passed = re.findall(r"(?:^|,)\s*(\w+)\s*(?=:|,|$)", said[2] or "")
            found.setdefault(said[1], set()).update(passed)
    return found


# --- experiments ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", LAB, ids=lambda path: path.name)
def test_templates_are_literals_with_exactly_the_fields_they_are_given(path):
    for line, arguments, keywords in texts(path):
        where = f"{path.name}:{line}"
        if path.name == "text.py":
            continue
        assert len(arguments) == 1 and isinstance(getattr(arguments[0], "value", None), str), f"{where}: not a literal"
        if None in keywords:  # **fields: what is missing there fails when the words are rendered
            assert keywords - {None} <= fields(arguments[0].value), where
        else:
            assert fields(arguments[0].value) == keywords, where


def used_templates() -> set:
    return {arguments[0].value for path in LAB if path.name != "text.py" for _, arguments, _ in texts(path)}


def test_every_template_has_an_entry():
    assert used_templates() - set(chinese()) == set()


def test_no_entry_is_unused():
    assert set(chinese()) - used_templates() == set()


def test_an_entry_has_the_fields_of_its_template():
    wrong = {english for english, words_ in chinese().items() if fields(english) != fields(words_)}
    assert wrong == set()


def test_a_missing_entry_is_an_error_and_english_needs_none():
    assert Text("no such words {n}", n=1).render("en") == "no such words 1"
    with pytest.raises(KeyError):
        Text("no such words {n}", n=1).render("zh")


def test_texts_nest_and_braces_in_arguments_are_plain():
    inner = Text("at most {bound}", bound="{n}")
    assert Text("{name} is {value}; it takes {allowed}", name="a", value="{b}", allowed=inner).render("en") \
        == "a is {b}; it takes at most {n}"


# --- pages and their scripts ------------------------------------------------------------------------------------


def test_every_word_of_the_frame_has_an_entry_and_no_entry_is_unused():
    spoken = spoken_in_templates() | set(FAMILY_TITLES.values()) | set(spoken_in_scripts())
    spoken |= set(words._SAID_INDIRECTLY) | set(search.KINDS.values())
    assert spoken - set(words.ZH) == set()
    assert set(words.ZH) - spoken == set()


def test_words_of_the_frame_have_the_same_fields_in_both_languages():
    assert [english for english, chinese_ in words.ZH.items() if fields(english) != fields(chinese_)] == []


def test_scripts_pass_the_fields_of_their_words():
    assert [said for said, passed in spoken_in_scripts().items() if fields(said) != passed] == []


def test_scripts_carry_all_they_say():
    scripts = "".join(path.read_text(encoding="utf-8") for path in SCRIPTS)
    carried = words.script_words(scripts, "zh")
    assert set(carried) == set(spoken_in_scripts()) | set(words._SAID_INDIRECTLY)
    assert words.script_words(scripts, "en") == {}
    phases = re.search(r"const PHASES = \{(.*?)\};", scripts, re.S)[1]
    assert set(re.findall(r': "([^"]+)"', phases)) - {"k3core"} == set(words._SAID_INDIRECTLY)


# --- Chinese as it is written -----------------------------------------------------------------------------------


@pytest.mark.parametrize("entries", [chinese(), words.ZH], ids=["experiments", "frame"])
def test_punctuation_between_chinese_words_is_full_width(entries):
    narrow = re.compile(rf"{CHINESE}[,;:?!(]|[,;:?!)]{CHINESE}")
    assert {words_: narrow.findall(words_) for words_ in entries.values() if narrow.search(words_)} == {}


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "sitegen" / "content" / "en").glob("*.md")))
def test_prose_has_the_same_parts_in_both_languages(name):
    prose = [(ROOT / "sitegen" / "content" / lang / name).read_text(encoding="utf-8") for lang in ("en", "zh")]
    english, chinese_ = prose
    assert re.search(CHINESE, chinese_)
    for part in (r"^#+ ", r"^\|", r"^- ", r"\$\$"):
        assert len(re.findall(part, english, re.M)) == len(re.findall(part, chinese_, re.M)), part
    source = r"\b(?:vllm|sglang|ATOM|arXiv)[^\s,;:)*]* ?#?\d+(?:\.\d+)?"
    assert set(re.findall(source, english)) == set(re.findall(source, chinese_))
