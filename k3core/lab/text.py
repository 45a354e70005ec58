"""Words that the page shows: an English template, its arguments, and the language they end up in."""

import re
from dataclasses import dataclass, field

LANGUAGES = ("en", "zh")


@dataclass(frozen=True, init=False)
class Text:
    """An English template with named fields; the template is the key of the Chinese catalogue.

    Write the template as a literal, `Text("{n} of {total} slots", n=3, total=8)`: the catalogue test finds it in
    the source. Arguments are strings, integers or other Texts; numbers that need units go through `display` first.
    """

    template: str
    args: dict = field(default_factory=dict, hash=False)

    def __init__(self, template: str, **args):
        object.__setattr__(self, "template", template)
        object.__setattr__(self, "args", args)

    def render(self, lang: str) -> str:
        """The words in `lang` ("en" or "zh"). Raises KeyError where the catalogue has no entry."""
        from k3core.lab.catalogue import translate

        args = {name: say(value, lang) for name, value in self.args.items()}
        return translate(self.template, lang).format(**args)


def say(value, lang: str) -> str:
    """`value` as words: a Text in `lang`, None as nothing, anything else by `str`."""
    if isinstance(value, Text):
        return value.render(lang)
    return "" if value is None else str(value)


def say_all(value, lang: str):
    """A copy of nested lists and dicts in which every Text has become a string."""
    if isinstance(value, Text):
        return value.render(lang)
    if isinstance(value, dict):
        return {key: say_all(item, lang) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [say_all(item, lang) for item in value]
    return value


def in_words(message: str, patterns) -> "Text | str":
    """A message of a module that knows no Texts as a Text; as it is where no pattern fits.

    patterns: pairs of a regular expression for the whole message, and a function of its groups.
    """
    for pattern, words in patterns:
        found = re.fullmatch(pattern, message, re.DOTALL)
        if found:
            return words(*found.groups())
    return message
