"""Tab `prefix-miss`: a request that finds nothing, why, what it leaves behind, and what the next one finds."""

from types import SimpleNamespace

import numpy as np

from k3core.decode import START
from k3core.lab import prefix_miss_view as view
from k3core.lab import prefix_text, tiny_text
from k3core.lab.contract import Check, Column, Experiment, Metric, Prediction, Preset, Result, Scene, Table
from k3core.lab.display import number
from k3core.lab.params import Param, ParamError
from k3core.lab.prefix_requests import GROUPS, Server, common, draw_tokens, token_metric, without_parent
from k3core.lab.prefix_strips import places
from k3core.lab.text import Text
from k3core.prefix_cache import Chain, Extra, Policy
from k3core.traces import Request, TraceCache

TEXT = "import os\n\ndef read_lines(path):\n    with open(path"
ENDS = ', "rb") as file:\n, "wb") as file:\n, encoding="utf-8")'
PAGE_BLOCKS = 12  # hash blocks in a page, as in the report: 6,144 / 512
CAUSES = {
    "own": Text("only the beginning is shared"),
    "token": Text("one token differs"),
    "salt": Text("another salt"),
    "adapter": Text("another adapter"),
    "evicted": Text("the checkpoint was evicted"),
    "none": Text("nothing: the same again"),
}
POLICIES = {
    "align": Text("at the last boundary (align)"),
    "marconi": Text("also where prompts part (Marconi)"),
    "retain": Text("below the last token, and where prompts part (retention 0)"),
    "dense": Text("at every boundary (dense)"),
}


def run(p, seed: int):
    """Serve three requests; between the first and the second something is not as it was. Yields Progress."""
    if p.source == "text":
        p, prompts = written(prefix_text.sized(p, PAGE_BLOCKS))
        served, lost = yield from read(p, prompts, seed)
    else:
        prompts = requests(p, np.random.default_rng(seed))
        served, lost = count(p, prompts)
    _, second, third = served
    texts = [turn.ids if p.source == "text" else prompt[0] for turn, prompt in zip(served, prompts)]
    kept = [(texts[0], prompts[0][1], [end for end in served[0].saves if end != lost])]
    right = oracle(kept, *prompts[1])
    kept.append((texts[1], prompts[1][1], second.saves))
    right_next = oracle(kept, *prompts[2])
    log, captions = view.story(p, PAGE_BLOCKS, served, lost)
    policies, saw, shares = policies_table(p), saw_table(p), shared_table(p)
    return Result(
        metrics=_metrics(p, second, third),
        checks=[
            Check("resume", Text("request 2 resumes where comparing tokens, salt and adapter says"),
                  second.hit.tokens == right, second.hit.tokens, right, "tokens"),
            prefix_text.check(served) if p.source == "text" else
            Check("content", Text("nothing is taken that was computed for another prefix"),
                  not max(turn.wrong for turn in served), max(turn.wrong for turn in served), 0, "tokens"),
            Check("next", Text("request 3 finds the last boundary that requests 1 and 2 left for it"),
                  third.hit.tokens == right_next, third.hit.tokens, right_next, "tokens"),
        ],
        tables={"policies": policies, "saw": saw, "shares": shares},
        figures=[view.saw_figure(p), view.shared_figure(p)],
        scenes=[Scene("requests", Text("Three requests, one cache"), log, captions, len(captions) - 1)],
        answer=2 * (second.hit.tokens > 0) + (third.hit.tokens > 0),
        answer_text=Text("Request 2 resumes at {second}, request 3 at {third} of {tokens} tokens.",
                         second=number(second.hit.tokens), third=number(third.hit.tokens),
                         tokens=number(third.tokens)),
    )


def count(p, prompts: list) -> tuple:
    """Three requests of counted tokens -> (served, position of the evicted checkpoint)."""
    server = Server(p.grain, PAGE_BLOCKS, 1, p.policy, chained=p.chained)
    served = [server.serve(*prompts[0])]
    lost = server.evict_checkpoint(prompts[1][0], range(GROUPS)) if p.cause == "evicted" else 0
    return served + [server.serve(*prompt) for prompt in prompts[1:]], lost


def read(p, prompts: list, seed: int):
    """The same read and answered by the trained model. Yields Progress."""
    server, served, lost = prefix_text.TextServer(p.grain, PAGE_BLOCKS, 1, p.policy, chained=p.chained), [], 0
    for turn, (ids, extra) in enumerate(prompts):
        if turn == 1 and p.cause == "evicted":
            lost = server.evict_checkpoint(ids, range(GROUPS))
        served.append((yield from server.answer(ids, p, seed, extra)))
    return served, lost


def written(p) -> tuple:
    """(parameters with the text's lengths in place of those of counted tokens, three requests of the reader's text)."""
    start, ends = [START, *tiny_text.ids_of("text", p.text)], p.ends.split("\n")
    if len(ends) != 3:
        raise ParamError("ends", Text("ends takes 3 lines, the end of each request; given: {count}", count=len(ends)))
    prompts = [start + tiny_text.ids_of("ends", end) for end in ends]
    shared = len(start)
    if p.cause == "own":
        requests = [(prompt, Extra()) for prompt in prompts]
        shared = common(*prompts[:2])
    else:
        first = prompts[0]
        if p.cause == "token" and p.place >= len(first):
            raise ParamError("place", Text("place is {place}, but the text has {count} characters", place=p.place,
                                           count=len(first) - 1))
        shared = p.place if p.cause == "token" else shared
        requests = same_tokens(p.cause, first, [*first[:shared], _another(first[shared]), *first[shared + 1 :]]
                               if p.cause == "token" else first)
    return SimpleNamespace(**vars(p) | {"grain": p.block, "prompt": len(requests[0][0]), "shared": shared}), requests


def _another(token: int) -> int:
    """Another character: the next letter or digit."""
    return ord("b" if token == ord("a") else "a")


def requests(p, rng) -> list:
    """(tokens, extra keys) of three requests of the same length; see the parameter `cause`. Raises ParamError."""
    if p.cause in ("own", "token") and p.shared >= p.prompt:
        raise ParamError("shared", Text("shared is {shared}, but the prompt has {prompt} tokens; share at most {most}",
                                        shared=p.shared, prompt=p.prompt, most=p.prompt - 1))
    if p.cause == "own":
        start = draw_tokens(rng, p.shared, 0)
        return [(start + draw_tokens(rng, p.prompt - p.shared, kind), Extra()) for kind in (1, 2, 3)]
    first = draw_tokens(rng, p.prompt, 0)
    second = [*first[: p.shared], first[p.shared] + 1, *first[p.shared + 1 :]] if p.cause == "token" else first
    return same_tokens(p.cause, first, second)


def same_tokens(cause: str, first: list, second: list) -> list:
    """(tokens, extra keys) of three requests whose tokens are, but for at most one, the same."""
    before, after = {"salt": (Extra(salt="tenant-a"), Extra(salt="tenant-b")),
                     "adapter": (Extra(), Extra(adapter="adapter-1"))}.get(cause, (Extra(), Extra()))
    return [(first, before), (second, after), (second, after)]


def oracle(kept: list, tokens: list, extra: Extra) -> int:
    """Where a request may resume, by comparing tokens with all (tokens, extra, checkpoints) kept: no hash."""
    return max((end for old, its, ends in kept if its == extra
                for end in ends if end <= min(common(old, tokens), len(tokens) - 1)), default=0)


def _metrics(p, second, third) -> list:
    hit, tokens = second.hit.tokens, second.tokens
    how = [Text("each is a state in all {groups} KDA groups, at {places}", groups=GROUPS, places=places(second.saves))]
    if p.source == "text":
        state, row = prefix_text.pages(tiny_text.model().config)
        how += [Text("a state of the trained model, with its convolution window: {state} B in float32, in {groups} KDA "
                     "layers {all} B", state=number(state), groups=GROUPS, all=number(GROUPS * state)),
                Text("a row of its MLA layer: {row} B, so a checkpoint is worth {rows} rows", row=number(row),
                     rows=number(GROUPS * state // row)),
                Text("request 2 leaves {states} B of states and {rows} B of rows",
                     states=number(GROUPS * state * len(second.saves)), rows=number(row * (len(second.ids) - 1 - hit)))]
    return [
        token_metric("hit_tokens", Text("request 2 takes from the cache"), hit),
        Metric("hit_share", Text("of its prompt"), hit / tokens, "share", kind="float", scale=1.0),
        token_metric("recomputed_tokens", Text("request 2 computes"), tokens - hit),
        token_metric("rows_unused", Text("of these had rows, but no state"), second.hit.rows - hit),
        Metric("checkpoints_written", Text("checkpoints that request 2 writes"), len(second.saves),
               how=tuple(how)),
        token_metric("next_hit_tokens", Text("request 3 takes from the cache"), third.hit.tokens),
    ]


def replayed(policy: str, prompt: int, shared: int, grain: int) -> tuple:
    """Hits of requests 2 to 4 that share a beginning only, and the checkpoints of all, by block numbers alone."""
    cache = TraceCache(Policy(policy), grain, grain)
    blocks, same = -(-prompt // grain), shared // grain
    hits = []
    for turn in range(4):
        ids = tuple(range(same)) + tuple(range(1000 * (turn + 1), 1000 * (turn + 1) + blocks - same))
        hits.append(cache.serve(Request(0, prompt, 1, ids)))
    return hits[1:], cache.counts.checkpoints


def policies_table(p) -> Table:
    """The same beginning, four requests, under each policy."""
    rows = []
    for name, title in POLICIES.items():
        hits, checkpoints = replayed(name, p.prompt, min(p.shared, p.prompt), p.grain)
        rows.append((f"policy:{name}", title, *hits, checkpoints))
    return Table((Column("id", Text("id")), Column("policy", Text("checkpoints are kept")),
                  *(Column(f"hit{n}", Text("request {n} resumes at", n=n)) for n in (2, 3, 4)),
                  Column("checkpoints", Text("checkpoints"))),
                 rows, Text("Requests that share {shared} of {prompt} tokens, by policy",
                            shared=number(min(p.shared, p.prompt)), prompt=number(p.prompt)))


def saw_table(p) -> Table:
    """Share of a repeated prompt that hits, against its length."""
    rows = []
    for step in range(1, 129):
        tokens = max(1, step * p.grain // 32)
        rows.append((tokens, "repeat", 100 * ((tokens - 1) // p.grain * p.grain) / tokens))
    return Table((Column("prompt", Text("tokens of the prompt")), Column("what", Text("request")),
                  Column("hit", Text("hit, % of the prompt"), "float", scale=100.0)), rows)


def shared_table(p) -> Table:
    """Where request 3 resumes, against the shared length, for two policies."""
    rows = []
    for step in range(49):
        shared = p.prompt * step // 48
        rows += [(shared, policy, replayed(policy, p.prompt, shared, p.grain)[0][1]) for policy in ("align", "marconi")]
    return Table((Column("shared", Text("tokens shared")), Column("policy", Text("policy")),
                  Column("hit", Text("request 3 resumes at"))), rows)


EXPERIMENT = Experiment(
    slug="prefix-miss", tab=9, family="prefix",
    name=Text("Miss"),
    title=Text("A miss: what it costs, and what it leaves behind"),
    question=Text("The second request looks like the first, and the cache still gives it nothing. What went wrong, how "
                  "much is computed again, and why does the third request find what the second could not?"),
    params=(
        prefix_text.SOURCE,
        Param("cause", Text("What differs in request 2"), "choice", "own", choices=tuple(CAUSES.items())),
        prefix_text.text_param("text", Text("What all requests begin with"), TEXT),
        prefix_text.text_param("ends", Text("How each goes on, a line for each"), ENDS,
                               words=Text("Where all tokens are the same, only the first line is used.")),
        Param("place", Text("Character that differs"), "int", 5, 1, 120, 1, when=prefix_text.TEXT,
              help=Text("Used where one token differs.")),
        prefix_text.CHOOSING, prefix_text.ANSWER, prefix_text.BLOCK,
        Param("prompt", Text("Tokens of each prompt"), "int", 2200, 16, 8192, 1, when=prefix_text.COUNTED),
        Param("shared", Text("Tokens shared"), "int", 1500, 0, 8191, 1, when=prefix_text.COUNTED,
              help=Text("The first token that differs stands here; unused where all tokens are the same.")),
        Param("grain", Text("Block and checkpoint grid, in tokens"), "int", 528, 64, 6144, 16,
              when=prefix_text.COUNTED),
        Param("policy", Text("Where checkpoints are kept"), "choice", "marconi", choices=tuple(POLICIES.items())),
        Param("chained", Text("Hash the parent's key"), "bool", True, breaker=True,
              help=Text("Off: a block's key depends on its own tokens only, so that neither an earlier token nor salt "
                        "nor adapter is seen.")),
    ),
    presets=(
        Preset("real-text", Text("A real text"),
               Text("Three prompts begin with the same 51 characters, and the trained model answers each. Request 2 "
                    "resumes nowhere, request 3 at 48: same text, same state as without a cache."), {"source": "text"}),
        Preset("real-text-no-parent", Text("A real text, the parent forgotten"),
               Text("One character differs, early. Request 2 gets request 1's rows and states, and nothing tells it."),
               {"source": "text", "cause": "token", "chained": False, "choosing": "sampled", "answer": 32},
               breaks=("resume", "content", "next")),
        Preset("marconi", Text("Shared 1,500 of 2,200"),
               Text("Nothing for request 2: the only checkpoint lies at 2,112, in tokens that nobody shares. It leaves "
                    "one at 1,056, and from the third request on that is hit.")),
        Preset("align", Text("The same, last boundary only"),
               Text("Every request writes its checkpoint at 2,112, where the next one already differs: 0 for ever."),
               {"policy": "align"}),
        Preset("repeat-552", Text("552 tokens, block of 528"), Text("528 of 552 hit: 95.7 %."),
               {"cause": "none", "prompt": 552}),
        Preset("repeat-979", Text("979 tokens, block of 528"), Text("Still only 528: 53.9 %."),
               {"cause": "none", "prompt": 979}),
        Preset("short", Text("Shorter than a block"),
               Text("434 tokens never fill a block of 2,048: nothing is found, nothing is left, however "
                    "often it comes."),
               {"cause": "none", "prompt": 434, "grain": 2048}),
        Preset("early", Text("A token differs early"),
               Text("The 41st token is a timestamp, say. Every key behind it is another one: all is computed again."),
               {"cause": "token", "shared": 40}),
        Preset("evicted", Text("Pages stay, the state is gone"),
               Text("Rows up to 2,112 are found, no state with them: 0. Request 2 writes the checkpoint again."),
               {"cause": "evicted"}),
        Preset("salt", Text("Another tenant"),
               Text("The same tokens under another salt share nothing, and must not."), {"cause": "salt"}),
        Preset("no-parent", Text("Forget the parent"),
               Text("The last block is equal, so everything before it is taken to be: 2,112 tokens of which all behind "
                    "the 40th are wrong."),
               {"cause": "token", "shared": 40, "chained": False}, breaks=("resume", "content", "next")),
    ),
    prediction=Prediction(Text("Three requests, as drawn. Which of the last two resumes from a checkpoint?"),
                          (Text("neither"), Text("only request 3"), Text("only request 2"), Text("both of them"))),
    function=run,
    draw={"requests": view.draw_requests},
    code=(Chain, Policy.boundaries, without_parent),
)
