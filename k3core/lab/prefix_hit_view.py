"""The scene and charts of the tab `prefix-hit`: three strips, checkpoints below them, and a race of two bars."""

from functools import partial

from k3core.fleet.latency import ttft
from k3core.lab import charts, prefix_strips, prefix_text_view
from k3core.lab import drawing as d
from k3core.lab.contract import Figure, Picture, Result, Scene
from k3core.lab.display import number
from k3core.lab.prefix_requests import GROUPS
from k3core.lab.text import Text

RACE = 4  # frames of the race
STAIRS = {"counted": 12_288, "text": 384}  # 24 hash blocks
GROUP_VALUES = ("1", "2", "3")
_LENGTH_STYLES = {2_000: ("mla", [1, 0]), 8_000: ("state", [6, 3]), 32_000: ("hit", [3, 3]),
                  128_000: ("miss", [8, 3, 2, 3]), 1_000_000: ("ordinary", [2, 2])}


def story(p, served: list, lost: int) -> tuple:
    """(log, captions, poster): the lookup of turn 2 question by question, the race, and turn 3 in one go."""
    second = served[1]
    rows = prefix_text_view.log_rows(served) if p.source == "text" else [{"tokens": turn.tokens} for turn in served]
    log = {"rows": rows, "source": p.source,
           "hash_block": p.hash_block, "page": p.page * p.hash_block, "grain": p.grain * p.hash_block,
           "grain_param": "grain", "grain_unit": p.hash_block, "shared": p.shared,
           "click": ("lost", GROUP_VALUES if p.lost == "none" else ("none",) * GROUPS),
           "cold": 1000 * ttft(second.tokens), "warm": 1000 * ttft(second.tokens, second.hit.tokens), "frames": []}
    first_points = _first_points(p, served[0].saves, lost)
    told = _Told(log, served, first_points)
    told.first(lost, p)
    told.lookup()
    if p.source == "text":
        told.spoken(1)
    else:
        told.race()
    poster = len(told.captions) - 1
    told.rest()
    return log, told.captions, poster


def _first_points(p, saves: tuple, lost: int) -> list:
    """Checkpoints of turn 1: those of the evicted position are gone in one group, or with rule 3 in all."""
    gone = range(GROUPS) if p.all_groups else (int(p.lost) - 1,) if lost else ()
    return [(end, group, "rejected" if end == lost and group in gone else "state")
            for end in saves for group in range(GROUPS)]


class _Told:
    """Frames and captions, added one after another."""

    def __init__(self, log: dict, served: list, first_points: list):
        self.log, self.served, self.points, self.captions = log, served, first_points, []
        self.ghosts = [[(0, turn.tokens, "ghost")] for turn in served]

    def add(self, caption: Text, now: int, segments: list, points: list, line: int = 0, race: float | None = None):
        """One frame: rows before `now` are over, `segments` and `points` are those of row `now`."""
        rows = []
        for index in range(len(self.served)):
            if index == now:
                rows.append({"segments": segments, "points": points})
            elif index < now:
                older = self.points if index == 0 else prefix_strips.stored(self.served[index].saves)
                rows.append({"segments": prefix_strips.findable(self.log, index), "points": older})
            else:
                rows.append({"segments": self.ghosts[index], "points": []})
        self.log["frames"].append({"rows": rows, "now": now, "line": line, "race": race})
        self.captions.append(caption)

    def first(self, lost: int, p):
        turn = self.served[0]
        self.add(Text("Turn 1 finds nothing and computes all {tokens} tokens. It leaves its rows under {blocks} "
                      "chained hashes, and {states} states: one per KDA group at {places}.", tokens=number(turn.tokens),
                      blocks=number(turn.tokens // p.hash_block), states=GROUPS * len(turn.saves),
                      places=prefix_strips.places(turn.saves)),
                 0, [(0, turn.tokens, "miss")],
                 prefix_strips.stored([end for end in turn.saves if end <= turn.tokens]))
        if p.source == "text":
            self.spoken(0)
        if lost and p.all_groups:
            self.add(Text("The checkpoint at {end} is evicted in KDA group {group}. A boundary with a state missing is "
                          "no boundary: the other groups give theirs up at once.", end=number(lost), group=p.lost),
                     1, self.ghosts[1], [])
        elif lost:
            self.add(Text("The checkpoint at {end} is evicted in KDA group {group}, but the entries of the other "
                          "groups stay, and the index still names all three.", end=number(lost), group=p.lost),
                     1, self.ghosts[1], [])
        if lost and p.source == "text":
            self.add(Text("Another request takes the block and leaves its own state in it."), 1, self.ghosts[1], [])

    def spoken(self, index: int):
        """The model's answer, beside what it writes without a cache."""
        turn = self.served[index]
        self.add(prefix_text_view.spoken(turn, Text("Turn {n}", n=index + 1)), index,
                 [*prefix_strips.taken(turn), (turn.hit.tokens, turn.tokens, "miss"), *prefix_text_view.written(turn)],
                 (self.resumed() if index == 1 else prefix_strips.resumed(turn)) + prefix_strips.stored(turn.saves),
                 turn.hit.tokens, self.log["warm"])

    def resumed(self) -> list:
        """The states that turn 2 resumes from; where the hit is wrong, only one group's is."""
        gone = [group for _, group, style in self.points if style == "rejected"]
        return prefix_strips.resumed(self.served[1], gone)

    def lookup(self):
        turn = self.served[1]
        for stage, end, found, lit in prefix_strips.matched(turn.asked):
            self.add(_asked(stage, end, found, self.log), 1,
                     [(0, lit, "hit"), (lit, turn.tokens, "ghost")], [], end)
        hit, rows = turn.hit.tokens, turn.hit.rows
        tried = [end for stage, end, found in turn.asked if stage == "checkpoint" and not found]
        after = [*prefix_strips.taken(turn), (hit, rows, "padding"), (rows, turn.tokens, "ghost")]
        if tried:
            self.add(Text("From there backwards on the grid: {count} boundaries have rows but no state in all {groups} "
                          "groups, the first of them {end}.", count=len(tried), groups=GROUPS, end=number(tried[0])),
                     1, [(0, rows, "padding"), (rows, turn.tokens, "ghost")],
                     prefix_strips.stored(tried[:1], "rejected"), tried[0])
        if hit:
            words = Text("At {hit} every KDA group has a state. Turn 2 copies them into its own blocks, the cached "
                         "ones stay as they are, and goes on behind token {hit}.", hit=number(hit))
            if turn.wrong:
                words = Text("At {hit} the hit is taken although one group has no state there. Turn 2 goes on from "
                             "memory that holds something else, and nobody notices.", hit=number(hit))
            self.add(words, 1, after, self.resumed(), hit)
        else:
            self.add(Text("No boundary has both rows and states: nothing can be taken, turn 2 computes everything."),
                     1, after, [])

    def race(self):
        turn, warm, cold = self.served[1], self.log["warm"], self.log["cold"]
        hit, own = turn.hit.tokens, prefix_strips.stored(turn.saves)
        points = self.resumed()
        for step in range(1, RACE + 1):
            now = warm * step / RACE
            done = hit + (turn.tokens - hit) * step // RACE
            words = Text("{now} ms. Behind the hit {done} of {all} tokens are computed; without the cache the prefill "
                         "would stand at {share} %.", now=number(now, 3), done=number(done - hit),
                         all=number(turn.tokens - hit), share=number(100 * now / cold, 3))
            if not hit:
                words = Text("{now} ms. Nothing was taken, so both prefills stand at {share} %.", now=number(now, 3),
                             share=number(100 * now / cold, 3))
            if step == RACE:
                words = Text("First token after {warm} ms instead of {cold} ms: {saved} % less. Turn 2 has written its "
                             "own checkpoint at {places}.", warm=number(warm), cold=number(cold),
                             saved=number(100 * (1 - warm / cold), 3), places=prefix_strips.places(turn.saves))
            self.add(words, 1, [*prefix_strips.taken(turn), (hit, done, "miss"), (done, turn.tokens, "ghost")],
                     points + (own if step == RACE else []), hit, now)

    def rest(self):
        turn = self.served[2]
        hit = turn.hit.tokens
        self.add(Text("Turn 3 repeats all of turn 2. It resumes at {hit} and computes {rest} of {tokens} tokens.",
                      hit=number(hit), rest=number(turn.tokens - hit), tokens=number(turn.tokens)), 2,
                 [*prefix_strips.taken(turn), (hit, turn.tokens, "miss")],
                 prefix_strips.resumed(turn) + prefix_strips.stored(turn.saves), hit,
                 self.log["warm"])
        if self.log["source"] == "text":
            self.spoken(2)


def _asked(stage: str, end: int, found: bool, log: dict) -> Text:
    """The caption of one question about rows."""
    start = number((end - 1) // log["page"] * log["page"])
    if stage == "page" and found:
        return Text("Whole page up to {end}: the hash of its last block is known. It stands for every token before, so "
                    "all blocks up to there light up.", end=number(end))
    if stage == "page":
        return Text("Whole page up to {end}: unknown. The first stage ends; now inside this page, from the right.",
                    end=number(end))
    if found:
        return Text("Inside the page from {start}, end {end}: known. The hash chains back to the first token, so "
                    "everything before it matches too.", start=start, end=number(end))
    return Text("Inside the page from {start}, end {end}: unknown, so some token before it differs or was "
                "never cached.",
                start=start, end=number(end))


def draw_turns(result: Result, scene: Scene, frame: int, lang: str, narrow: bool) -> Picture:
    """The three strips with their grips, the grid, and the race."""
    log, shown = scene.events, scene.events["frames"][frame]
    heading = partial(_heading, log)
    if log["source"] == "text":
        return prefix_text_view.picture(log, shown, heading, scene.captions[frame], narrow, lang)
    width, _ = prefix_strips.scale_of(log, narrow)
    parts, bottom = prefix_strips.rows(log, shown, heading, narrow, lang)
    grid, bottom = prefix_strips.grain_grip(log, narrow, lang, bottom)
    race, bottom = _race(log, shown["race"], bottom + 14, width, lang)
    grips = prefix_strips.shared_grip(log, narrow, lang)
    label = scene.captions[frame].render(lang)
    return Picture(d.svg(width, bottom, [*parts, *grid, *race, *grips], label), prefix_strips.legend(shown))


def _heading(log: dict, index: int) -> Text:
    row = log["rows"][index]
    if log["source"] == "text":
        return Text("turn {n}, {tokens} tokens and an answer of {more}", n=index + 1, tokens=number(row["prompt"]),
                    more=row["tokens"] - row["prompt"])
    return Text("turn {n}, {tokens} tokens", n=index + 1, tokens=number(row["tokens"]))


def _race(log: dict, now: float | None, top: float, width: float, lang: str) -> tuple:
    """Time to first token with and without the hit, as two bars on one scale."""
    parts = [d.text(prefix_strips.MARGIN, top + 10, Text("time to first token of turn 2").render(lang), "label strong")]
    long = width - 2 * prefix_strips.MARGIN
    lanes = ((Text("with the hit"), log["warm"], "hit"), (Text("without"), log["cold"], "miss"))
    for index, (name, total, style) in enumerate(lanes):
        y = top + 20 + index * 42
        done = min(total, now or 0.0)
        parts.append(d.rect(prefix_strips.MARGIN, y, long * total / log["cold"], 18, "ghost", f"race:{style}"))
        parts.append(d.rect(prefix_strips.MARGIN, y, long * done / log["cold"], 18, style, f"race:{style}"))
        words = Text("{name}: {done} of {total} ms", name=name, done=number(done, 3), total=number(total, 3))
        parts.append(d.text(prefix_strips.MARGIN, y + 32, words.render(lang), "label small"))
    return parts, top + 20 + 2 * 42


def saving_figure(share: float) -> Figure:
    """Saving against hit share: a line for each prompt length, bent by attention where prompts are long."""
    x = charts.quantitative("share", Text("hit, % of the prompt"), axis={"grid": False})
    y = charts.quantitative("saved", Text("time saved, %"))
    # All lines start at 0 and end near 100: named at a point each where they lie apart.
    labels = [(60, 60, Text("2,000 to 32,000 tokens"), "mla"), (96, 48, Text("1,000,000 tokens"), "ordinary")]
    limit = {"mark": {"type": "rule", "strokeDash": [3, 3]},
             "encoding": {"y": {"datum": 40, "type": "quantitative"}, "color": {"value": "var(--ink)"}}}
    return Figure("saving", "saving", Text("Time saved against the share that hits"),
                  Text("Short prompts save what they hit: 40 % from 40 %. In very long ones the tokens at the end cost "
                       "most, and those are computed: a million tokens need a hit of 59 %."),
                  {"layer": [charts.line_layer(x, y, charts.series("prompt", _LENGTH_STYLES),
                                               ["prompt", "share", "saved"]),
                             limit, charts.rule_layer(100 * share), charts.label_layer("share", "saved", labels)]})


def stairs_figure(p) -> Figure:
    """Where a shared prefix resumes, on the grid of checkpoints and on that of pages."""
    grain, page = p.grain * p.hash_block, p.page * p.hash_block
    styles = {"grain": ("hit", [1, 0]), "page": ("mla", [6, 3])}
    named = [("grain", grain, STAIRS[p.source] * 2 // 3, Text("checkpoint grid"))]
    if page != grain:
        named.append(("page", page, STAIRS[p.source] - 1, Text("pages only")))
    labels = [(at, at // size * size, words, styles[name][0]) for name, size, at, words in named]
    x, y = charts.quantitative("shared", Text("tokens shared")), charts.quantitative("hit", Text("resumed at"))
    layer = charts.line_layer(x, y, charts.series("by", styles), ["shared", "hit"])
    layer["mark"] |= {"interpolate": "step-after", "point": False}
    most = STAIRS[p.source]
    return Figure("stairs", "stairs", Text("Where a shared prefix resumes"),
                  Text("At the last boundary of the grid, if it holds a checkpoint; up to one grid step is computed "
                       "again. Whole pages alone would lose up to a page."),
                  {"layer": [layer, charts.rule_layer(min(p.shared, most)),
                             charts.label_layer("shared", "hit", labels)]})
