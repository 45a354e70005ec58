"""`python -m k3core size`: read a model and settings from the command line, answer as data and as text."""

import math
import os
from pathlib import Path

from . import models, nesting
from .lab.params import shown
from .lab.sizing_steps import state_dtype_why
from .sizing import GROUPINGS, KV_DTYPES, LARGEST, MODES, STATE_DTYPES, Settings, log_lines, size

GIB = 2**30


def add_parser(subparsers) -> None:
    """Add the `size` command to an argparse subparsers object. Values are checked in `run`, not by
    argparse."""
    parser = subparsers.add_parser(
        "size",
        help="bytes, block size and capacity of a model's cache",
        description="How many bytes a model's cache takes, which block size an engine chooses, and, given its memory, "
        "how many requests fit. All figures are per tensor-parallel rank. Where no request fits, the last line says "
        "what one takes; that is an answer, and the exit status 0.",
    )
    parser.add_argument(
        "model",
        metavar="MODEL|config.json",
        help=f"a preset ({', '.join(models.names())}) or a model's config.json",
    )
    parser.add_argument("--tp", metavar="N", help="tensor-parallel ranks (1)")
    parser.add_argument("--kv-dtype", metavar="|".join(KV_DTYPES), help="attention rows (bf16)")
    parser.add_argument(
        "--state-dtype", metavar="|".join(STATE_DTYPES),
        help="recurrent state (as the model's file says, else vLLM's default)",
    )
    parser.add_argument(
        "--conv-dtype", metavar="|".join(STATE_DTYPES), help="short-convolution window (bf16)"
    )
    parser.add_argument("--drafts", metavar="N", help="draft tokens per step (0)")
    parser.add_argument("--align", metavar="N", help="tokens a block is a multiple of (64 for MLA, else 16)")
    parser.add_argument(
        "--mode", metavar="|".join(MODES), help="when states are kept for prefix reuse (align)"
    )
    parser.add_argument("--grouping", metavar="|".join(GROUPINGS), help="rule for layers per group (default)")
    parser.add_argument("--max-model-len", metavar="N", help="tokens of the longest request (the model's)")
    parser.add_argument("--memory-gib", metavar="X", help="memory for the cache on one rank")
    parser.add_argument("--num-blocks", metavar="N", help="blocks in the pool, instead of --memory-gib")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run, render=render)


def run(args) -> dict:
    """The answer for parsed arguments. Raises ValueError."""
    given = {name: getattr(args, name) for name in READERS if getattr(args, name) is not None}
    return answer(read_model(args.model), given)


def answer(model: models.Model, options: dict[str, str]) -> dict:
    """`sizing.size` plus "log_lines", for options as the command line takes them. Raises ValueError."""
    result = size(model, read_settings(options))
    result["log_lines"] = log_lines(result)
    return result


def read_settings(options: dict[str, str]) -> Settings:
    """Options as text (with underscores in their names) as settings. Raises ValueError."""
    values = {name: READERS[name](name, text) for name, text in options.items()}
    if "memory_gib" in values:
        values["memory_bytes"] = values.pop("memory_gib")
    return Settings(**values)


def read_model(name: str) -> models.Model:
    """A preset by name, or the model that a config.json (or the folder that holds one) describes.

    Raises ValueError, OSError.
    """
    if name in models.names():
        return models.load(name)
    path = Path(name, "config.json") if os.path.isdir(name) else Path(name)
    if not os.path.lexists(name):
        raise ValueError(no_model(name))
    return model_from(path.read_bytes(), str(path))


def no_model(name: str) -> str:
    """What to say of a name that is no model; it names the presets there are."""
    return f"{shown(name)} is neither a file nor a preset ({', '.join(models.names())})"


def model_from(content: bytes, name: str) -> models.Model:
    """The model that the bytes of a config.json describe. Raises ValueError that begins with the name."""
    try:
        config = nesting.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ValueError(f"{name}: this is not text in UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name}: {error}") from None
    return models.from_config(config, name=name)


def render(answer: dict) -> list[str]:
    """The answer as lines for a terminal."""
    settings = answer["settings"]
    lines = [f"{answer['title']}, TP {settings['tp']}, KV {settings['kv_dtype']}, state "
             f"{settings['state_dtype']}, mode {settings['mode']}, drafts {settings['drafts']} (per rank)"]
    if answer["state_dtype_from"]:
        lines.append(f"State dtype {settings['state_dtype']}: {state_dtype_why(answer).render('en')}")
    if answer["note"]:
        lines.append(answer["note"])
    for heading, keys in SECTIONS.items():
        rows = [(key.replace("_", " "), _shown(key, answer[key])) for key in keys if answer[key] is not None]
        if rows:
            lines += ["", heading, *(f"  {name:<28}{value}" for name, value in rows)]
    if answer["log_lines"]:
        lines += ["", "An engine would log", *(f"  {line}" for line in answer["log_lines"])]
    return [*lines, *_advice(answer)]


def _advice(answer: dict) -> list[str]:
    """What to ask for where it is not said how many requests fit, or where none does; with a line before it."""
    settings, limit = answer["settings"], answer["limit"]
    if limit is None:
        lacking = [] if answer["num_blocks"] is not None else ["--memory-gib X (or --num-blocks N)"]
        lacking += [] if settings["max_model_len"] else ["--max-model-len N"]
        return ["", f"How many requests fit: add {' and '.join(lacking)}."]
    if limit["requests_at_max_model_len"]:
        return []
    more = f"--memory-gib {-(-answer['request_bytes'] * 10**4 // GIB) / 10**4}"
    if settings["memory_bytes"] is None:
        more = f"--num-blocks {answer['blocks_per_request']}"
    shorter = ", or a shorter --max-model-len" if limit["requests_at_one_token"] else ""
    return ["", f"Nothing fits: one request of {settings['max_model_len']:,} tokens takes "
                f"{_shown('request_bytes', answer['request_bytes'])} bytes. Give {more} or more{shorter}."]


SECTIONS = {
    "Bytes": (
        "bytes_per_token",
        "window_bytes_per_sequence",
        "state_bytes_per_sequence",
        "conv_bytes_per_sequence",
        "checkpoint_bytes",
        "slot_bytes",
        "token_equivalent",
        "record_bytes_per_sequence",
    ),
    "Layout": ("block_size", "page_bytes", "padding_percent", "groups", "padding_layers", "block_bytes"),
    "One request": (
        "slots_per_request",
        "blocks_per_request",
        "blocks_per_request_replay",
        "blocks_per_request_by_mode",
        "request_bytes",
    ),
    "Pool": (
        "num_blocks",
        "max_concurrency",
        "max_concurrency_replay",
        "reported_tokens",
        "reported_tokens_before",
        "reported_tokens_at",
        "limit",
    ),
    "Policy": ("policy",),
}


def _shown(key: str, value) -> str:
    if key == "groups":
        return ", ".join(f"{group['kind']} {group['layers']}" for group in value)
    if key == "reported_tokens_at":
        return ", ".join(f"{row['tokens']:,} at {row['max_model_len']:,}" for row in value)
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')} {_shown(name, inner)}" for name, inner in value.items())
    if isinstance(value, float):
        return f"{value:,.2f}"
    if not isinstance(value, int):
        return "not known" if value is None else str(value)
    if "bytes" in key and value >= 2**20:
        unit, name = (GIB, "GiB") if value >= GIB else (2**20, "MiB")
        return f"{value:,} ({value / unit:,.2f} {name})"
    return f"{value:,}"


def _integer(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"--{name.replace('_', '-')} is {shown(text)}; it must be an integer") from None


def _gib(name: str, text: str) -> int:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 1 / GIB <= value <= LARGEST / GIB:
        raise ValueError(f"--memory-gib is {shown(text)}; it must be a number of GiB, at most 2**23")
    return int(value * GIB)


def _text(name: str, text: str) -> str:
    return text


READERS = {
    "tp": _integer,
    "kv_dtype": _text,
    "state_dtype": _text,
    "conv_dtype": _text,
    "drafts": _integer,
    "align": _integer,
    "mode": _text,
    "grouping": _text,
    "max_model_len": _integer,
    "memory_gib": _gib,
    "num_blocks": _integer,
}
"""Options besides the model: name -> function of name and text."""
