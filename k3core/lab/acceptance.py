"""Acceptance of drafts: what others published for Kimi K3, and the closed form of independent drafts."""

from dataclasses import dataclass

from k3core.lab import charts
from k3core.lab.contract import Column, Figure, Table
from k3core.lab.text import Text


@dataclass(frozen=True)
class Published:
    """A published mean: tokens per verify round, bonus included, of at most `most` (drafts + 1)."""

    draft: str
    task: str
    mean: float
    most: int
    source: str


_BLOCK5, _EAGLE = "Inferact/Kimi-K3-DSpark-Block5", "lightseekorg/kimi-k3-eagle3-mla"
PUBLISHED = (
    Published("K3-DSpark-Block5", "GSM8K", 4.581, 6, _BLOCK5),
    Published("K3-DSpark-Block5", "HumanEval", 4.187, 6, _BLOCK5),
    Published("K3-DSpark-Block5", "MT-Bench", 2.659, 6, _BLOCK5),
    Published("K3-DSpark-Block5", "AIME26", 2.489, 6, _BLOCK5),
    Published("kimi-k3-eagle3-mla", "GSM8K", 3.556, 4, _EAGLE),
    Published("kimi-k3-eagle3-mla", "AIME26", 2.208, 4, _EAGLE),
    Published("K3.1-Pro-DSpark-preview", "GSM8K", 4.597, 8, "Inferact/Kimi-K3.1-Pro-DSpark-preview"),
    Published("ATOM, 2 drafts", "GSM8K", 2.73, 3, "ROCm/ATOM #1899 (2.73 to 2.76)"),
)
# How often the first, second, ... of 7 drafts was accepted, those before it included: K3.1-Pro-DSpark-preview, GSM8K.
BY_POSITION = (0.86, 0.71, 0.59, 0.48, 0.39, 0.32, 0.26)


def mean_tokens(acceptance: float, drafts: int) -> float:
    """Mean tokens per round if every draft is right with probability p: 1 + p + p^2 + ... + p^drafts."""
    total = 1.0
    for _ in range(drafts):
        total = 1.0 + acceptance * total
    return total


def implied_acceptance(mean: float, drafts: int):
    """The p at which `mean_tokens` gives `mean`, by bisection; None without drafts."""
    if not drafts:
        return None
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if mean_tokens(middle, drafts) < mean else (low, middle)
    return (low + high) / 2


def table(mean: float, expected, drafts: int) -> Table:
    """This run, its closed form (None: there is none) and the published figures, one row each."""
    rows = [("length:run", Text("this run"), mean, drafts + 1, implied_acceptance(mean, drafts),
             Text("computed"), Text("{count} drafts per round", count=drafts))]
    if expected is not None:
        rows.append(("length:theory", Text("independent drafts, in theory"), expected, drafts + 1,
                     implied_acceptance(expected, drafts), Text("derived"), "1 + p + p² + … + pⁿ"))
    rows += [(f"length:{i}", f"{one.draft}, {one.task}", one.mean, one.most,
              implied_acceptance(one.mean, one.most - 1), Text("published"), one.source)
             for i, one in enumerate(PUBLISHED)]
    return Table((Column("id", Text("id")), Column("draft", Text("drafts of")),
                  Column("mean", Text("tokens per round"), "float", scale=1.0),
                  Column("most", Text("at most")),
                  Column("implied", Text("implied acceptance of one draft"), "float", scale=1.0),
                  Column("standing", Text("standing")), Column("source", Text("source"))),
                 rows, Text("Accepted length, bonus included"))


def positions_table(counts: list) -> Table:
    """Acceptance by position of this run, (accepted, drafted) counts, and the published one for K3.1's drafts."""
    rows = [(f"position:{i + 1}", i + 1, "run", accepted / drafted, accepted, drafted)
            for i, (accepted, drafted) in enumerate(counts) if drafted]
    rows += [(f"position:{i + 1}", i + 1, "published", share, None, None) for i, share in enumerate(BY_POSITION)]
    return Table((Column("id", Text("id")), Column("position", Text("draft")), Column("line", Text("standing")),
                  Column("share", Text("accepted"), "float", unit="share", scale=1.0),
                  Column("accepted", Text("accepted drafts")), Column("drafted", Text("drafts read"))),
                 rows)


def positions_figure() -> Figure:
    """Two falling lines."""
    x = charts.quantitative("position", Text("place of the draft in its round"), axis={"tickMinStep": 1, "format": "d"})
    y = charts.quantitative("share", Text("accepted with all before it"), axis={"format": "%", "tickCount": 5})
    y["scale"] = {"domain": [0, 1]}
    by = charts.series("line", {"run": ("accepted", [1, 0]), "published": ("muted", [4, 3])})
    return Figure("positions", "positions", Text("Acceptance by position: here and published"),
                  Text("Amber, solid: this run. Grey, dashed: K3.1-Pro-DSpark-preview on GSM8K, published. A draft "
                       "counts only where all before it in its round were right."),
                  charts.line_layer(x, y, by, ["position", "share", "accepted", "drafted"]))


def chart_table(lengths: Table) -> Table:
    """The rows of `table` for the chart; `standing` picks the colour."""
    kinds = {"length:run": "run", "length:theory": "theory"}
    rows = [(draft, kinds.get(mark, "published"), mean, most) for mark, draft, mean, most, *_ in lengths.rows]
    return Table((Column("draft", Text("drafts of")), Column("standing", Text("standing")),
                  Column("mean", Text("tokens per round"), "float", scale=1.0),
                  Column("most", Text("at most"))), rows)


def figure() -> Figure:
    """Bars of what was gained inside outlines of what was possible; each bears its name above, as names are long."""
    y = {"field": "draft", "type": "nominal", "sort": None, "axis": None}
    here = charts.colour("accepted")
    styles = {"run": here, "theory": here, "published": "var(--muted)"}
    colour = {"field": "standing", "type": "nominal", "legend": None,
              "scale": {"domain": list(styles), "range": list(styles.values())}}
    whole = {"tickMinStep": 1, "format": "d"}
    bar = {"type": "bar", "height": 10, "yOffset": 8}
    outline = bar | {"filled": False, "stroke": "var(--rule)", "strokeWidth": 1}
    name = {"type": "text", "align": "left", "dy": -6}
    return Figure("acceptance", "lengths", Text("Tokens per verify round: here and published"),
                  Text("Amber: computed here. Grey: published for Kimi K3, not measured here. The outline is "
                       "the most a round can give, drafts and bonus."),
                  {"layer": [
                      {"mark": outline,
                       "encoding": {"y": y, "x": charts.quantitative("most", Text("tokens per round"), axis=whole)}},
                      {"mark": bar,
                       "encoding": {"y": y, "x": charts.quantitative("mean", None), "color": colour}},
                      {"mark": name,
                       "encoding": {"y": y, "x": {"datum": 0, "type": "quantitative"}, "text": {"field": "draft"}}},
                  ],
                   "height": 330})
