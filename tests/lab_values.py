"""Hypothesis strategies for the parameters of experiments, and for raw values that nobody should send."""

from hypothesis import strategies as st

from k3core.lab.params import Param


def valid(param: Param):
    """Values that `param` takes, over its whole range."""
    if param.kind == "bool":
        return st.booleans()
    if param.kind == "choice":
        return st.sampled_from([value for value, _ in param.choices])
    if param.kind == "text":
        return st.text(st.characters(exclude_categories=["Cs"]), max_size=min(param.max_length, 30))
    if param.kind == "list":
        items = _numbers(param, isinstance(param.default[0], int))
        return st.lists(items, min_size=1, max_size=min(param.max_length, 8))
    return _numbers(param, param.kind == "int")


def settings_of(experiment):
    """Whole sets of parameters of an experiment. A text that means something is cut, not made up."""
    return st.fixed_dictionaries({
        param.name: st.integers(1, len(param.default)).map(lambda end, text=param.default: text[:end])
        if param.kind == "text" and param.default else valid(param) for param in experiment.params})


def as_text(value) -> str:
    """A value as the page's address and the command line write it."""
    if isinstance(value, list):
        return ",".join(map(as_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _numbers(param: Param, whole: bool):
    if whole:
        step = int(param.step or 1)
        count = int((param.maximum - param.minimum) // step)
        return st.integers(0, count).map(lambda n: int(param.minimum) + step * n)
    return st.floats(param.minimum, param.maximum, allow_nan=False)


# Raw values that no number, choice, switch or list takes, as JSON, a link or a caller may bring them.
NONSENSE = [
    None, "", " ", "nan", "NaN", "inf", "-inf", "1e999", "-1e999", "0x10", "1_000", "1,5e", "--1", "+", ".", "e5",
    "\u0661\u0662", "\uff11\uff12", "\u00b2", "1 2", "1\n2", "<img src=x onerror=alert(1)>", "'; drop",
    "9" * 5000,
    "x" * 100_000, "\x00", "\ud800", "{", "null", [], {}, [[]], ["<b>"], [None], {"a": 1}, (), b"1", object(),
    float("nan"), float("inf"), -float("inf"), 10**400, -(10**400), 10**5000, 1j,
]
