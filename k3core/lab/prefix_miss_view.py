"""The scene and charts of the tab `prefix-miss`: three requests, the second of which finds nothing."""

from functools import partial

from k3core.lab import charts, prefix_strips, prefix_text_view
from k3core.lab import drawing as d
from k3core.lab.contract import Figure, Picture, Result, Scene
from k3core.lab.display import number, percent
from k3core.lab.prefix_requests import GROUPS
from k3core.lab.text import Text

NOTES = {"salt": (Text("salt a"), Text("salt b"), Text("salt b")),
         "adapter": (Text("base model"), Text("adapter 1"), Text("adapter 1"))}


def story(p, page_blocks: int, served: list, lost: int) -> tuple:
    """(log, captions): request 1, what happens then, the lookup and prefill of request 2, request 3."""
    rows = prefix_text_view.log_rows(served) if p.source == "text" else [{"tokens": turn.tokens} for turn in served]
    log = {"rows": rows, "source": p.source, "hash_block": p.grain, "page": page_blocks * p.grain,
           "grain": p.grain, "grain_param": "grain", "grain_unit": 1, "shared": p.shared, "cause": p.cause,
           "click": None, "frames": []}
    told = _Told(p, log, served, lost)
    told.first()
    told.lookup()
    told.prefill()
    told.spoken(1)
    told.third()
    told.spoken(2)
    return log, told.captions


class _Told:
    """Frames and captions, added one after another."""

    def __init__(self, p, log: dict, served: list, lost: int):
        self.p, self.log, self.served, self.lost, self.captions = p, log, served, lost, []

    def add(self, caption: Text, now: int, segments: list, points: list, line: int = 0):
        """One frame: earlier rows are over, later ones still outlines."""
        rows = []
        for index, turn in enumerate(self.served):
            if index == now:
                rows.append({"segments": segments, "points": points})
            elif index > now:
                rows.append({"segments": [(0, turn.tokens, "ghost")], "points": []})
            else:
                rows.append({"segments": self._over(index), "points": self._left(index)})
        self.log["frames"].append({"rows": rows, "now": now, "line": line})
        self.captions.append(caption)

    def _over(self, index: int) -> list:
        turn = self.served[index]
        if index == 0:
            return prefix_strips.findable(self.log, 0)
        answer = prefix_text_view.written(turn) if self.p.source == "text" else []
        return [*prefix_strips.taken(turn), (turn.hit.tokens, turn.tokens, "miss"), *answer]

    def _left(self, index: int) -> list:
        return [(end, group, "rejected" if index == 0 and end == self.lost else "state")
                for end in self.served[index].saves for group in range(GROUPS)]

    def first(self):
        turn = self.served[0]
        self.add(Text("Request 1 computes {tokens} tokens and leaves {blocks} full blocks of rows and "
                      "checkpoints at {places}.",
                      tokens=number(turn.tokens), blocks=number(turn.tokens // self.p.grain),
                      places=prefix_strips.places(turn.saves)),
                 0, [(0, turn.tokens, "miss")], prefix_strips.stored(turn.saves))
        self.spoken(0)
        if self.lost:
            self.add(Text("Memory runs short: the checkpoint at {end} is evicted in all KDA groups, the "
                          "pages of rows stay.",
                          end=number(self.lost)), 1, [(0, self.served[1].tokens, "ghost")], [])

    def spoken(self, index: int):
        """Of a real text: the model's answer, beside what it writes without a cache."""
        turn = self.served[index]
        if self.p.source == "text":
            self.add(prefix_text_view.spoken(turn, Text("Request {n}", n=index + 1)), index,
                     [*prefix_strips.taken(turn), (turn.hit.tokens, turn.tokens, "miss"),
                      *prefix_text_view.written(turn)],
                     prefix_strips.resumed(turn) + prefix_strips.stored(turn.saves), turn.hit.tokens)

    def lookup(self):
        turn, why = self.served[1], _why(self.p)
        questions = prefix_strips.matched(turn.asked)
        for stage, end, found, lit in questions:
            words = Text("{question} {why}", question=_asked(stage, end, found), why=why) if (stage, end) == (
                questions[0][:2]) else _asked(stage, end, found)
            self.add(words, 1, [(0, lit, "hit"), (lit, turn.tokens, "ghost")], [], end)
        hit, rows = turn.hit.tokens, turn.hit.rows
        missing = prefix_strips.stored([rows], "rejected") if rows and not hit else []
        self.add(self._verdict(turn), 1,
                 [*prefix_strips.taken(turn), (hit, rows, "padding"), (rows, turn.tokens, "ghost")],
                 prefix_strips.resumed(turn) + missing, hit or rows)

    def _verdict(self, turn) -> Text:
        hit, rows = number(turn.hit.tokens), number(turn.hit.rows)
        if turn.wrong:
            return Text("A hit of {hit} tokens, of which {wrong} were computed for another prefix. No error is raised.",
                        hit=hit, wrong=number(turn.wrong))
        if turn.hit.tokens:
            return Text("A hit of {hit} tokens, {share} of the prompt.", hit=hit,
                        share=percent(turn.hit.tokens / turn.tokens, 3))
        if turn.hit.rows:
            return Text("Rows are there up to {rows}, but no KDA group has a state at or before it. Rows without a "
                        "state are worth nothing: the hit is 0.", rows=rows)
        if turn.tokens <= self.p.grain:
            return Text("The prompt has {tokens} tokens, a block {grain}, and the last token is always computed: there "
                        "is nothing to ask for.", tokens=number(turn.tokens), grain=number(self.p.grain))
        return Text("Not one block of the prefix is known: the hit is 0.")

    def prefill(self):
        turn = self.served[1]
        hit = turn.hit.tokens
        saves = [save for save in turn.saves if save <= turn.tokens]  # others are inside the answer
        for end in sorted({*saves[-3:], turn.tokens}):
            written = [save for save in saves if save <= end]
            if end in saves and turn.hit.rows == end > hit:
                words = Text("Prefill stops at {end}, where request 2 leaves what others had computed before: such a "
                             "place will be met again, so a checkpoint is written.", end=number(end))
            elif end in saves:
                words = Text("Prefill stops at {end}, the policy's boundary, and a checkpoint is written in every KDA "
                             "group.", end=number(end))
            else:
                words = Text("{computed} tokens computed. Request 2 leaves its rows, and checkpoints at {places}.",
                             computed=number(turn.tokens - hit), places=prefix_strips.places(saves))
            self.add(words, 1, [*prefix_strips.taken(turn), (hit, end, "miss"), (end, turn.tokens, "ghost")],
                     prefix_strips.resumed(turn) + prefix_strips.stored(written), end if end in saves else 0)

    def third(self):
        turn = self.served[2]
        hit = turn.hit.tokens
        words = Text("Request 3 resumes at {hit} and computes {rest} of {tokens} tokens.", hit=number(hit),
                     rest=number(turn.tokens - hit), tokens=number(turn.tokens))
        if not hit:
            words = Text("Request 3 finds no boundary either and computes all {tokens} tokens again.",
                         tokens=number(turn.tokens))
        self.add(words, 2, [*prefix_strips.taken(turn), (hit, turn.tokens, "miss")],
                 prefix_strips.resumed(turn) + prefix_strips.stored(turn.saves), hit)


def _why(p) -> Text:
    """What makes request 2 another one."""
    return {
        "own": Text("From token {shared} on request 2 goes its own way.", shared=number(p.shared)),
        "token": Text("Only token {shared} differs, but every key behind it has it in its chain.",
                      shared=number(p.shared)),
        "salt": Text("The tokens are the same, but the salt is hashed into the root and so into every key."),
        "adapter": Text("The tokens are the same, but another adapter computes other rows and states; its "
                        "name is in every key."),
        "evicted": Text("The tokens are the same; what is left of request 1 decides."),
        "none": Text("Request 2 is request 1 once more."),
    }[p.cause]


def _asked(stage: str, end: int, found: bool) -> Text:
    """The caption of one question about rows."""
    if stage == "page":
        return (Text("Whole page up to {end}: found.", end=number(end)) if found
                else Text("Whole page up to {end}: not found; now inside it, from the right.", end=number(end)))
    return (Text("Block that ends at {end}: found.", end=number(end)) if found
            else Text("Block that ends at {end}: not found.", end=number(end)))


def draw_requests(result: Result, scene: Scene, frame: int, lang: str, narrow: bool) -> Picture:
    """The three strips, the grid with its grip, and where the prompts part."""
    log, shown = scene.events, scene.events["frames"][frame]
    heading = partial(_heading, log)
    if log["source"] == "text":
        return prefix_text_view.picture(log, shown, heading, scene.captions[frame], narrow, lang)
    width, _ = prefix_strips.scale_of(log, narrow)
    parts, bottom = prefix_strips.rows(log, shown, heading, narrow, lang)
    grid, bottom = prefix_strips.grain_grip(log, narrow, lang, bottom)
    grips = prefix_strips.shared_grip(log, narrow, lang) if log["cause"] in ("own", "token") else []
    label = scene.captions[frame].render(lang)
    return Picture(d.svg(width, bottom, [*parts, *grid, *grips], label), prefix_strips.legend(shown))


def _heading(log: dict, index: int) -> Text:
    row = log["rows"][index]
    tokens = number(row.get("prompt", row["tokens"]))
    if log["cause"] in NOTES:
        return Text("request {n}, {tokens} tokens, {note}", n=index + 1, tokens=tokens, note=NOTES[log["cause"]][index])
    return Text("request {n}, {tokens} tokens", n=index + 1, tokens=tokens)


def saw_figure(p) -> Figure:
    """Share of a repeated prompt that hits, by its length."""
    x = charts.quantitative("prompt", Text("tokens of the prompt"))
    y = charts.quantitative("hit", Text("hit, % of the prompt"))
    layer = charts.line_layer(x, y, charts.series("what", {"repeat": ("hit", [1, 0])}), ["prompt", "hit"])
    layer["mark"]["point"] = False
    return Figure("saw", "saw", Text("The same prompt twice"),
                  Text("Below one block nothing hits; then the share falls from nearly all to half and jumps up again "
                       "at every block."),
                  {"layer": [layer, *([charts.rule_layer(p.prompt)] if p.prompt <= 4 * p.grain else [])]})


def shared_figure(p) -> Figure:
    """Where request 3 resumes, by the length of what it shares with the others."""
    x = charts.quantitative("shared", Text("tokens shared"))
    y = charts.quantitative("hit", Text("request 3 resumes at"))
    styles = {"marconi": ("hit", [1, 0]), "align": ("miss", [6, 3])}
    middle = p.prompt // 2
    named = middle if middle >= p.grain else p.prompt  # where the two lines are apart, if anywhere
    labels = [(named, named // p.grain * p.grain, Text("Marconi"), "hit"), (middle, 0, Text("align"), "miss")]
    layer = charts.line_layer(x, y, charts.series("policy", styles), ["shared", "policy", "hit"])
    layer["mark"] |= {"point": False, "interpolate": "step-after"}
    return Figure("shares", "shares", Text("Only the beginning is shared"),
                  Text("With a checkpoint at the last boundary only, everything short of that boundary is lost. A "
                       "checkpoint where prompts part follows the shared length in steps of the grid."),
                  {"layer": [layer, charts.rule_layer(min(p.shared, p.prompt)),
                             charts.label_layer("shared", "hit", labels)]})
