"""How fast the trained model writes in the process that asks: it does the work in parts, who asks holds the watch."""

from k3core.decode import PromptLookup, Speculation
from k3core.lab import tiny_text
from k3core.replayssm import ProjectionStore

TOKENS = 96  # in each part that is timed: a fifth of a second in Pyodide on one desktop core


def parts(p, seed: int):
    """A generator of what each part did, {"tokens", "passes"}: the prompt read, plain decoding, look-up drafts.

    p: parsed parameters with prompt, choosing and drafts. tokens: new tokens; passes: forward passes that took; "same":
    whether the last two wrote the same text. Raises ParamError, Needs.
    """
    ids, decoder = tiny_text.read_prompt(p.prompt), tiny_text.model()
    sampler = tiny_text.sampler(p.choosing, seed)
    stream = decoder.stream(ids, sampler=sampler)
    first = next(stream)
    speculation = Speculation(decoder, ids, PromptLookup(), ProjectionStore, p.drafts, sampler)
    yield {"tokens": 0, "passes": 2}
    text = [first, *(next(stream) for _ in range(TOKENS))]
    yield {"tokens": TOKENS, "passes": TOKENS}
    rounds = speculation.run(TOKENS + 1)
    yield {"tokens": TOKENS, "passes": len(rounds), "same": speculation.tokens == text}
