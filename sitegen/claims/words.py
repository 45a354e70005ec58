"""What is said about the claims, and how their page lays it out."""

import tomllib
from functools import cache
from pathlib import Path

from k3core.lab.registry import experiment
from sitegen import glossary
from sitegen.claims import CLAIMS
from sitegen.claims.evidence import VERDICTS, Claim, Figure, Run, Runs

FILE = Path(__file__).parent.parent / "content" / "claims.toml"
PAGE = "claims.html"


@cache
def words() -> dict:
    """content/claims.toml: id of a claim -> its words in both languages."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def page(runs: Runs, places: dict, lang: str) -> dict:
    """What claims.html needs: groups of claims, and for each verdict the claims that have it. `places` says where the
    page of a slug lies and what it is called."""
    cards = [card(claim, runs, places, lang) for claim in CLAIMS]
    groups = {}
    for item in cards:
        groups.setdefault(item["group"], []).append(item)
    return {"groups": groups, "tally": {verdict: [item for item in cards if item["verdict"] == verdict]
                                        for verdict in VERDICTS}}


def card(claim: Claim, runs: Runs, places: dict, lang: str) -> dict:
    """One claim as the page shows it. `why` is empty where the figures no longer lead to the verdict it explains."""
    said, numbers = words()[claim.id], runs.numbers(claim)
    shown = {figure.key: runs.shown(figure, lang) for figure in claim.figures}
    verdict, seen = claim.decide(numbers), set()
    fields = {key: figure["text"] for key, figure in shown.items()} | claim.derive(numbers)
    why = said["why"][lang].format(**fields) if verdict == said["verdict"] else ""
    return {"id": claim.id, "group": claim.group, "short": said["short"][lang], "verdict": verdict,
            "claim": list(glossary.pieces(said["claim"][lang], lang, seen=seen)),
            "why": list(glossary.pieces(why, lang, seen=seen)),
            "evidence": [evidence(figures, said, shown, places, lang) for figures in by_run(claim, said).values()]}


def by_run(claim: Claim, said: dict) -> dict:
    """The figures that have a label, together where they come from the same place."""
    found = {}
    for figure in claim.figures:
        if figure.key in said.get("figures", {}):
            found.setdefault(figure.run or figure.source, []).append(figure)
    return found


def evidence(figures: list, said: dict, shown: dict, places: dict, lang: str) -> dict:
    """Figures from one place, with the link that opens it and its settings in words."""
    first: Figure = figures[0]
    numbers = [{"key": figure.key, "label": said["figures"][figure.key][lang], **shown[figure.key]}
               for figure in figures]
    if first.run is None:
        return {"source": first.source, "numbers": numbers}
    place = places[first.run.slug]
    return {"source": "", "tab": place["name"], "number": place["tab"], "settings": settings(first.run, lang),
            "numbers": numbers, "link": f"{place['path']}#{first.run.fragment}" if first.run.fragment else place["path"]}


def settings(where: Run, lang: str) -> list:
    """The settings of a run as the tab's controls call them: (label, value)."""
    params = {param["name"]: param for param in experiment(where.slug).to_json(lang)["params"]}
    return [(params[name]["label"], value_in_words(params[name], value)) for name, value in where.settings]


def value_in_words(param: dict, value) -> str:
    """The value of a setting as its control shows it; `param` is what `Param.to_json` gives."""
    if param["kind"] == "choice":
        return next(choice["label"] for choice in param["choices"] if choice["value"] == value)
    if param["kind"] == "bool":
        return "✓" if value else "✗"
    if param["kind"] == "list":
        return ", ".join(map(str, value))
    text = f"{value:,}" if param["kind"] == "int" else f"{value:g}" if param["kind"] == "float" else str(value)
    return f"{text}\N{NO-BREAK SPACE}{param['unit']}".strip()
