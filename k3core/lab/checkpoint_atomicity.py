"""Tab `checkpoint-atomicity`: every interleaving of a small prefix cache, and the shortest one that goes wrong."""

from k3core.lab import checkpoint_atomicity_log as log
from k3core.lab import checkpoint_atomicity_text as text
from k3core.lab import checkpoint_atomicity_view as view
from k3core.lab import prefix_text, tiny_text
from k3core.lab.contract import Check, Column, Experiment, Metric, Prediction, Preset, Progress, Result, Scene, Table
from k3core.lab.display import number
from k3core.lab.params import Param, ParamError
from k3core.lab.text import Text
from k3core.prefix_cache.cache import PrefixCache, Rules
from k3core.prefix_cache.model_checker import Verdict, explore
from k3core.prefix_cache.world import Scope, World

SOURCE = tiny_text.source_param(("names", Text("names only")))
TEXT = 'def area(width, height):\n    """Return the '
MOST_STATES = 4000  # more than any scope has that can be chosen here
LENGTHS = (5, 10)  # where the options of the prediction divide
_searched: dict[tuple, Verdict] = {}  # a search always ends the same way, and a change of language asks again


def run(p, seed: int):
    """Search every interleaving, then play the shortest counterexample, or a safe interleaving if there is none."""
    if p.requests == 2 and p.shared == 1 and p.blocks > 6:
        raise ParamError("blocks", Text("blocks is {value} with 1 shared token: too many states to visit here; take at "
                                        "most 6 blocks, or 2 shared tokens", value=p.blocks))
    rules = Rules(p.pin_first, p.publish_on_commit, p.evict_together)
    scope = Scope(requests=p.requests, shared=p.shared, blocks=p.blocks, rules=rules)
    verdict = yield from search(scope, "entry" if rules == Rules() else p.until)
    events = list(verdict.events) or log.safe_events(scope)
    frames = log.play(scope, events)
    wrong = int(frames[-1]["misread"] or log.wrong_entries(frames[-1]) > 0)
    found, length = int(verdict.problem is not None), len(verdict.events)
    captions = log.captions(frames, rules != Rules(), scope)
    poster = len(frames) - 1 if found else _first_hit(frames)
    story, said = {"requests": p.requests, "frames": frames}, None
    own = Check("own_prefix", Text("nothing is found or read but the prefix it stands for"), not found, found, 0)
    if p.source == "text":
        said = yield from text.continued(p, seed, scope, events, poster)
        captions, poster, own = captions + said.captions, len(captions) + len(said.captions) - 1, said.check(own)
        story["text"] = said.log
    return Result(
        metrics=_metrics(verdict, found, length),
        checks=[
            own,
            Check("search_ended", Text("the search ended: every state visited, or a counterexample found"),
                  verdict.complete or bool(found), verdict.states, Text("at most {count}", count=number(MOST_STATES))),
            Check("played_back", Text("played back, the actions end as the search said"), wrong == found, wrong, found),
        ],
        tables={"actions": _actions(frames)},
        scenes=[Scene("interleaving", Text("The shortest way to a wrong answer") if found else
                      Text("A safe interleaving"), story, captions, poster)],
        answer=_answer(length),
        answer_text=Text("The shortest takes {count} actions, found after {states} states.", count=length,
                         states=number(verdict.states)) if found else
        Text("None exists: all {states} states were visited.", states=number(verdict.states)),
    )


def search(scope: Scope, until: str):
    """The verdict on a scope; yields Progress."""
    if (scope, until) not in _searched:
        steps = explore(scope, until, MOST_STATES)
        while True:
            try:
                states = next(steps)
            except StopIteration as stop:
                _searched[scope, until] = stop.value
                break
            yield Progress(min(states, MOST_STATES), MOST_STATES, Text("{count} states so far", count=number(states)))
    return _searched[scope, until]


def _first_hit(frames: list) -> int:
    """The frame in which the first hit has been copied, else the last."""
    return next((index for index, frame in enumerate(frames) if frame["event"] and frame["event"][0] == "copy"
                 and frame["facts"]["computed"]), len(frames) - 1)


def _answer(length: int) -> int:
    """Which option of the prediction is right."""
    return 0 if not length else 1 + sum(length > most for most in LENGTHS)


def _metrics(verdict: Verdict, found: int, length: int) -> list:
    return [
        Metric("states_explored", Text("states explored"), verdict.states, how=(
            Text("{count} actions tried from them; the longest shortest path has {depth}",
                 count=number(verdict.transitions), depth=verdict.depth),
            Text("states that differ only in the numbers of blocks or requests count once"))),
        Metric("violations", Text("counterexamples found; the search stops at one"), found),
        Metric("counterexample_length", Text("actions in the shortest counterexample"), length if found else None),
    ]


def _actions(frames: list) -> Table:
    rows = []
    for step, frame in enumerate(frames[1:], 1):
        kind, who = frame["event"]
        found = sum(bool(entry[part]) for entry in frame["index"] for part in ("rows", "states"))
        wrong = log.wrong_entries(frame) + sum(not read["ok"] for reads in frame["reads"] for read in reads or ())
        rows.append((f"step:{step}", step, Text("pool") if who is None else log.NAMES[who], view.ACTIONS[kind][2],
                     found, wrong))
    return Table((Column("id", Text("id")), Column("step", Text("action")), Column("who", Text("who")),
                  Column("what", Text("does")), Column("found", Text("findable")), Column("wrong", Text("wrong"))),
                 rows, Text("The interleaving, action by action"))


EXPERIMENT = Experiment(
    slug="checkpoint-atomicity", tab=10, family="prefix",
    name=Text("Atomic checkpoints"),
    title=Text("Atomic checkpoints: all groups, or none"),
    question=Text("A hit needs attention rows and a state of every KDA group, while other requests are scheduled, "
                  "aborted and evicted in between. Is there any order of actions in which a request reads a prefix "
                  "that is not its own?"),
    params=(
        SOURCE,
        prefix_text.text_param("text", Text("The beginning that both share"), TEXT),
        prefix_text.text_param("ends", Text("How A and B go on, a line for each"), "area of a\nnext "),
        prefix_text.CHOOSING, prefix_text.ANSWER,
        Param("requests", Text("Requests"), "int", 2, 1, 2, 1,
              help=Text("Each may be aborted at any point and come again.")),
        Param("blocks", Text("Blocks in the pool"), "int", 6, 5, 7, 1),
        Param("shared", Text("Shared tokens, of a page of 2"), "int", 2, 1, 2, 1,
              help=Text("With 1 the hit ends inside a page, which is copied.")),
        Param("until", Text("With a rule off, stop at"), "choice", "read",
              choices=(("read", Text("the first wrong read")), ("entry", Text("the first wrong entry"))),
              help=Text("An entry is wrong as soon as it can be found and does not hold its prefix.")),
        Param("pin_first", Text("Rule 1: pin all hits before taking blocks"), "bool", True, breaker=True,
              help=Text("Its failure needs 7 blocks: a running request's states, a hit of three, and two idle ones.")),
        Param("publish_on_commit", Text("Rule 2: publish on commit"), "bool", True, breaker=True),
        Param("evict_together", Text("Rule 3: evict all groups together"), "bool", True, breaker=True),
    ),
    presets=(
        Preset("real-text", Text("A real text from half a checkpoint"),
               Text("The same for the trained model: what the reader would have got from the state that was found, "
                    "beside what is right."),
               {"source": "text", "evict_together": False, "choosing": "sampled", "answer": 24},
               breaks=("own_prefix",)),
        Preset("never-written", Text("Hit on a state never written"),
               Text("Rule 2 is off. A is aborted between schedule and forward; its retry hits blocks that nobody "
                    "wrote, after 8 actions."), {"publish_on_commit": False}, breaks=("own_prefix",)),
        Preset("half-evicted", Text("Half a checkpoint"),
               Text("Rule 3 is off. One group's part is evicted, the sibling still leads to it, and a request goes "
                    "on from another group's state, after 10 actions."), {"evict_together": False},
               breaks=("own_prefix",)),
        Preset("unpinned", Text("One group evicts another's hit"),
               Text("Rule 1 is off, 7 blocks. Taking a block for group 1 evicts the state that group 2 was about to "
                    "copy, after 21 actions."), {"pin_first": False, "blocks": 7}, breaks=("own_prefix",)),
        Preset("inside-a-page", Text("Hit inside a page"),
               Text("All rules on, 1 shared token: the page is copied too. 1,979 states, none wrong."), {"shared": 1}),
        Preset("seven-blocks", Text("7 blocks, all rules"),
               Text("2,930 states, some 17,000 actions tried, none wrong. This takes a while."), {"blocks": 7}),
    ),
    prediction=Prediction(Text("After how many actions, at best, can a request go wrong with these rules?"),
                          (Text("it cannot"), Text("5 or fewer"), Text("6 to 10"), Text("more than 10"))),
    function=run,
    draw={"interleaving": view.draw},
    code=(World.wrong_entry, PrefixCache.lookup, PrefixCache._take_blocks, PrefixCache._evicted, explore),
)
