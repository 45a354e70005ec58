"""What the reader of traces says about a line, as words in either language."""

from k3core.lab.display import number
from k3core.lab.text import Text, in_words
from k3core.traces import TraceError

NAMED = 10  # lines that one sentence lists

# What the reader says -> the same with its parts named, for translation.
PROBLEMS = (
    (r"this is not text; .*", lambda: Text("this is not text; a trace is JSON Lines or CSV in UTF-8")),
    (r"(.*) cannot be read as JSON", lambda line: Text("{line} cannot be read as JSON", line=line)),
    (r"(.*) is not a JSON object", lambda line: Text("{line} is not a JSON object", line=line)),
    (r"(\w+) is missing", lambda name: Text("{name} is missing", name=name)),
    (r"timestamp is (.*); it must be 0 or more, in ms",
     lambda value: Text("timestamp is {value}; it must be 0 or more, in ms", value=value)),
    (r"timestamp is (.*); it must be a date and time, or seconds",
     lambda value: Text("timestamp is {value}; it must be a date and time, or seconds", value=value)),
    (r"timestamp (.*) is earlier than the one before, (.*)",
     lambda value, latest: Text("timestamp {value} is earlier than the one before, {latest}",
                                value=value, latest=latest)),
    (r"timestamp (.*) differs in kind from the first",
     lambda value: Text("timestamp {value} differs in kind from the first", value=value)),
    (r"(\w+) is (.*); it must be an integer from (\d+) to (\d+)",
     lambda name, value, low, high: Text("{name} is {value}; it must be an integer from {low} to {high}", name=name,
                                         value=value, low=low, high=high)),
    (r"hash_ids is (.*); it must be a list of integers",
     lambda value: Text("hash_ids is {value}; it must be a list of integers", value=value)),
    (r"hash_ids has (\d+) entries, but an input_length of (\d+) makes (\d+) blocks of (\d+) tokens",
     lambda count, length, blocks, size: Text(
         "hash_ids has {count} entries, but an input_length of {length} makes {blocks} blocks of {size} tokens",
         count=count, length=length, blocks=blocks, size=size)),
    (r"hash_ids has an entry outside .*", lambda: Text("hash_ids has an entry outside 0 to 2**64 - 1")),
    (r"(.*) is neither JSON nor a CSV header .*",
     lambda line: Text("{line} is neither JSON nor a CSV header with the columns TIMESTAMP, ContextTokens and "
                       "GeneratedTokens", line=line)),
    (r"(\d+) fields where the header has (\d+)",
     lambda count, wanted: Text("{count} fields where the header has {wanted}", count=count, wanted=wanted)),
    (r"(.*) is not CSV", lambda line: Text("{line} is not CSV", line=line)),
    (r"the trace is empty", lambda: Text("the trace is empty")),
    (r"the trace holds no request", lambda: Text("the trace holds no request")),
)


def problem_in_words(problem: str) -> Text | str:
    """What is wrong, to be said in any language; words that are not known here stay as they are."""
    return in_words(problem, PROBLEMS)


def reason(error: TraceError) -> Text | str:
    """What is wrong with a line, without its number."""
    return problem_in_words(str(error).removeprefix(f"line {error.line}: "))


def lines_in_words(errors: list) -> Text:
    """Lines with numbers and reasons, as one sentence; the first ten of many."""
    said = [Text("line {line}: {reason}", line=number(error.line), reason=reason(error)) for error in errors[:NAMED]]
    if len(errors) > NAMED:
        said.append(Text("and {count} more", count=number(len(errors) - NAMED)))
    sentence = said[-1]
    for words in said[-2::-1]:
        sentence = Text("{one}; {others}", one=words, others=sentence)
    return sentence
