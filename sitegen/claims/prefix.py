"""Claims about the prefix cache."""

from sitegen.claims.evidence import CONDITIONS, FAILS, HOLDS, Claim, check, metric, run

HIT = run("prefix-hit")
MISS = run("prefix-miss")
SMALL_HIT = run("prefix-hit", shared=1100, own=100, fresh=2000)
UNCHAINED = run("prefix-miss", cause="token", shared=40, chained=False)
ATOMIC = run("checkpoint-atomicity")
EARLY = run("checkpoint-atomicity", publish_on_commit=False)
HALF = run("checkpoint-atomicity", evict_together=False)

CLAIMS = (
    Claim("two-stage-lookup", "prefix", (
        metric("hit", HIT, "hit_tokens"), metric("coarse", run("prefix-hit", hash_block=6144, page=1), "hit_tokens"),
        check("wrong", MISS, "content"), check("wrong_unchained", UNCHAINED, "content"),
    ), lambda n: HOLDS if n.hit > n.coarse and n.wrong == 0 < n.wrong_unchained else FAILS),
    Claim("hit-saves-40", "prefix", (
        metric("saved", HIT, "saved_percent"), metric("needed", HIT, "hit_for_40"),
        metric("saved_small", SMALL_HIT, "saved_percent"),
        metric("saved_nothing", run("prefix-hit", lost="2"), "saved_percent"),
    ), lambda n: FAILS if n.saved <= 40 else HOLDS if min(n.saved_small, n.saved_nothing) > 40 else CONDITIONS),
    Claim("miss-leaves-a-checkpoint", "prefix", (
        metric("written", MISS, "checkpoints_written"), metric("next", MISS, "next_hit_tokens"),
        metric("next_align", run("prefix-miss", policy="align"), "next_hit_tokens"),
        metric("repeat", run("prefix-miss", cause="none", prompt=552), "hit_tokens"),
    ), lambda n: FAILS if not (n.written and n.next) else HOLDS if n.next_align else CONDITIONS),
    Claim("atomic-checkpoint", "prefix", (
        metric("violations", ATOMIC, "violations"), metric("states", ATOMIC, "states_explored"),
        metric("early", EARLY, "counterexample_length"), metric("half", HALF, "counterexample_length"),
    ), lambda n: HOLDS if n.violations == 0 and n.early and n.half else FAILS),
)
