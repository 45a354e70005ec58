"""The derivation of the workbench `sizing`: every step as a formula, with its numbers, and its result."""

import re

from k3core.lab.contract import Column, Table
from k3core.lab.text import Text

# answer -> the steps of the derivation that lead to it, by name or by the end of the name
HOW = {
    "block_size": ("_state_bytes", "_conv_bytes", "_bytes_per_token", "block_size"),
    "bytes_per_token": ("_bytes_per_token", "bytes_per_token"),
    "slot_bytes": ("_state_bytes", "state_bytes_per_sequence", "_conv_bytes", "conv_bytes_per_sequence",
                   "slot_bytes"),
    "token_equivalent": ("checkpoint_bytes", "bytes_per_token", "token_equivalent"),
    "page_bytes": ("block_size", "page_bytes"),
    "padding_percent": ("page_bytes", "padding_percent"),
    "padding_layers": ("group_size", "padding_layers"),
    "blocks_per_request": ("slots_per_request.snapshots", "blocks_per_request"),
    "request_bytes": ("block_bytes", "blocks_per_request", "request_bytes"),
    "num_blocks": ("block_bytes", "num_blocks"),
    "requests": ("num_blocks", "blocks_per_request", "limit.requests_at_max_model_len"),
    "requests_at_one_token": ("limit.requests_at_one_token",),
    "binds": ("blocks_per_request",),
    "reported_tokens": ("blocks_per_request", "reported_tokens", "reported_tokens_before"),
}


def state_dtype_why(answer: dict) -> Text:
    """Why the recurrent state has the dtype that it has, in a few words."""
    return {
        "gdn": Text("the model's own, as vLLM takes for GDN"), "kda": Text("vLLM's for KDA, whatever the model's"),
        "mamba2": Text("vLLM's default for Nemotron-H"), "file": Text("named in the model's file"),
        "given": Text("as it is set"), "": Text("no recurrent state"),
    }[answer["state_dtype_from"]]


def derivation(answer: dict, key: str) -> tuple:
    """The steps that lead to an answer, as lines: a formula, the same with its numbers, the result."""
    lines = []
    for step in answer["derivation"]:
        if _leads_to(step["name"], HOW[key]):
            lines += [f"{step['name']} = {step['formula']}",
                      f"    = {with_numbers(step)} = {_plain_number(step['result'])}"]
    return tuple(lines)


def _leads_to(step: str, names: tuple) -> bool:
    return not step.startswith("record_") and any(
        step == name or (name.startswith("_") and step.endswith(name)) for name in names)


def with_numbers(step: dict) -> str:
    """The formula of a step with its values written in: arithmetic that Python can redo."""
    return re.sub(r"[a-z_][a-z_0-9]*", lambda match: str(step["values"].get(match[0], match[0])),
                  step["formula"])


def _plain_number(value) -> str:
    return f"{value:.4f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def derivation_table(answer: dict) -> Table:
    """Every step, in order."""
    rows = [(f"step:{step['name']}", step["name"], step["formula"], with_numbers(step), step["result"])
            for step in answer["derivation"]]
    return Table((Column("id", Text("id")), Column("name", Text("step")), Column("formula", Text("formula")),
                  Column("numbers", Text("with its numbers")),
                  Column("result", Text("result"), "float", scale=1.0)),
                 rows, Text("The whole derivation, per tensor-parallel rank"))
