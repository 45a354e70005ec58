"""What is wrong with the reader's model file, as words in either language. The page says which file it is."""

from k3core import nesting
from k3core.lab.params import ParamError
from k3core.lab.text import Text, in_words
from k3core.models import Model, from_config

NAME = "config.json"  # how the reader of model files names it: cut off here


def model_from(text: str) -> Model:
    """The model that the text of a config.json describes. Raises ParamError."""
    try:
        return from_config(nesting.loads(text), name=NAME)
    except nesting.NotJSON as error:
        problem = Text("line {line}, column {column}: {reason}; this is not JSON", line=error.line, column=error.column,
                       reason=in_words(error.reason, REASONS))
    except RecursionError:
        problem = Text("the JSON is nested too deeply")
    except ValueError as error:
        problem = in_words(str(error).removeprefix(NAME).lstrip(" :"), PROBLEMS)
    raise ParamError("config", problem)


REASONS = (
    ("a value is missing", lambda: Text("a value is missing")),
    ("a name in double quotes is missing", lambda: Text("a name in double quotes is missing")),
    ("a colon is missing", lambda: Text("a colon is missing")),
    ("a comma or a closing bracket is missing", lambda: Text("a comma or a closing bracket is missing")),
    ("nothing follows this comma", lambda: Text("nothing follows this comma")),
    ("the JSON has ended before this", lambda: Text("the JSON has ended before this")),
    ("the text that begins here does not end", lambda: Text("the text that begins here does not end")),
    ("a text holds a line end or another control character",
     lambda: Text("a text holds a line end or another control character")),
    ("what follows the backslash is no escape", lambda: Text("what follows the backslash is no escape")),
    ("there is nothing to read", lambda: Text("there is nothing to read")),
    ("this cannot be read", lambda: Text("this cannot be read")),
)

# What is said of a field, behind its name.
FIELD_PROBLEMS = (
    (r"is (.+); it must be an integer from (-?\d+) to (\d+)",
     lambda value, low, high: Text("is {value}; it must be an integer from {low} to {high}", value=value, low=low,
                                   high=high)),
    (r"is (.+); it must be a text", lambda value: Text("is {value}; it must be a text", value=value)),
    ("must be a list of integers", lambda: Text("must be a list of integers")),
    ("must be a list of texts", lambda: Text("must be a list of texts")),
    ("must be an object", lambda: Text("must be an object")),
    ("must be a list of objects with 'kind' and 'count'",
     lambda: Text("must be a list of objects with 'kind' and 'count'")),
    ("must be an object with 'kind' and 'count'", lambda: Text("must be an object with 'kind' and 'count'")),
    ("holds (.+); known are 4 and 128, and 0 for a layer without compression",
     lambda value: Text("holds {value}; known are 4 and 128, and 0 for a layer without compression", value=value)),
    ("is (.+); known (?:here )?are (.+)",
     lambda value, known: Text("is {value}; known are {known}", value=value, known=_list(known))),
    ("holds (.+); known (?:here )?are (.+)",
     lambda value, known: Text("holds {value}; known are {known}", value=value, known=_list(known))),
    ("is not a field of kind '(.+)', which has none",
     lambda kind: Text("is not a field of kind {kind}, which has none", kind=kind)),
    ("is not a field of kind '(.+)', which has (.+)",
     lambda kind, known: Text("is not a field of kind {kind}, which has {known}", kind=kind, known=known)),
    ("and full_attn_layers both name layer (.+)",
     lambda layer: Text("and full_attn_layers both name layer {layer}", layer=layer)),
    ("and full_attn_layers give layer (.+), which is beyond num_hidden_layers = (.+)",
     lambda layer, layers: Text("and full_attn_layers give layer {layer}, which is beyond num_hidden_layers = {layers}",
                                layer=layer, layers=layers)),
    ("and full_attn_layers give no kind for layer (.+) of num_hidden_layers = (.+)",
     lambda layer, layers: Text("and full_attn_layers give no kind for layer {layer} of num_hidden_layers = {layers}",
                                layer=layer, layers=layers)),
    ("has (.+) entries for num_hidden_layers = (.+)",
     lambda count, layers: Text("has {count} entries for num_hidden_layers = {layers}", count=count, layers=layers)),
    ("= (.+) is not a multiple of (.+) = (.+); give head_dim",
     lambda value, other, divisor: Text("= {value} is not a multiple of {other} = {divisor}; give head_dim",
                                        value=value, other=other, divisor=divisor)),
    ("= (.+) is not a multiple of (.+) = (.+)",
     lambda value, other, divisor: Text("= {value} is not a multiple of {other} = {divisor}", value=value, other=other,
                                        divisor=divisor)),
    ("belongs to a hybrid this reader does not know; describe its layers as (.+)",
     lambda layers: Text("belongs to a hybrid this reader does not know; describe its layers as {layers}",
                         layers=layers)),
    ("is set, but neither layer_types nor sliding_window_pattern says which layers it applies to",
     lambda: Text("is set, but neither layer_types nor sliding_window_pattern says which layers it applies to")),
)

PROBLEMS = (
    (r"field '(.+?)' is missing \(or (.+)\)",
     lambda field, others: Text("there is neither the field {field} nor {others}", field=field, others=others)),
    ("field '(.+?)' is missing", lambda field: Text("the field {field} is missing", field=field)),
    ("field '(.+?)' (.+)",
     lambda field, problem: Text("field {field} {problem}", field=field, problem=in_words(problem, FIELD_PROBLEMS))),
    ("is a .+; a model config is a JSON object", lambda: Text("a model config is a JSON object, and this is none")),
    ("names no layers a cache could be sized from: .+",
     lambda: Text("there are no layers to size a cache from: neither num_hidden_layers nor a list named layers")),
    ("describes no layer that keeps a cache", lambda: Text("no layer keeps a cache")),
    ("it holds a number of thousands of digits", lambda: Text("it holds a number of thousands of digits")),
    ("(.*)", lambda problem: Text("this cannot be read as a model: {problem}", problem=problem)),
)


def _list(known: str) -> str:
    """Names with commas alone between them, as any language has them."""
    return known.replace(" and ", ", ")
