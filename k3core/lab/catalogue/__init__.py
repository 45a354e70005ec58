"""The Chinese catalogue: one module per tab, `common` and `prefix_text`, each a dict ZH from English template to Chinese."""

from functools import cache
from importlib import import_module

from k3core.lab.registry import HOME, TABS, WORKBENCHES


complete = True  # False once a reader edits the code: words of the edit stay as they are


def translate(template: str, lang: str) -> str:
    """The template in `lang`. Raises KeyError where the catalogue has no entry but should."""
    if lang == "en":
        return template
    return chinese()[template] if complete else chinese().get(template, template)


@cache
def chinese() -> dict:
    """All entries of all modules. Two modules may share an entry but not disagree about it."""
    entries = {}
    for name in ("common", "prefix_text", *TABS.values(), *WORKBENCHES.values(), *HOME.values()):
        for english, translation in import_module(f"k3core.lab.catalogue.{name}").ZH.items():
            if entries.setdefault(english, translation) != translation:
                raise ValueError(f"two translations of {english!r}: {entries[english]!r} and {translation!r}")
    return entries
