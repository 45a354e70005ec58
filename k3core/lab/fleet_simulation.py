"""Tab `fleet-simulation`: routing, admission and traffic together, under a burst, with clusters that die and join."""

from k3core.fleet.admission import Admission
from k3core.fleet.routing import Affinity, BoundedAffinity, CacheCost, LeastLoaded
from k3core.fleet.scenario import Scenario, play
from k3core.lab import fleet_simulation_view as view
from k3core.lab.contract import Check, Column, Experiment, Metric, Prediction, Preset, Result, Scene, Table
from k3core.lab.display import number
from k3core.lab.fleet_simulation_runs import (
    Runs,
    conservation_error,
    finite,
    forget_lost,
    inside_on_average,
    mean_tokens,
    one_cent_hit_rate,
    price,
    run_all,
)
from k3core.lab.fleet_time import KINDS, POLICY_NAMES, verdict
from k3core.lab.params import Param
from k3core.lab.text import Text

ROUTER_NAMES = {"affinity": Text("session affinity"), "bounded_affinity": Text("affinity with bounded loads"),
                "cache_cost": Text("cache-aware cost"), "least_loaded": Text("least loaded"),
                "two_choices": Text("two random choices"), "round_robin": Text("round robin")}
MEASURES = {"wait": Text("waiting only"), "ttft": Text("until the first token"),
            "response": Text("until the last token")}
LIMITS = (200.0, 800.0)  # milliseconds of the claim: isolated at most, shared at least
MEASURED = (  # llm-d-batch-gateway #491: P50, P95, P99 of the first token in ms, interactive beside batch
    (Text("interactive alone"), 72.8, 90.7, 96.5), (Text("no protection"), 258.4, 871.5, 941.3),
    (Text("flow control"), 82.8, 251.9, 329.7), (Text("low concurrency cap"), 82.6, 728.0, 784.3))
OPTIONS = (200.0, 800.0, 5000.0)  # bounds between the options of the prediction, in ms
LITTLE, CONSERVED = 1e-9, 1e-9


def run(p, seed: int):
    """Simulate, then read off distributions, costs, loads, and what each cluster did."""
    runs = yield from run_all(p, seed)
    own, measure = runs.own, runs.situation.measure
    tables = {"classes": classes_table(runs), "meanings": meanings_table(runs), "load": load_table(runs),
              "clusters": clusters_table(runs, p), "measured": measured_table(),
              "percentiles": percentiles_table(runs), "cost": cost_table(own)}
    log = view.events(p, runs)
    shared = finite(runs.outcomes["shared"].p99_ms(0, measure))
    return Result(
        metrics=_metrics(runs),
        checks=_checks(runs),
        tables=tables,
        figures=[view.percentiles_figure(tables["percentiles"]), view.cost_figure(own.hit_rate)],
        scenes=[Scene("fleet", Text("The fleet over time: kill a cluster, add one, raise the burst"), log,
                      view.captions(log),
                      poster=log["poster"])],
        answer=sum((shared or 0.0) > bound for bound in OPTIONS),
        answer_text=Text("It is {shared} in one queue, and {isolated} with a budget of its own.",
                         shared=view.ms_words(shared),
                         isolated=view.ms_words(finite(runs.outcomes["strict"].p99_ms(0, measure)))),
    )


def _metrics(runs: Runs) -> list:
    own, measure = runs.own, MEASURES[runs.situation.measure]
    ms = {"unit": "ms", "kind": "float", "scale": 1.0}
    values = {(policy, klass): finite(runs.outcomes[policy].p99_ms(klass, runs.situation.measure))
              for policy in ("strict", "shared") for klass in (0, 1)}
    inside, rate, mean = inside_on_average(own.run)
    prompt, output = mean_tokens(own)
    needed = one_cent_hit_rate(prompt, output)
    load = max((max(pool.slots, pool.prefill) for pool in own.load_in_burst), default=0.0)
    return [
        Metric("vip_p99_isolated_ms", Text("VIP P99 with its own budget, {measure}", measure=measure),
               values["strict", 0], **ms),
        Metric("vip_p99_shared_ms", Text("VIP P99 in one queue, {measure}", measure=measure), values["shared", 0],
               **ms),
        Metric("ordinary_p99_isolated_ms", Text("ordinary P99 beside VIP's budget"), values["strict", 1], **ms),
        Metric("ordinary_p99_shared_ms", Text("ordinary P99 in one queue"), values["shared", 1], **ms),
        Metric("hit_rate", Text("prompt tokens found in the cache"), own.hit_rate, "share", kind="float", scale=1.0),
        Metric("cost_per_request_usd", Text("price of a request, K3 list prices"), own.cost_usd, "USD", badge="derived",
               kind="float", scale=1.0, text=f"${number(own.cost_usd, 3)}", how=(
                   Text("{prompt} prompt tokens, {share} of them hits; {output} output tokens",
                        prompt=number(prompt, 5),
                        share=number(own.hit_rate, 3), output=number(output, 4)),
                   Text("$3.00 a million for misses, $0.30 for hits, $15.00 for output"))),
        Metric("one_cent_hit_rate", Text("hit rate at which a request costs one cent"), needed, "share",
               badge="derived",
               kind="float", scale=1.0),
        Metric("rejected", Text("requests refused"), own.rejected),
        Metric("load_in_burst", Text("offered to the fullest budget in the burst: {verdict}", verdict=verdict(load)),
               load, "×",
               kind="float", scale=1.0),
        Metric("inside_mean", Text("requests inside on average, L"), inside, kind="float", scale=1.0, how=(
            Text("λ = {rate} per second, W = {mean} s, λW = {product}", rate=number(rate), mean=number(mean),
                 product=number(rate * mean)),)),
    ]


def _checks(runs: Runs) -> list:
    books = {check.key: [] for check in runs.own.checks}
    for outcome in runs.outcomes.values():
        for check in outcome.checks:
            books[check.key].append(check)
    missing = sum(check.measured for check in books["requests_conserved"])
    error = max(check.measured for key in ("littles_law_system", "littles_law_slots") for check in books[key])
    peak = max(check.measured for check in books["slots_within_capacity"])
    return [
        Check("isolated", Text("strict reservation: VIP's course is the same without any ordinary traffic"),
              runs.changed == 0, runs.changed, 0),
        Check("requests_conserved", Text("every request is served or refused, those of dead clusters too"),
              missing == 0, missing, 0),
        Check("littles_law", Text("Little's law, L = λW, in the fleet and in its slots"), error <= LITTLE, error,
              Text("a relative error of at most {bound}", bound=number(LITTLE))),
        Check("conservation_law", Text("conservation law: on one server, priority moves waiting and removes none"),
              runs.law_error <= CONSERVED, runs.law_error,
              Text("a relative error of at most {bound}", bound=number(CONSERVED))),
        Check("slots_within_capacity", Text("no cluster runs more requests than it has slots"),
              peak <= runs.situation.slots, peak, runs.situation.slots),
    ]


def classes_table(runs: Runs) -> Table:
    """Per policy and class: counts, mean and percentiles of the measure, over the whole run and in the burst."""
    rows, measure = [], runs.situation.measure
    for policy, outcome in runs.outcomes.items():
        for one, burst in zip(outcome.classes, outcome.in_burst):
            times, low_high = getattr(one, measure), getattr(one, measure).p99_interval
            values = (times.mean, times.p50, times.p90, times.p95, times.p99, *low_high, getattr(burst, measure).p99)
            rows.append((f"policy:{policy}", POLICY_NAMES[policy], KINDS[one.name], one.completed,
                         sum(one.rejected.values()),
                         one.lost_attempts, *(finite(1000 * value) for value in values)))
    ms = ("float", "ms", 1.0)
    return Table((Column("id", Text("id")), Column("policy", Text("policy")), Column("class", Text("class")),
                  Column("served", Text("served")), Column("refused", Text("refused")),
                  Column("lost", Text("lost attempts")),
                  Column("mean", Text("mean"), *ms), Column("p50", Text("P50"), *ms), Column("p90", Text("P90"), *ms),
                  Column("p95", Text("P95"), *ms), Column("p99", Text("P99"), *ms),
                  Column("low", Text("P99 from"), *ms),
                  Column("high", Text("to (95 %)"), *ms), Column("burst", Text("P99 in the burst"), *ms)),
                 rows, Text("Every class under each policy, {measure}", measure=MEASURES[measure]))


def meanings_table(runs: Runs) -> Table:
    """What 200 ms can mean: three measures of the same runs against the claim."""
    rows = []
    for measure, name in MEASURES.items():
        isolated, shared = (finite(runs.outcomes[policy].p99_ms(0, measure)) for policy in ("strict", "shared"))
        rows.append((name, isolated, shared, claim_verdict(isolated, shared)))
    ms = ("float", "ms", 1.0)
    return Table((Column("measure", Text("measured")), Column("isolated", Text("VIP P99, own budget"), *ms),
                  Column("shared", Text("VIP P99, one queue"), *ms),
                  Column("verdict", Text("at most 200, at least 800 ms"))),
                 rows, Text("What 200 ms can mean"))


def claim_verdict(isolated: float | None, shared: float | None) -> Text:
    """Whether isolated VIP stays within 200 ms and shared VIP exceeds 800 ms."""
    if isolated is None or shared is None:
        return Text("nobody was served")
    first, second = isolated <= LIMITS[0], shared >= LIMITS[1]
    if first and second:
        return Text("holds")
    return Text("first half fails") if second else Text("second half fails") if first else Text("both halves fail")


def load_table(runs: Runs) -> Table:
    """What is offered to each budget, over the whole run and in the burst, under each policy."""
    rows = []
    for policy, outcome in runs.outcomes.items():
        for when, loads in ((Text("whole run"), outcome.load), (Text("in the burst"), outcome.load_in_burst)):
            for pool in loads:
                rows.append((POLICY_NAMES[policy], KINDS.get(pool.name, Text("both")), when, pool.slots, pool.prefill,
                             verdict(max(pool.slots, pool.prefill))))
    return Table((Column("policy", Text("policy")), Column("budget", Text("budget of")), Column("when", Text("when")),
                  Column("slots", Text("slots"), "float", scale=1.0),
                  Column("prefill", Text("prefill compute"), "float", scale=1.0), Column("verdict", Text("verdict"))),
                 rows, Text("Offered load, as a share of the budget"))


def clusters_table(runs: Runs, p) -> Table:
    """What each cluster that is drawn did under the reader's policy."""
    run, rows = runs.own.run, []
    computed, done = run.computed_tokens().tolist(), run.completed
    for letter, cluster in view.drawn(p):
        mine = done & (run.cluster == cluster)
        prompt, hit = int(run.requests.prompt[mine].sum()), int(run.hit[mine].sum())
        lost = sum(row[1] == cluster for row in run.lost)
        rows.append((f"node:{letter}", letter, int(mine.sum()), lost, prompt, computed[cluster],
                     hit / prompt if prompt else None))
    return Table((Column("id", Text("id")), Column("cluster", Text("cluster")), Column("served", Text("served")),
                  Column("lost", Text("lost attempts")), Column("prompt", Text("prompt tokens served")),
                  Column("computed", Text("prompt tokens computed")),
                  Column("hit", Text("hit rate"), "float", "share", 1.0)), rows, Text("Cluster by cluster"))


def measured_table() -> Table:
    """Published: what protection did for interactive requests on a real engine."""
    ms = ("float", "ms", 1.0)
    return Table((Column("protection", Text("protection")), Column("p50", Text("P50"), *ms),
                  Column("p95", Text("P95"), *ms),
                  Column("p99", Text("P99"), *ms)), list(MEASURED),
                 Text("Measured elsewhere: gpt-oss-120b beside batch jobs, llm-d-batch-gateway #491"))


def percentiles_table(runs: Runs) -> Table:
    """VIP's percentiles with its own budget and in one queue, for the first chart."""
    rows = []
    for policy, kind in (("strict", "isolated"), ("shared", "shared")):
        times = getattr(runs.outcomes[policy].classes[0], runs.situation.measure)
        for share, value in ((50, times.p50), (90, times.p90), (95, times.p95), (99, times.p99), (100, times.maximum)):
            if finite(value) is not None:
                rows.append((f"P{share}" if share < 100 else "max", kind, 1000 * value))
    return Table((Column("share", Text("percentile")), Column("kind", Text("kind")),
                  Column("time", Text("VIP"), "float", "ms", 1.0)), rows)


def cost_table(own) -> Table:
    """Price of the mean request against the hit rate, for the second chart."""
    prompt, output = mean_tokens(own)
    rows = [(step / 20, 100 * price(prompt, output, step / 20)) for step in range(21)]
    return Table((Column("hit", Text("hit rate"), "float", "share", 1.0),
                  Column("cents", Text("cents per request"), "float", scale=1.0)), rows)


EXPERIMENT = Experiment(
    slug="fleet-simulation", tab=14, family="fleet",
    name=Text("Simulation"),
    title=Text("A fleet under a burst: routing, admission, failure"),
    question=Text("Does a budget of its own keep VIP's P99 within 200 ms while a shared queue takes it past 800 ms? On "
                  "which service times, with which prefixes, and who pays when a cluster dies in the middle?"),
    params=(
        Param("traffic", Text("Traffic"), "choice", "chat", choices=(
            ("chat", Text("conversations on K3")), ("agents", Text("agents, prefixes of 400,000 tokens")),
            ("short", Text("short questions on K3")), ("fixed", Text("answers of exactly 100 ms")),
            ("exponential", Text("answers of 100 ms, exponential")))),
        Param("policy", Text("Admission policy"), "choice", "strict", choices=tuple(POLICY_NAMES.items())),
        Param("router", Text("Router"), "choice", "affinity", choices=tuple(ROUTER_NAMES.items())),
        Param("burst", Text("Ordinary traffic in the burst"), "float", 3.0, 1, 6, 0.5, unit="×"),
        Param("vip_percent", Text("Budget of VIP"), "int", 30, 5, 60, 1, unit="%",
              help=Text("Of slots, pages and prefill compute of every cluster.")),
        Param("clusters", Text("Clusters"), "int", 4, 1, 8, 1),
        Param("size", Text("Fleet and traffic, times"), "choice", 1, choices=((1, "1"), (2, "2"), (4, "4"), (10, "10")),
              help=Text("10: some 30,000 requests. It can be stopped.")),
        Param("deaths", Text("Second at which a, b, c, … dies"), "list", [0] * 8, 0, 600, 1, max_length=8,
              help=Text("0: never. In the drawing: × at a cluster, at the time of the clock.")),
        Param("repair", Text("A dead cluster is back after, seconds"), "int", 0, 0, 300, 5,
              help=Text("0: never. It comes back empty.")),
        Param("joins", Text("Seconds at which a cluster joins"), "list", [0] * 4, 0, 600, 1, max_length=4),
        Param("mistake", Text("Mistake"), "choice", "none", breaker=True, choices=(
            ("none", Text("none")), ("lend", Text("strict lends what lies idle")),
            ("forget", Text("what a dead cluster had is forgotten")))),
    ),
    presets=(
        Preset("unprotected", Text("One queue"), Text(
            "The same traffic without budgets: through the burst everyone waits, VIP too, and P99 is above ten "
            "seconds for both."), {"policy": "shared"}),
        Preset("claim", Text("The claim: 200 and 800 ms"), Text(
            "Answers that take exactly 100 ms, 64 slots, a burst of four times: VIP P99 is about 150 ms with its own "
            "quarter and 2.5 s in one queue. Ordinary P99 pays about 40 %."),
            {"traffic": "fixed", "clusters": 1, "burst": 4.0, "vip_percent": 25}),
        Preset("claim-exponential", Text("The claim fails"), Text(
            "The same with exponential answers of 100 ms on average: P99 of the answer alone is 461 ms, so no "
            "isolation can reach 200 ms. It is 484 ms although VIP owns 38 %."),
            {"traffic": "exponential", "clusters": 1, "burst": 4.0, "vip_percent": 38}),
        Preset("round-robin", Text("Without affinity"), Text(
            "Round robin sends each turn to another cluster: hits fall from 90 to 55 %, the fleet computes four times "
            "as many tokens, and P99 rises to minutes."), {"router": "round_robin"}),
        Preset("cluster-loss", Text("A cluster dies"), Text(
            "Cluster a dies at 30 s and is back, empty, at 60 s. Its sessions prefill again, first on their "
            "secondaries and then at home: VIP P99 rises from 155 ms to seconds."),
            {"burst": 1.0, "deaths": [30], "repair": 30}),
        Preset("scale-out", Text("A cluster joins"), Text(
            "A fifth cluster joins in the burst. It takes a fifth of all sessions and none of their prefixes, so it "
            "starts as the slowest of all."), {"burst": 2.5, "joins": [35]}),
        Preset("agentic-day", Text("Agents, 400K tokens"), Text(
            "98 % of the prompt tokens are hits, and a request still costs 15 cents. VIP is slower with 40 % of its "
            "own than in the shared queue, which is never full."),
            {"traffic": "agents", "burst": 2.0, "vip_percent": 40}),
        Preset("one-cent", Text("Under one cent"), Text(
            "Short questions behind a cached prefix, 250 tokens of answer: 0.75 cents each. Without a single hit it "
            "would be 2.5. And with no burst to fear, VIP's 30 % of the machine is slower than sharing all of it."),
            {"traffic": "short", "burst": 1.0}),
        Preset("in-name-only", Text("Strict in name only"), Text(
            "Strict reservation that lends what lies idle: VIP feels the burst, and the check says how many requests."),
            {"mistake": "lend"}, breaks=("isolated",)),
        Preset("forgotten", Text("Lost with their cluster"), Text(
            "Cluster a dies at 40 s and the router forgets what it had: requests are missing from the books, and "
            "Little's law notices."),
            {"mistake": "forget", "deaths": [40]}, breaks=("requests_conserved", "littles_law")),
    ),
    prediction=Prediction(Text("Without budgets, VIP and ordinary requests share one queue through the burst. What "
                               "becomes of VIP's P99?"),
                          (Text("it stays within 200 ms"), Text("200 to 800 ms"), Text("0.8 to 5 s"),
                           Text("more than 5 s"))),
    function=run,
    draw={"fleet": view.draw_fleet},
    code=(play, Scenario, Admission, Affinity, BoundedAffinity, CacheCost, LeastLoaded, forget_lost,
          conservation_error),
)
