"""Tab `prefix-hit`: three turns of a conversation, the boundary each resumes from, and the time that saves."""

import math

import numpy as np

from k3core.fleet.latency import ACTIVE_PARAMETERS, ATTENTION_WORK, PREFILL_SPEED, prefill_time, prefill_work, ttft
from k3core.lab import prefix_hit_view as view
from k3core.lab import prefix_text, tiny_text
from k3core.lab.contract import (Check, Column, Experiment, Metric, Prediction, Preset, Progress, Result, Scene,
                                 Table)
from k3core.lab.display import number
from k3core.lab.params import Param
from k3core.lab.prefix_requests import GROUPS, POLICIES, Server, common, draw_tokens, token_metric
from k3core.lab.text import Text
from k3core.prefix_cache import PrefixCache, Rules

CLAIM = 0.4  # the saving a public demonstration of this mechanism reports, without its settings
LENGTHS = (2_000, 8_000, 32_000, 128_000, 1_000_000)
SHARES = range(0, 101, 10)
TURNS = 3
PROMPT = 'def area(width, height):\n    """Return the area."""\n'
MORE = "\n    # then\n"
BINS = (0.0, 0.4, 0.7)  # the options of the prediction: nothing, and then up to each of these or more


def run(p, seed: int):
    """Serve three turns on a prefix cache, and put times on what each found there. Yields Progress."""
    if p.source == "text":
        p = prefix_text.sized(p, p.page)
    turns, served, lost = yield from (talk if p.source == "text" else count)(p, seed)
    second = served[1]
    first = served[0].ids if p.source == "text" else turns[0]  # with an answer, more is known than was asked
    right = oracle(first, turns[1], served[0].saves, lost)
    cold, warm = ttft(second.tokens), ttft(second.tokens, second.hit.tokens)
    saved = 1 - warm / cold
    log, captions, poster = view.story(p, served, lost)
    same = prefix_text.check(served) if p.source == "text" else None
    tables = {"turns": turns_table(served), "conditions": conditions_table(), "saving": saving_table(),
              "stairs": stairs_table(p)}
    return Result(
        metrics=_metrics(second, cold, warm, saved),
        checks=[
            Check("resume", Text("turn 2 resumes at the last boundary that rows and all KDA groups share"),
                  second.hit.tokens == right, second.hit.tokens, right, "tokens"),
            same or Check("content", Text("every block taken holds the state or rows of this very prefix"),
                          not any(turn.wrong for turn in served), max(turn.wrong for turn in served), 0, "tokens"),
            Check("last_token", Text("the last token of a prompt is always computed"),
                  all(turn.hit.tokens < turn.tokens for turn in served),
                  min(turn.tokens - turn.hit.tokens for turn in served), Text("at least 1")),
            Check("time", Text("the time saved is the time to prefill what was taken"),
                  abs(cold - warm - prefill_time(second.hit.tokens)) <= 1e-9 * cold,
                  Text("{ms} ms", ms=number(1000 * (cold - warm))),
                  Text("{ms} ms", ms=number(1000 * prefill_time(second.hit.tokens)))),
        ],
        tables=tables,
        figures=[view.saving_figure(second.hit.tokens / second.tokens), view.stairs_figure(p)],
        scenes=[Scene("turns", Text("Three turns of one conversation"), log, captions, poster)],
        answer=0 if not second.hit.tokens else 1 if saved < BINS[1] else 2 if saved < BINS[2] else 3,
        answer_text=Text("Turn 2 resumes at {hit} of {tokens} tokens: {warm} instead of {cold} ms, {saved} % less.",
                         hit=number(second.hit.tokens), tokens=number(second.tokens), warm=number(1000 * warm),
                         cold=number(1000 * cold), saved=number(100 * saved, 3)),
    )


def count(p, seed: int):
    """Three turns of counted tokens -> (prompts, turns served, position of the evicted checkpoint). Yields Progress."""
    turns = conversation(p, np.random.default_rng(seed))
    server = Server(p.hash_block, p.page, p.grain, p.policy, rules=Rules(evict_together=p.all_groups))
    served = [server.serve(turns[0])]
    lost = server.evict_checkpoint(turns[1], (int(p.lost) - 1,)) if p.lost != "none" else 0
    for tokens in turns[1:]:
        yield Progress(len(served), len(turns))
        served.append(server.serve(tokens))
    return turns, served, lost


def talk(p, seed: int):
    """The same with the trained model and the reader's text: each turn is all that was said before, and more."""
    server = prefix_text.TextServer(p.hash_block, p.page, p.grain, p.policy, rules=Rules(evict_together=p.all_groups))
    more = tiny_text.ids_of("more", p.more)
    turns, served, lost = [tiny_text.read_prompt(p.prompt)], [], 0
    for turn in range(TURNS):
        if turn == 1 and p.lost != "none":
            lost = server.evict_checkpoint(turns[1], (int(p.lost) - 1,))
        served.append((yield from server.answer(turns[turn], p, seed)))
        turns.append(turns[turn] + (served[turn].answer if p.kept else []) + more)
    return turns[:TURNS], served, lost


def conversation(p, rng) -> list:
    """The prompts of three turns: turn 2 repeats the first `shared` tokens of turn 1, turn 3 all of turn 2."""
    shared = draw_tokens(rng, p.shared, 0)
    first = shared + draw_tokens(rng, p.own, 1)
    second = shared + draw_tokens(rng, p.fresh, 2)
    return [first, second, second + draw_tokens(rng, p.fresh, 3)]


def oracle(first: list, second: list, saves: tuple, lost: int) -> int:
    """Where turn 2 may resume, by comparing tokens: no hash, no index."""
    limit = min(common(first, second), len(second) - 1)
    return max((end for end in saves if end <= limit and end != lost), default=0)


def hit_for(saving: float, tokens: int) -> float:
    """The hit in tokens that saves this share of the time to first token: prefill work is quadratic in it."""
    linear, square = 2 * ACTIVE_PARAMETERS.value, ATTENTION_WORK.value
    return (math.sqrt(linear * linear + 2 * square * saving * prefill_work(tokens)) - linear) / square


def _metrics(second, cold: float, warm: float, saved: float) -> list:
    hit, tokens = second.hit.tokens, second.tokens
    need = hit_for(CLAIM, tokens)
    lines = (Text("work of n tokens: 2 × {active} × n + {attention} × n² / 2 FLOP",
                  active=number(ACTIVE_PARAMETERS.value), attention=number(ATTENTION_WORK.value)),
             Text("speed: {speed} FLOP/s, from 376.3 ms for 8,000 tokens", speed=number(PREFILL_SPEED.value)))
    return [
        token_metric("hit_tokens", Text("turn 2 takes from the cache"), hit),
        Metric("hit_rate", Text("of turn 2's prompt"), hit / tokens, "share", kind="float", scale=1.0),
        Metric("ttft_hit_ms", Text("time to first token, with the hit"), 1000 * warm, "ms", "derived", "float",
               scale=1.0, how=(*lines, Text("computed behind the hit: {tokens} tokens", tokens=number(tokens - hit)))),
        Metric("ttft_miss_ms", Text("time to first token, without"), 1000 * cold, "ms", "derived", "float",
               scale=1.0, how=lines),
        Metric("saved_percent", Text("saved"), 100 * saved, "%", "derived", "float", scale=100.0),
        Metric("hit_for_40", Text("hit that would save 40 %"), need, "tokens", "derived", "float", scale=1.0,
               text=Text("{tokens} tokens", tokens=number(math.ceil(need)))),
    ]


def turns_table(served: list) -> Table:
    """What each turn found and how long it takes."""
    rows = []
    for index, turn in enumerate(served):
        cold, warm = ttft(turn.tokens), ttft(turn.tokens, turn.hit.tokens)
        rows.append((f"row:{index}", index + 1, turn.tokens, turn.hit.rows, turn.hit.tokens,
                     turn.tokens - turn.hit.tokens, GROUPS * len(turn.saves), 1000 * warm, 1000 * cold,
                     1 - warm / cold))
    return Table((Column("id", Text("id")), Column("turn", Text("turn")), Column("prompt", Text("prompt, tokens")),
                  Column("rows", Text("rows found")), Column("hit", Text("resumed at")),
                  Column("computed", Text("computed, tokens")), Column("saves", Text("states written, all groups")),
                  Column("warm", Text("first token, with"), "float", "ms", 1.0),
                  Column("cold", Text("without"), "float", "ms", 1.0),
                  Column("saved", Text("saved"), "float", "share", 1.0)),
                 rows, Text("The three turns"))


def conditions_table() -> Table:
    """What it takes to save 40 % of the time to first token, by prompt length."""
    rows = [(tokens, hit_for(CLAIM, tokens), hit_for(CLAIM, tokens) / tokens, 1000 * ttft(tokens))
            for tokens in LENGTHS]
    return Table((Column("prompt", Text("prompt, tokens")),
                  Column("hit", Text("hit needed, tokens"), "float", scale=1.0),
                  Column("share", Text("share of the prompt"), "float", "share", 1.0),
                  Column("cold", Text("first token without a hit"), "float", "ms", 1.0)),
                 rows, Text("When a hit saves more than 40 %"))


def saving_table() -> Table:
    """Time saved against the share of the prompt that hits."""
    rows = []
    for tokens in LENGTHS:
        rows += [(tokens, share, 100 * (1 - ttft(tokens, min(tokens * share // 100, tokens - 1)) / ttft(tokens)))
                 for share in SHARES]
    return Table((Column("prompt", Text("prompt, tokens")), Column("share", Text("hit, % of the prompt")),
                  Column("saved", Text("time saved, %"), "float", scale=100.0)), rows)


def stairs_table(p) -> Table:
    """Where a prompt resumes that shares n tokens, if every multiple of the grain had a checkpoint."""
    rows = []
    for name, grain in (("grain", p.grain * p.hash_block), ("page", p.page * p.hash_block)):
        for shared in range(0, view.STAIRS[p.source] + 1, view.STAIRS[p.source] // 96):
            rows.append((shared, name, shared // grain * grain))
    return Table((Column("shared", Text("tokens shared")), Column("by", Text("grid")),
                  Column("hit", Text("resumed at"))), rows)


EXPERIMENT = Experiment(
    slug="prefix-hit", tab=8, family="prefix",
    name=Text("Hit"),
    title=Text("A hit: one boundary for two kinds of cache"),
    question=Text("A conversation comes back with a prompt that begins like the last one. Attention rows can be reused "
                  "up to any block, a recurrent state only where one was kept. Where does the new turn resume, and how "
                  "much sooner does its first token come?"),
    params=(
        prefix_text.SOURCE,
        prefix_text.text_param("prompt", Text("Prompt of turn 1"), PROMPT),
        prefix_text.text_param("more", Text("What turns 2 and 3 add"), MORE, 60),
        Param("kept", Text("The answer stays in the history"), "bool", True, when=prefix_text.TEXT,
              help=Text("Off: as with reasoning that the client leaves out.")),
        prefix_text.CHOOSING, prefix_text.ANSWER, prefix_text.BLOCK,
        Param("shared", Text("Tokens shared"), "int", 2800, 10, 32_000, 10,
              help=Text("What turn 2 repeats of turn 1."), when=prefix_text.COUNTED),
        Param("fresh", Text("New tokens per turn"), "int", 700, 10, 8_000, 10, when=prefix_text.COUNTED),
        Param("own", Text("Tokens of turn 1 that are not repeated"), "int", 200, 0, 8_000, 10,
              help=Text("An edited question, or reasoning that the client leaves out of the history."),
              when=prefix_text.COUNTED),
        Param("grain", Text("Checkpoint grid, in hash blocks"), "int", 1, 1, 16, 1),
        Param("hash_block", Text("Hash block, in tokens"), "int", 512, 128, 6144, 16, when=prefix_text.COUNTED),
        Param("page", Text("Page, in hash blocks"), "int", 12, 1, 16, 1),
        Param("policy", Text("Where checkpoints are kept"), "choice", "align",
              choices=tuple(zip(POLICIES, (Text("at the last boundary (align)"),
                                           Text("also where prompts part (Marconi)"),
                                           Text("at every boundary (dense)"))))),
        Param("lost", Text("Evict the checkpoint of"), "choice", "none",
              choices=(("none", Text("no group")), *((str(g), Text("KDA group {group}", group=g))
                                                     for g in range(1, GROUPS + 1))),
              help=Text("Between turns 1 and 2; or click a checkpoint of turn 1.")),
        Param("all_groups", Text("A hit needs every KDA group"), "bool", True, breaker=True,
              help=Text("Off: when one group's checkpoint is evicted, those of the other groups are still found, and "
                        "the hit is taken with one state missing.")),
    ),
    presets=(
        Preset("real-text", Text("A real text"),
               Text("The trained model goes on with a prompt of 52 characters, is asked for more twice, and resumes "
                    "where 16-character blocks allow: same text, same state, to the bit."), {"source": "text"}),
        Preset("real-text-dense", Text("The same, a state in every block"),
               Text("The answer leaves states behind as well: turn 2 goes on inside it, and only what is new is "
                    "computed."), {"source": "text", "policy": "dense"}),
        Preset("real-text-broken", Text("A real text from a wrong state"),
               Text("Group 3's block now holds another request's state, and the hit is taken all the same: no error, "
                    "another text."),
               {"source": "text", "choosing": "sampled", "policy": "dense", "more": "\n    ", "answer": 24,
                "lost": "3", "all_groups": False}, breaks=("resume", "content")),
        Preset("report", Text("The report's figure"),
               Text("2,800 tokens match, hash block 512, page 6,144: the turn resumes at 2,560, inside a page.")),
        Preset("coarse", Text("Hash block = page"),
               Text("Nothing finer than a page of 6,144 tokens can be found: the same 2,800 shared tokens "
                    "hit nothing."),
               {"hash_block": 6144, "page": 1}),
        Preset("mooncake", Text("4,480 shared, block of 4,096"),
               Text("A match unit of 128 tokens resumes at 4,480; the state block of 4,096 alone would "
                    "resume at "
                    "4,096."), {"shared": 4480, "hash_block": 128, "page": 16, "own": 0}),
        Preset("atom", Text("2,048 shared, block of 128"),
               Text("Exactly 2,048 tokens are taken. 2,048 of 3,000 save 68 % of the prefill."),
               {"shared": 2050, "fresh": 950, "own": 0, "hash_block": 128, "page": 8}),
        Preset("long", Text("A long agent session"),
               Text("32,000 of 33,000 tokens come back: with a checkpoint near the end almost all of the wait goes."),
               {"shared": 32_000, "fresh": 1000, "own": 0}),
        Preset("one-group-gone", Text("One group's state is evicted"),
               Text("The rows of 2,560 tokens are still there, but no boundary has a state in every group: 0 hit."),
               {"lost": "2"}),
        Preset("missing-state", Text("Take the hit all the same"),
               Text("Turn 2 resumes at 2,560 although group 2 has nothing there: 2,560 wrong tokens, and turn 3 "
                    "inherits them with 3,072."),
               {"lost": "2", "all_groups": False}, breaks=("resume", "content")),
    ),
    prediction=Prediction(Text("Turn 2 repeats the first tokens of turn 1 as drawn. How much of its wait for the first "
                               "token does the cache take away?"),
                          (Text("nothing at all"), Text("less than 40 %"), Text("40 to 70 %"), Text("70 % or more"))),
    function=run,
    draw={"turns": view.draw_turns},
    code=(PrefixCache.lookup, ttft, hit_for),
)
