"""JSON text from strangers: refused where it is nested so deeply that a parser could run out of stack."""

import json
import re

DEEPEST = 100  # levels; a model's config or a line of a trace has three or four
_MARKS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


def loads(text: str):
    """`json.loads`, but RecursionError beyond 100 levels: WebAssembly has no guard there and would end the interpreter."""
    if text.count("[") + text.count("{") > DEEPEST:
        level = 0
        for mark in _MARKS.finditer(text):
            level += {"[": 1, "{": 1, "]": -1, "}": -1}.get(mark[0], 0)
            if level > DEEPEST:
                raise RecursionError(f"nested more than {DEEPEST} levels deep")
    return json.loads(text)
