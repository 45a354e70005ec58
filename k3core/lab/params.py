"""What a reader can set: one Param per control, and the only place where a raw value is checked."""

import math
import re
from dataclasses import dataclass

from k3core.lab.text import Text, say

KINDS = ("int", "float", "choice", "bool", "text", "list")
RESERVED = ("seed", "preset", "frame", "guess", "embed", "lang", "pin")  # names that the page's address uses itself
_INT = re.compile(r"[+-]?[0-9]{1,18}")
_FLOAT = re.compile(r"[+-]?([0-9]{1,20}(\.[0-9]{0,20})?|\.[0-9]{1,20})([eE][+-]?[0-9]{1,3})?")
_BOOLS = {"true": True, "false": False, "1": True, "0": False, "on": True, "off": False, "yes": True, "no": False}


class ParamError(ValueError):
    """A parameter that is unknown or out of range; `str()` is the English sentence, `render(lang)` any language's."""

    def __init__(self, name: str, message: Text):
        super().__init__(name, message)
        self.name = name
        self.message = message

    def __str__(self) -> str:
        return self.render("en")

    def render(self, lang: str) -> str:
        return self.message.render(lang)


@dataclass(frozen=True)
class Param:
    """One parameter of an experiment.

    kind        "int", "float", "choice", "bool", "text" or "list" (comma-separated numbers)
    minimum, maximum, step   bounds of "int", "float" and of each item of "list"; integers lie on the step's grid
    choices     for "choice": pairs (value, Text); values are all strings or all integers
    max_length  for "text": characters, for "list": items
    multiline   for "text": it may have several lines
    unit        printed after the value
    breaker     setting this away from its default breaks the mechanism on purpose
    when        (name of a choice, its values): the page shows this control only while that choice is one of them
    """

    name: str
    label: Text
    kind: str
    default: object
    minimum: float | None = None
    maximum: float | None = None
    step: float | None = None
    choices: tuple = ()
    max_length: int = 200
    multiline: bool = False
    unit: str = ""
    help: Text | None = None
    breaker: bool = False
    when: tuple[str, tuple] | None = None

    def parse(self, raw):
        """The value of this parameter from JSON or from text. Raises ParamError; never clamps."""
        return getattr(self, f"_parse_{self.kind}")(raw)

    def to_json(self, lang: str) -> dict:
        """Everything a page or a command line needs to offer this parameter."""
        return {
            "name": self.name, "label": self.label.render(lang), "kind": self.kind, "default": self.default,
            "min": self.minimum, "max": self.maximum, "step": self.step, "unit": self.unit,
            "choices": [{"value": value, "label": say(label, lang)} for value, label in self.choices],
            "max_length": self.max_length, "multiline": self.multiline, "help": say(self.help, lang),
            "breaker": self.breaker,
            "when": {"name": self.when[0], "values": list(self.when[1])} if self.when else None,
        }

    def _parse_int(self, raw):
        if isinstance(raw, str) and _INT.fullmatch(raw.strip()):
            raw = int(raw)
        if isinstance(raw, float) and raw.is_integer():
            raw = int(raw)
        if not isinstance(raw, int) or isinstance(raw, bool):
            raise self._error(raw)
        self._check_bounds(raw)
        if self.step and (raw - self.minimum) % self.step:
            raise self._error(raw)
        return raw

    def _parse_float(self, raw):
        if isinstance(raw, str) and _FLOAT.fullmatch(raw.strip()):
            raw = float(raw)
        if not isinstance(raw, (int, float)) or isinstance(raw, bool):
            raise self._error(raw)
        self._check_bounds(raw)
        if not math.isfinite(raw):
            raise self._error(raw)
        return float(raw)

    def _parse_bool(self, raw):
        if isinstance(raw, str):
            raw = _BOOLS.get(raw.strip().lower(), raw)
        if not isinstance(raw, bool):
            raise self._error(raw)
        return raw

    def _parse_choice(self, raw):
        given = raw.strip() if isinstance(raw, str) else raw
        for value, _ in self.choices:
            if not isinstance(raw, bool) and given in (value, str(value)):
                return value
        raise self._error(raw)

    def _parse_text(self, raw):
        if not isinstance(raw, str):
            raise self._error(raw)
        if len(raw) > self.max_length:
            raise ParamError(self.name, Text("{name} has {length} characters; it takes at most {most}", name=self.name,
                                             length=len(raw), most=self.max_length))
        return raw

    def _parse_list(self, raw):
        items = raw.split(",") if isinstance(raw, str) else raw
        if not isinstance(items, (list, tuple)) or not 1 <= len(items) <= self.max_length:
            raise self._error(raw)
        whole = isinstance(self.default[0], int)
        return [self._parse_int(item) if whole else self._parse_float(item) for item in items]

    def _check_bounds(self, value):
        if (self.minimum is not None and value < self.minimum) or (self.maximum is not None and value > self.maximum):
            raise self._error(value)

    def _error(self, raw) -> ParamError:
        message = Text("{name} is {value}; it takes {allowed}", name=self.name, value=shown(raw),
                       allowed=self._allowed())
        return ParamError(self.name, message)

    def _allowed(self) -> Text:
        low, high, step = self.minimum, self.maximum, self.step
        if self.kind == "int" and step not in (None, 1):
            return Text("a whole number from {low} to {high} in steps of {step}", low=low, high=high, step=step)
        if self.kind == "int":
            return Text("a whole number from {low} to {high}", low=low, high=high)
        if self.kind == "float":
            return Text("a number from {low} to {high}", low=low, high=high)
        if self.kind == "bool":
            return Text("true or false")
        if self.kind == "choice":
            return Text("one of {values}", values=", ".join(str(value) for value, _ in self.choices))
        if self.kind == "list":
            return Text("up to {count} numbers from {low} to {high}, separated by commas",
                        count=self.max_length, low=low, high=high)
        return Text("text of at most {count} characters", count=self.max_length)


def parse_all(params: tuple, raw: dict) -> dict:
    """Every parameter's value: from `raw` where it is given, else the default. Raises ParamError."""
    known = {param.name: param for param in params}
    if not isinstance(raw, dict):
        raise ParamError("params", Text("the parameters are {value}; they must be an object with one value per name",
                                        value=shown(raw)))
    for name in raw:
        if name not in known:
            raise ParamError(name, Text("there is no parameter {name}; there are {names}",
                                        name=shown(name), names=", ".join(known)))
    return {name: param.parse(raw.get(name, param.default)) for name, param in known.items()}


def parse_frames(scenes, raw: dict) -> dict:
    """Scene -> frame number, from the address's `frame.SCENE` entries. Raises ParamError."""
    params = {f"frame.{scene}": scene for scene in scenes}
    given = parse_all(tuple(Param(name, Text("frame"), "int", 0, 0, 10**6) for name in params), raw)
    return {params[name]: given[name] for name in raw}


def parse_seed(raw) -> int:
    """A seed: a whole number from 0 to 2**32 - 1. Raises ParamError."""
    return Param("seed", Text("seed"), "int", 0, 0, 2**32 - 1).parse(raw)


def shown(raw) -> str:
    """A value as a message quotes it: on one line, and cut where it is long."""
    try:
        text = repr(raw)
    except (ValueError, RecursionError):  # an integer of more than 4,300 digits; nested too deeply
        text = f"{type(raw).__name__}..."
    return text if len(text) <= 60 else text[:57] + "..."
