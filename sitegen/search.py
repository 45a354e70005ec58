"""What the search finds: tabs, parameters, situations, field reports, terms and claims, one index per language."""

from k3core.lab.contract import Experiment
from sitegen import content, glossary, words
from sitegen.claims import words as claims

# Kind -> what the page calls it, in the order in which equally good finds are listed.
KINDS = {"tab": "Tab", "param": "Control", "preset": "Situation", "term": "Term", "claim": "Claim",
         "report": "Field report"}


def index(experiments: list, lang: str, path_of) -> dict:
    """{"kinds": [name of each], "places": [tab names], "entries": [[kind, title, text, also, address, place], ...]}.

    also: other names, one a line. kind and place are numbers into the lists, place -1 where there is none; addresses
    are relative to the language's root. path_of(experiment) is where its page lies.
    """
    kinds, places, entries = list(KINDS), [], []

    def add(kind: str, title: str, text: str, address: str, also: str = "", place: int = -1) -> None:
        entries.append([kinds.index(kind), title, text, also, address, place])

    for number, experiment in enumerate(experiments):
        data, path = experiment.to_json(lang), path_of(experiment)
        places.append(data["name"])
        names = (data["name"], data["slug"], str(data["tab"] or ""))
        add("tab", data["title"], data["question"], path, "\n".join(names))
        for param in data["params"]:
            choices = " · ".join(choice["label"] for choice in param["choices"])
            text = " ".join(filter(None, (param["help"], choices)))
            add("param", param["label"], text, f"{path}#param.{param['name']}", param["name"], number)
        for preset in data["presets"]:
            add("preset", preset["title"], preset["expect"], f"{path}#preset={preset['name']}", preset["name"], number)
        for anchor, title, text in _reports(experiment, lang):
            add("report", title, text, f"{path}#{anchor}", place=number)
    for term in glossary.entries(lang):
        add("term", term["title"], term["text"], f"{glossary.PAGE}#{term['anchor']}", "\n".join(term["also"]))
    for id, said in claims.words().items():
        add("claim", said["short"][lang], said["claim"][lang], f"{claims.PAGE}#{id}")
    return {"kinds": [words.translate(name, lang) for name in KINDS.values()], "places": places, "entries": entries}


def _reports(experiment: Experiment, lang: str) -> list:
    """(anchor, source in bold or "", what was seen) of each field report of a page."""
    return [] if experiment.family == "home" else content.reports(lang, experiment.slug)
