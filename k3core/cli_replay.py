"""`python -m k3core replay`: serve a trace from a prefix cache and count what it saves."""

import sys
from collections.abc import Iterable
from dataclasses import asdict

from .cli_size import GIB, read_model
from .models import Model
from .prefix_cache.policy import Policy, read_policy
from .sizing import KV_DTYPES, Settings, size
from .traces import EVICTIONS, Request, TraceCache, TraceError, finish, read_trace, replay


def add_parser(subparsers) -> None:
    """Add the `replay` command to an argparse subparsers object. Values are checked in `run`."""
    parser = subparsers.add_parser(
        "replay", help="hit rate and bytes of a prefix cache on a trace of requests",
        description="Serves the requests of a trace one after another from a prefix cache of attention rows "
                    "and KDA checkpoints. Bytes are per tensor-parallel rank, without page padding.")
    parser.add_argument("trace", metavar="TRACE.jsonl|.csv",
                        help="Mooncake-style JSON Lines, or a CSV without prefixes (Azure, BurstGPT)")
    parser.add_argument("--hash-block", metavar="N", default="512", help="tokens per entry of hash_ids (512)")
    parser.add_argument("--grain", metavar="N", default="1536",
                        help="tokens of a cached block, and the grid of checkpoints (1536)")
    parser.add_argument("--policy", metavar="dense|align|align+N|marconi|marconi+N|retain:N", default="align",
                        help="where checkpoints are kept (align)")
    parser.add_argument("--capacity-gib", metavar="X|inf", default="inf", help="cache on one rank (inf)")
    parser.add_argument("--eviction", metavar="|".join(EVICTIONS), default="lru",
                        help="what leaves first (lru)")
    parser.add_argument("--model", metavar="MODEL|config.json", default="kimi-k3",
                        help="whose bytes to count (kimi-k3)")
    parser.add_argument("--tp", metavar="N", default="1", help="tensor-parallel ranks (1)")
    parser.add_argument("--kv-dtype", metavar="|".join(KV_DTYPES), default="bf16",
                        help="attention rows (bf16)")
    parser.add_argument("--bad-lines", metavar="refuse|skip", default="refuse",
                        help="what to do with a line that is not a request (refuse)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run, render=render)


def run(args) -> dict:
    """The counts for parsed arguments, with the settings they hold for. Raises ValueError."""
    options = read_options({name: getattr(args, name) for name in READERS})
    model, skipped = read_model(args.model), _Skipper()
    skip = skipped if options["bad_lines"] == "skip" else None
    with open(args.trace, "rb") as lines:
        counted = answer(args.trace, read_trace(lines, options["hash_block"], skip), model, options)
    return counted | {"lines_skipped": skipped.count}


def answer(trace: str, requests: Iterable[Request], model: Model, options: dict) -> dict:
    """The counts for the requests of the trace of that name; options as `read_options` gives them.

    Raises ValueError.
    """
    grain, hash_block, capacity = options["grain"], options["hash_block"], options["capacity_gib"]
    sizes = size(model, Settings(tp=options["tp"], kv_dtype=options["kv_dtype"]))
    cache = TraceCache(options["policy"], grain, hash_block, capacity,
                       round(grain * sizes["bytes_per_token"]), sizes["checkpoint_bytes"], options["eviction"])
    try:
        counts = finish(replay(requests, cache))
    except TraceError as error:
        raise ValueError(f"{trace}, {error}") from None
    except ValueError as error:  # of the whole trace
        raise ValueError(f"{trace}: {error}") from None
    return {"trace": trace, "policy": str(cache.policy), "grain": grain, "hash_block": hash_block,
            "capacity_bytes": capacity, "eviction": options["eviction"], "model": model.name,
            "tp": options["tp"], "kv_dtype": options["kv_dtype"], "block_bytes": cache.block_bytes,
            "checkpoint_bytes": cache.checkpoint_bytes, **asdict(counts), "hit_rate": counts.hit_rate}


def read_options(texts: dict[str, str]) -> dict:
    """Options as text (with underscores in their names) as values, the missing ones at their defaults.

    Raises ValueError.
    """
    return {name: reader(name, texts.get(name, default)) for name, (reader, default) in READERS.items()}


def render(answer: dict) -> list[str]:
    """The answer as plain text for a terminal."""
    capacity = answer["capacity_bytes"]
    room = "without limit" if capacity is None else f"{capacity / GIB:,.2f} GiB, {answer['eviction']}"
    lines = [f"{answer['trace']}: policy {answer['policy']}, grain {answer['grain']:,}, cache {room}",
             f"{answer['model']}, TP {answer['tp']}, KV {answer['kv_dtype']} (per rank): a block "
             f"{answer['block_bytes']:,} bytes, a checkpoint {answer['checkpoint_bytes']:,}", ""]
    for key in ("requests", "input_tokens", "hit_tokens", "hit_rate", "rows_hit_tokens", "requests_with_hit",
                "blocks_total", "blocks_distinct", "checkpoints", "checkpoints_written",
                "evicted_checkpoints", "evicted_blocks", "peak_bytes", "lines_skipped"):
        value = answer[key]
        text = f"{value:.4f}" if key == "hit_rate" else f"{value:,}"
        if key == "peak_bytes":
            text += f" ({value / GIB:,.2f} GiB)"
        lines.append(f"  {key.replace('_', ' '):<22}{text}")
    return lines


class _Skipper:
    """Names each bad line on standard error, and counts them."""

    def __init__(self):
        self.count = 0

    def __call__(self, error: TraceError) -> None:
        self.count += 1
        print(f"skipped {error}", file=sys.stderr)


def _positive(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
        raise ValueError(f"--{name.replace('_', '-')} is {text!r}; it must be a positive integer")
    return int(text)


def _capacity(name: str, text: str) -> int | None:
    if text == "inf":
        return None
    try:
        capacity = int(float(text) * GIB)
    except (ValueError, OverflowError):
        capacity = 0
    if not 0 < capacity < 2**63:
        raise ValueError(f"--capacity-gib is {text!r}; it must be a positive number of GiB, or inf")
    return capacity


def _policy(name: str, text: str) -> Policy:
    return read_policy(text)


def _choice(*choices: str):
    def read(name: str, text: str) -> str:
        if text not in choices:
            raise ValueError(f"--{name.replace('_', '-')} is {text!r}; choose {', '.join(choices)}")
        return text
    return read


READERS = {
    "hash_block": (_positive, "512"), "grain": (_positive, "1536"), "policy": (_policy, "align"),
    "capacity_gib": (_capacity, "inf"), "eviction": (_choice(*EVICTIONS), "lru"), "tp": (_positive, "1"),
    "kv_dtype": (_choice(*KV_DTYPES), "bf16"), "bad_lines": (_choice("refuse", "skip"), "refuse"),
}
"""Options besides trace and model: name -> (function of name and text, default)."""
