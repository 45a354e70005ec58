"""The scene of the tab `minimal-disruption`: sessions moving between clusters, and five schemes."""

import numpy as np

from k3core.lab import drawing as d
from k3core.lab.contract import Picture, Result, Scene
from k3core.lab.display import number, percent
from k3core.lab.fleet_nodes import LETTERS, bring_up, take_down
from k3core.lab.text import Text

STEPS = 4  # frames in which sessions move, after one frame before the change and one that marks them
FRAMES = STEPS + 2
DRAWN, DRAWN_NARROW = 360, 180
NAMES = {"ring": "ring", "rendezvous": "HRW", "maglev": "Maglev", "jump": "jump", "modulo": "mod n"}
STACKS = 150  # height of the sessions' part
BARS = 62  # height of the tokens' part


def events(p, before: str, after: str, old, new, tokens, change, changes: dict) -> dict:
    """The log: the sessions that are drawn, and per frame the tokens that each cluster has prefilled."""
    letters = before + "".join(letter for letter in after if letter not in before)
    place = np.array([letters.index(letter) for letter in after], dtype=np.int64)
    fate = np.where(change.needless, 2, np.where(change.moved, 1, 0))
    done = [len(old) * max(0, frame - 1) // STEPS for frame in range(FRAMES)]
    frames = []
    for upto in done:
        sums = np.zeros(len(letters), dtype=np.int64)
        here = change.moved[:upto]
        np.add.at(sums, place[new[:upto][here]], tokens[:upto][here])
        frames.append(sums.tolist())
    return {
        "letters": letters,
        "before": before,
        "after": after,
        "scheme": p.scheme,
        "sessions": list(zip(old[:DRAWN].tolist(), place[new[:DRAWN]].tolist(), fate[:DRAWN].tolist())),
        "tokens": frames,
        "moved_by": [int(change.moved[:upto].sum()) for upto in done],
        "total": len(old),
        "moved": int(change.moved.sum()),
        "needless": int(change.needless.sum()),
        "mean": int(tokens.sum()) // len(old),
        "schemes": {name: _scheme_row(c, letters, after) for name, c in changes.items()},
    }


def _scheme_row(change, letters: str, after: str) -> dict:
    return {
        "moved": change.moved_fraction,
        "needless": change.moved_between_survivors,
        "ideal": change.ideal_fraction,
        "tokens": [int(change.reprefill[after.index(x)]) if x in after else None for x in letters],
    }


def event_words(log: dict) -> Text:
    """What happened to the clusters."""
    gone = ", ".join(x for x in log["before"] if x not in log["after"])
    added = ", ".join(x for x in log["after"] if x not in log["before"])
    if gone and added:
        return Text("Dead: {gone}. New: {added}.", gone=gone, added=added)
    if gone:
        return Text("Dead: {gone}.", gone=gone)
    return Text("New: {added}.", added=added) if added else Text("No cluster comes or goes.")


def captions(log: dict) -> list:
    """One sentence or two per frame."""
    said = [
        Text(
            "{sessions} sessions on {clusters} clusters. Each has left a prefix of {tokens} tokens on "
            "average where it was served.",
            sessions=number(log["total"]),
            clusters=len(log["before"]),
            tokens=number(log["mean"]),
        ),
        Text(
            "{event} {moved} sessions, {share}, no longer hash to where their prefix is; {needless} of "
            "them leave a cluster that stays for another that was there all along.",
            event=event_words(log),
            moved=number(log["moved"]),
            share=percent(log["moved"] / log["total"], 3),
            needless=number(log["needless"]),
        ),
    ]
    for frame in range(2, FRAMES):
        tokens = log["tokens"][frame]
        total, most = sum(tokens), max(range(len(tokens)), key=lambda i: (tokens[i], -i))
        if not total:
            said.append(Text("No session has moved; nothing is prefilled again."))
            continue
        said.append(
            Text(
                "{count} of {moved} sessions have come back and found no prefix: {tokens} million "
                "tokens prefilled again, {share} of them by {cluster}.",
                count=number(log["moved_by"][frame]),
                moved=number(log["moved"]),
                tokens=number(total / 1e6, 3),
                share=percent(tokens[most] / total, 3),
                cluster=log["letters"][most],
            )
        )
    return said


def draw_move(result: Result, scene: Scene, frame: int, lang: str, narrow: bool) -> Picture:
    """Clusters as stacks of sessions, below them the tokens prefilled again, then the five schemes."""
    log, width = scene.events, 340 if narrow else 720
    unused = next((letter for letter in LETTERS if letter not in log["letters"]), None)
    columns = len(log["letters"]) + (unused is not None)
    column = width / columns
    parts = _stacks(log, frame, column, narrow)
    for index, letter in enumerate(log["letters"]):
        parts += _cluster(log, letter, index * column, column, frame)
    if unused:
        parts.append(_bring_up(log, unused, (columns - 1) * column, column))
    parts += _tokens(log, frame, column, lang)
    rows, bottom = _schemes(log, STACKS + BARS + 84, width, lang)
    return Picture(
        d.svg(width, bottom, [*parts, *rows], scene.captions[frame].render(lang)), _legend(log, frame)
    )


def _stacks(log: dict, frame: int, column: float, narrow: bool) -> list:
    """A square per session: those that stay at the bottom, movers above them where they are by now."""
    sessions = log["sessions"][: DRAWN_NARROW if narrow else DRAWN]
    arrived = len(sessions) * max(0, frame - 1) // STEPS
    now = [new if index < arrived and fate else old for index, (old, new, fate) in enumerate(sessions)]
    order = sorted(range(len(sessions)), key=lambda i: (sessions[i][2] > 0, i))
    side = _square(log, sessions, column)
    wide = max(1, int((column - 6) // side))
    filled, parts = {}, []
    for index in order:
        place = now[index]
        slot = filled[place] = filled.get(place, -1) + 1
        x, y = place * column + slot % wide * side, STACKS - (slot // wide + 1) * side
        style = "ordinary soft" if not frame else ("ordinary soft", "miss soft", "miss")[sessions[index][2]]
        parts.append(d.rect(x, y, side - 1, side - 1, style, f"session:{index}"))
    return parts


def _square(log: dict, sessions: list, column: float) -> float:
    """The largest square with which the fullest stack, before or after, still fits the height."""
    tallest = max(
        sum(1 for s in sessions if s[end] == place) for place in range(len(log["letters"])) for end in (0, 1)
    )
    for side in range(13, 2, -1):
        if -(-tallest // max(1, int((column - 6) // side))) * side <= STACKS:
            return side
    return 2


def _cluster(log: dict, letter: str, x: float, column: float, frame: int) -> list:
    """The cluster's ground line, its name, and × to kill it or + to bring it back."""
    before, after = letter in log["before"], letter in log["after"]
    there = before if not frame else after
    parts = [d.line(x, STACKS + 1, x + column - 6, STACKS + 1, "ground" if there else "ground dead")]
    if not after:
        return [*parts, _bring_up(log, letter, x, column)]
    parts.append(d.text(x, STACKS + 18, letter, "label strong", data_id=f"node:{letter}"))
    if len(log["after"]) > 1:
        parts.append(take_down(x + 18, STACKS + 14, "after", log["after"].replace(letter, "")))
    return parts


def _bring_up(log: dict, letter: str, x: float, column: float) -> str:
    wide = min(column - 4, 34)
    return bring_up(x + wide / 2, STACKS + 14, wide, letter, "after", log["after"])


def _tokens(log: dict, frame: int, column: float, lang: str) -> list:
    """What each cluster has prefilled again so far, hanging from the names; the longest bar is labelled."""
    top, most = STACKS + 28, max(1, max(log["tokens"][-1]))
    parts = [d.text(0, top + BARS + 30, Text("tokens prefilled again").render(lang), "label small")]
    for index, count in enumerate(log["tokens"][frame]):
        if count:
            letter = log["letters"][index]
            parts.append(
                d.rect(
                    index * column,
                    top,
                    column - 6,
                    BARS * count / most,
                    "miss",
                    f"node:{letter}",
                    f"{letter}: {number(count)}",
                )
            )
    for index, count in enumerate(log["tokens"][frame]):
        if count and count == max(log["tokens"][frame]):
            words = f"{number(count / 1e6, 3)} M"
            end = index * column > column * len(log["letters"]) / 2
            at = index * column + (column - 6 if end else 0)
            parts.append(
                d.text(at, top + BARS * count / most + 14, words, "label strong", "end" if end else "start")
            )
            break
    return parts


def _schemes(log: dict, top: float, width: float, lang: str) -> tuple:
    """A row per scheme: sessions moved, of them needlessly, and who prefills. A click chooses the scheme."""
    narrow = width < 500
    bar_at, bar = (58, 120) if narrow else (78, 300)
    cells_at = bar_at + bar + (62 if narrow else 76)
    cell = (width - 4 - cells_at) / len(log["letters"])
    parts = [
        d.line(0, top - 14, width, top - 14),
        d.text(bar_at, top + 2, Text("sessions moved").render(lang), "label small"),
        d.text(cells_at, top + 2, Text("who prefills").render(lang), "label small"),
    ]
    y, most = top + 12, max(1, *(count or 0 for row in log["schemes"].values() for count in row["tokens"]))
    for name, row in log["schemes"].items():
        chosen = name == log["scheme"]
        needed = row["moved"] - row["needless"]
        parts += [
            d.text(6, y + 13, NAMES[name], "label strong" if chosen else "label", data_id=f"scheme:{name}"),
            d.rect(bar_at, y, bar, 17, "free"),
            d.rect(bar_at, y, bar * needed, 17, "miss soft"),
            d.rect(bar_at + bar * needed, y, bar * row["needless"], 17, "miss"),
            d.line(bar_at + bar * row["ideal"], y - 2, bar_at + bar * row["ideal"], y + 19, "fair"),
            d.text(bar_at + bar + 6, y + 13, percent(row["moved"], 3), "label strong" if chosen else "label"),
        ]
        for index, count in enumerate(row["tokens"]):
            x, letter = cells_at + index * cell, log["letters"][index]
            parts.append(d.rect(x, y, cell - 2, 17, "ghost" if count is None else "free", f"node:{letter}"))
            if count:
                parts.append(
                    d.rect(
                        x,
                        y + 17 - 17 * count / most,
                        cell - 2,
                        17 * count / most,
                        "miss",
                        f"node:{letter}",
                        f"{letter}: {number(count)}",
                    )
                )
        parts.append(
            d.group(
                [d.rect(0.75, y - 3, width - 1.5, 23, "hit-area chosen" if chosen else "hit-area")],
                data_click="scheme",
                data_value=name,
            )
        )
        y += 25
    return parts, y + 2


def _legend(log: dict, frame: int) -> list:
    """What the squares are, counted over all sessions, not only the drawn ones."""
    needed = log["moved"] - log["needless"]
    if not frame:
        return [("soft", Text("sessions with their prefix: {count}", count=number(log["total"])))]
    return [
        ("soft", Text("stay: {count}", count=number(log["total"] - log["moved"]))),
        ("miss-soft", Text("move because a cluster came or went: {count}", count=number(needed))),
        ("miss", Text("move between clusters that stay: {count}", count=number(log["needless"]))),
        (
            "fair",
            Text("needed for fair shares: {share}", share=percent(log["schemes"][log["scheme"]]["ideal"], 3)),
        ),
        ("ghost", Text("click: × kills, + adds, a row chooses the scheme")),
    ]
