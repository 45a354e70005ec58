"""The home page's figure: one request from router to checkpoint, through the mechanisms that the tabs take apart."""

from functools import cache

import numpy as np

from k3core.fleet.affinity import fail_over
from k3core.fleet.latency import PREFILL_SPEED
from k3core.lab import one_request_steps as steps
from k3core.lab import one_request_view as view
from k3core.lab.contract import Check, Column, Experiment, Metric, Prediction, Preset, Result, Scene, Table
from k3core.lab.display import number
from k3core.lab.params import Param
from k3core.lab.prefix_requests import token_metric
from k3core.lab.text import Text
from k3core.models import load
from k3core.prefix_cache import PrefixCache
from k3core.replayssm import ProjectionStore
from k3core.sizing import RECOVER_RECORD, record_bytes, recurrent_state_bytes

TIMES = (1.2, 2.0, 4.0)  # the options of the prediction: how many times sooner, up to each of these, or more


def run(p, seed: int) -> Result:
    """Send turn 2 of a conversation through router, admission, prefix cache, pool, decoding and checkpoints."""
    rng = np.random.default_rng(seed)
    log = follow(p, seed, rng)
    log["error"] = steps.replay_rounds(log["accepted"], p.drafts, p.keep_rejected, rng)
    right = steps.resume_at(log["kept"], p.shared, log["prompt"])
    log["records"], log["snapshots"] = ((p.drafts + 1) * size for size in bytes_per_position())
    return Result(
        metrics=_metrics(p, log),
        checks=[
            Check("resume", Text("it resumes at the last kept state within what is the same, token by token"),
                  log["hit"] == right, log["hit"], right),
            Check("state", Text("after replay the state is that of plain decoding, bit for bit"),
                  not log["error"], log["error"], 0),
            Check("pages", Text("every block of the pool is accounted for when the request has gone"),
                  log["leaked"] == 0, log["leaked"], 0),
        ],
        tables={"rounds": rounds_table(p, log), "stations": stations_table(log)},
        scenes=[Scene("request", Text("One request, from router to checkpoint"), log, view.captions(log),
                      poster=view.LAST)],
        answer=sum(log["cold"] / log["ttft"] > times for times in TIMES),
        answer_text=Text("{ttft} ms instead of {cold} ms.", ttft=view.milliseconds(log["ttft"]),
                         cold=view.milliseconds(log["cold"])),
    )


def follow(p, seed: int, rng) -> dict:
    """The request's way through everything but the state's arithmetic: what each station found and did."""
    first, second, answer = steps.prompts(p.shared, rng)
    way, cluster = steps.route(f"conversation {seed}", p.down), steps.Cluster()
    kept = cluster.serve(first) if way.at_home else ()
    met = steps.admit(p.burst, p.vip, len(second), 0)
    cluster.occupy(met.running)
    before = cluster.blocks()
    hit, _ = cluster.cache.start("turn 2", second)
    cluster.cache.landed("turn 2")
    pinned = cluster.blocks(hit)
    saves = cluster.prefill("turn 2", second, hit.tokens)
    filled = cluster.blocks(hit)
    accepted = steps.draw_accepted(p.drafts, rng)
    answer_saves = cluster.decode("turn 2", answer, accepted, p.drafts + 1)
    complete = cluster.blocks(hit)
    cluster.cache.release("turn 2")
    pool = cluster.cache.pool
    warm = steps.admit(p.burst, p.vip, len(second), hit.tokens)
    return {
        "prompt": len(second), "shared": p.shared, "rows": hit.rows, "hit": hit.tokens, "kept": kept, "saves": saves,
        "answer_saves": answer_saves, "order": way.order, "cluster": way.cluster, "home": way.at_home, "down": p.down,
        "burst": p.burst, "vip": p.vip, "running": met.running, "waiting": met.waiting, "wait": warm.wait,
        "ttft": warm.ttft, "cold": met.ttft, "drafts": p.drafts, "rounds": len(accepted),
        "accepted": accepted[: steps.SHOWN], "keep_rejected": p.keep_rejected,
        "leaked": steps.BLOCKS - pool.free_blocks - len(cluster.others),
        "blocks": [before] * view.PAGES + [pinned] + [filled] * (1 + steps.SHOWN) + [complete],
        "after": cluster.blocks(),
    }


@cache
def bytes_per_position() -> tuple:
    """Bytes of one position of a K3 sequence's verify window: a record of k, u and g, and a snapshot of the state."""
    layers = [layer for layer in load("kimi-k3").recurrent if layer.kind == "kda"]
    return (sum(record_bytes(layer, RECOVER_RECORD) for layer in layers),
            sum(recurrent_state_bytes(layer) for layer in layers))


def _metrics(p, log: dict) -> list:
    window = p.drafts + 1
    speed = Text("speed: {speed} FLOP/s, from 376.3 ms for 8,000 tokens", speed=number(PREFILL_SPEED.value))
    klass = steps.CLASSES[steps.VIP if p.vip else steps.ORDINARY]
    share = Text("prefill share of its class: {share} %", share=klass.budget.prefill_percent)
    return [
        token_metric("computed_tokens", Text("prompt computed, of {prompt}", prompt=number(log["prompt"])),
                     log["prompt"] - log["hit"]),
        Metric("ttft_ms", Text("time to first token"), 1000 * log["ttft"], "ms", "derived", "float", scale=1.0,
               how=(Text("waits {wait} ms", wait=view.milliseconds(log["wait"])), share, speed)),
        Metric("ttft_cold_ms", Text("with an empty cache"), 1000 * log["cold"], "ms", "derived", "float", scale=1.0),
        Metric("tokens_per_round", Text("tokens per verify round"), steps.ANSWER / log["rounds"], "", "illustrative",
               "float", scale=1.0, how=(Text("a draft is right with 70 % if the one before was"),)),
        Metric("record_bytes", Text("records of {window} positions, K3", window=window), log["records"], "B",
               "derived"),
        Metric("snapshot_bytes", Text("the same as state snapshots"), log["snapshots"], "B", "derived"),
    ]


def rounds_table(p, log: dict) -> Table:
    """The verify rounds that are drawn."""
    rows = [(f"round:{i + 1}", i + 1, p.drafts, kept, p.drafts + 1 - kept) for i, kept in enumerate(log["accepted"])]
    return Table((Column("id", Text("id")), Column("round", Text("round")), Column("drafts", Text("drafts")),
                  Column("kept", Text("tokens kept")), Column("rejected", Text("rejected"))), rows)


def stations_table(log: dict) -> Table:
    """What each station decided, as plain values."""
    return Table((Column("station", Text("station")), Column("value", Text("value"))), [
        ("cluster", log["cluster"]), ("order", "".join(log["order"])), ("running", log["running"]),
        ("waiting", log["waiting"]), ("rows", log["rows"]), ("hit", log["hit"]),
        ("kept", view.listed(log["kept"])), ("saves", view.listed((*log["saves"], *log["answer_saves"]))),
        ("pool", log["blocks"][view.PREFILL]), ("pool after", log["after"])])


EXPERIMENT = Experiment(
    slug="one-request", tab=0, family="home",
    name=Text("One request"),
    title=Text("One request, from router to checkpoint"),
    question=Text("A conversation's next turn arrives. What has to work so that most of it need not be computed "
                  "again?"),
    params=(
        Param("shared", Text("Tokens repeated from turn 1"), "int", 7100, 0, steps.FIRST, 100,
              help=Text("Or drag the bead under the prompt.")),
        Param("down", Text("Cluster that is down"), "choice", "none",
              choices=(("none", Text("none")), *((name, name) for name in steps.CLUSTERS))),
        Param("burst", Text("Ordinary requests just before"), "int", 5, 0, 12, 1),
        Param("vip", Text("This request is VIP"), "bool", True),
        Param("drafts", Text("Draft tokens per round"), "int", 4, 0, 8, 1),
        Param("keep_rejected", Text("Leave rejected drafts in the state"), "bool", False, breaker=True,
              help=Text("The state can no longer be that of plain decoding.")),
    ),
    presets=(
        Preset("calm", Text("A good day"),
               Text("6,144 of 8,100 tokens come from the cache, and a VIP does not see the burst.")),
        Preset("killed", Text("Its cluster dies"),
               Text("The second choice takes over with an empty cache: all 8,100 tokens are computed again."),
               {"down": "d"}),
        Preset("crowded", Text("Ordinary, in a crowd"),
               Text("Nine requests are ahead and it is not VIP: the wait costs more than the cache saves."),
               {"burst": 9, "vip": False}),
        Preset("edited", Text("An early edit"),
               Text("Only 2,000 tokens are the same. Rows match up to 1,536, but the first state was kept at 2,048: "
                    "nothing can be reused."), {"shared": 2000}),
        Preset("no-rollback", Text("No rollback"),
               Text("Rejected drafts stay in the state: after four rounds it is no longer that of plain decoding."),
               {"keep_rejected": True}, breaks=("state",)),
    ),
    prediction=Prediction(Text("How many times sooner does the first token come than with an empty cache?"),
                          (Text("hardly sooner"), Text("up to 2 times"), Text("2 to 4 times"),
                           Text("more than 4 times"))),
    function=run,
    draw={"request": view.draw_request},
    code=(fail_over, PrefixCache.lookup, ProjectionStore.keep),
)
