"""JSON text from strangers: what is wrong is told by line and column, and what is nested too deeply is refused.

A parser could run out of stack there.
"""

import json
import re

DEEPEST = 100  # levels; a model's config or a line of a trace has three or four
_MARKS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)
# How a message of Python's json begins -> what is wrong.
REASONS = {
    "Expecting value": "a value is missing",
    "Expecting property name": "a name in double quotes is missing",
    "Expecting ':'": "a colon is missing",
    "Expecting ','": "a comma or a closing bracket is missing",
    "Illegal trailing comma": "nothing follows this comma",
    "Extra data": "the JSON has ended before this",
    "Unterminated string": "the text that begins here does not end",
    "Invalid control character": "a text holds a line end or another control character",
    "Invalid \\": "what follows the backslash is no escape",
}
EMPTY, OTHER = "there is nothing to read", "this cannot be read"


class NotJSON(ValueError):
    """Text that is not JSON: where, line and column counted from 1, and the reason, one of those above."""

    def __init__(self, line: int, column: int, reason: str):
        super().__init__(f"line {line}, column {column}: {reason}; this is not JSON")
        self.line, self.column, self.reason = line, column, reason


def loads(text: str):
    """`json.loads`, but NotJSON for what is wrong, and RecursionError beyond 100 levels: WebAssembly has no guard there
    and would end the interpreter. A number of thousands of digits is a ValueError."""
    if text.count("[") + text.count("{") > DEEPEST:
        level = 0
        for mark in _MARKS.finditer(text):
            level += {"[": 1, "{": 1, "]": -1, "}": -1}.get(mark[0], 0)
            if level > DEEPEST:
                raise RecursionError(f"nested more than {DEEPEST} levels deep")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        reason = next((own for begin, own in REASONS.items() if error.msg.startswith(begin)), OTHER)
        raise NotJSON(error.lineno, error.colno, reason if text.strip() else EMPTY) from None
    except ValueError:
        raise ValueError("it holds a number of thousands of digits") from None
