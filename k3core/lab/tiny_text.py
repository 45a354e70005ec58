"""The reader's own text: the tiny trained model reads a prompt and continues it, and what it did is remembered."""

from dataclasses import dataclass

import numpy as np

from k3core.decode import START, Greedy, Gumbel, KDAMemory, MissingWeights, decode, encode, tiny_model
from k3core.kda import KDATokens
from k3core.lab.contract import Needs, Progress
from k3core.lab.display import number
from k3core.lab.params import Param, ParamError
from k3core.lab.text import Text

MOST_CHARACTERS = 200  # of a prompt
TEMPERATURE = 0.8
READ_AT_ONCE = 8  # tokens of a prompt between two reports: 7 ms in Pyodide on one desktop core, some 50 on a slow phone
LEAST_MARGIN = 1e-4  # scores of two platforms differ by about 1e-6: below this another token may be chosen
MOST_REMEMBERED = 4
_REMEMBERED = {}

FROM_TEXT = ("text", Text("the trained model and my text"))
# The parameters of a tab that can decode real text are `source_param`, `prompt_param` and this one.
CHOOSING = Param("choosing", Text("Each next token is"), "choice", "greedy", when=("source", ("text",)), choices=(
    ("greedy", Text("the likeliest")), ("sampled", Text("drawn, temperature 0.8"))),
    help=Text("Drawn with noise that hangs on seed and position alone, so that every way to decode draws the same."))


def source_param(*drawn: tuple) -> Param:
    """Where tokens come from: the tab's own choices first, such as ("drawn", Text("chance")), then real text."""
    return Param("source", Text("Tokens come from"), "choice", drawn[0][0], choices=(*drawn, FROM_TEXT))


def prompt_param(default: str) -> Param:
    """The prompt that the trained model goes on with."""
    return Param("prompt", Text("My text"), "text", default, max_length=MOST_CHARACTERS, multiline=True,
                 when=("source", ("text",)),
                 help=Text("One token per character, ASCII only. The model has read Python source."))


def head_param(label: Text) -> Param:
    """One head of one KDA layer of the trained model; `head_of` reads its value."""
    return Param("head", label, "choice", "1.1", when=("source", ("text",)),
                 choices=tuple((f"{layer}.{head}", Text("layer {l}, head {h}", l=layer, h=head))
                               for layer in (1, 2, 3) for head in (1, 2, 3, 4)))


def head_of(value: str) -> tuple:
    """(layer, head) of a value of `head_param`, both from 0."""
    layer, head = value.split(".")
    return int(layer) - 1, int(head) - 1


def margin_words(margin: float) -> Text | str:
    """The smallest lead of a chosen token, and where it is so small that another machine may choose another."""
    if margin >= LEAST_MARGIN:
        return number(margin)
    return Text("{margin}, a near tie: another machine may choose another token", margin=number(margin))


def margin_line(margin: float) -> Text:
    """The same as a line of a metric's derivation."""
    return Text("smallest lead of a chosen token, in logits: {margin}", margin=margin_words(margin))


def model():
    """The trained model, a HybridDecoder in float32 and exact mode. Raises Needs where its weights are not here."""
    try:
        return tiny_model()
    except MissingWeights as error:
        raise Needs(error.name) from None


def sampler(choosing: str, seed: int) -> Greedy:
    """What chooses the tokens, for a value of `CHOOSING` and the run's seed."""
    return Gumbel(seed, TEMPERATURE) if choosing == "sampled" else Greedy()


def ids_of(name: str, text: str) -> list:
    """Token ids of the text of parameter `name`. Raises ParamError."""
    try:
        return encode(text)
    except ValueError:
        wrong = next(character for character in text if character > "\x7f")
        raise ParamError(name, Text("{name} holds {character}; the trained model reads ASCII only, one token per "
                                    "character", name=name, character=repr(wrong))) from None


def read_prompt(prompt: str) -> list:
    """Token ids of a prompt, the START that began every training text first. Raises ParamError."""
    return [START, *ids_of("prompt", prompt)]


def text_of(ids: list) -> str:
    """The text of token ids, without the START that no one sees."""
    return decode(ids[1:] if ids[0] == START else ids)


def glyphs(ids) -> str:
    """Token ids as one character each that can be seen: space ␣, line end ⏎, START ∅, of other controls the
    circled letter of their key, ^A as Ⓐ: few fonts have the pictures that Unicode keeps for them."""
    return "".join(_glyph(int(i)) for i in ids)


_SEEN = {START: "∅", 10: "⏎", 32: "␣", 127: "ⓩ"}


def _glyph(token: int) -> str:
    if token in _SEEN:
        return _SEEN[token]
    return chr(ord("Ⓐ") + token - 1) if token < 32 else chr(token)


@dataclass(frozen=True)
class Plain:
    """Plain decoding of a prompt: n new tokens, of which the last has not been read.

    ids, tokens   token ids of the prompt (START first) and of what follows
    margin   smallest lead of a chosen token over the second best score
    states   [n] lists: of every KDA layer the state [HV, dk, dv] when the prompt and i new tokens are read
    inputs   of every KDA layer the KDATokens of all tokens read, len(ids) + n - 1
    rows     of every MLA layer its latent rows [len(ids) + n - 1, width]
    prefill  (logits [1, vocab], DecoderState) where the prompt is read, for Speculation's `prefill`; copied
    """

    ids: list
    tokens: list
    margin: float
    states: list
    inputs: list
    rows: list
    prefill: tuple

    @property
    def text(self) -> str:
        """The prompt and what follows, as text."""
        return text_of([*self.ids, *self.tokens])


def plain_once(prompt: str, n: int, choosing: str, seed: int):
    """Plain decoding of n >= 1 new tokens, a generator of Progress with the text so far -> Plain.

    Remembered: the same text again, or less of it, costs nothing, and more of it goes on where it ended. Raises
    ParamError, Needs.
    """
    key = prompt, choosing, seed if choosing == "sampled" else 0

    def start():
        return Continuation(model(), read_prompt(prompt), sampler(choosing, seed), text_of)

    return (yield from once(key, start, n))


def once(key: tuple, start, n: int):
    """n >= 1 tokens of the Continuation that `start()` gives, remembered as `key`: a generator of Progress -> Plain."""
    if key not in _REMEMBERED:
        fresh = start()
        if len(_REMEMBERED) == MOST_REMEMBERED:
            _REMEMBERED.pop(next(iter(_REMEMBERED)))
        _REMEMBERED[key] = fresh
    yield from _REMEMBERED[key].grow(n)
    return _REMEMBERED[key].first(n)


class _Recording(KDAMemory):
    """A layer's memory that also keeps every token it takes in; its copies do not."""

    def __init__(self, memory: KDAMemory):
        super().__init__(memory.state, memory.conv, memory.exact)
        self.read = []

    def advance(self, tokens):
        self.read.append(tokens)
        return super().advance(tokens)


class Continuation:
    """A prompt, and its text as far as it has come. Given up at any report, it goes on from there.

    note: what a report says of the token ids so far; at_once: tokens of the prompt between two reports.
    """

    def __init__(self, decoder, ids: list, sampler: Greedy = Greedy(), note=None, at_once: int = READ_AT_ONCE):
        self.decoder, self.ids, self.sampler, self.at_once = decoder, ids, sampler, at_once
        self.note = note or (lambda ids: None)
        self.state = self.decoder.new_state()
        self.state.memories = [_Recording(m) if isinstance(m, KDAMemory) else m for m in self.state.memories]
        self.tokens, self.margins, self.states = [], [], []
        self.prefill = None

    def grow(self, n: int):
        """Decode until there are n new tokens: a generator of Progress."""
        total = len(self.ids) + n
        while self.state.length < len(self.ids):
            piece = self.ids[self.state.length : self.state.length + self.at_once]
            logits = self.decoder.forward(piece, self.state)
            if self.state.length == len(self.ids):
                self.prefill = logits[-1:], self.state.copy()
                self._choose(logits[-1])
            yield Progress(self.state.length, total, self.note(self.ids[: self.state.length]))
        while len(self.tokens) < n:
            self._choose(self.decoder.step(self.tokens[-1], self.state))
            yield Progress(self.state.length, total, self.note([*self.ids, *self.tokens]))

    def _choose(self, logits):
        token, margin = self.sampler.choose_with_margin(logits, self.state.length)
        self.tokens.append(token)
        self.margins.append(margin)
        self.states.append([m.state for m in self.state.memories if isinstance(m, KDAMemory)])

    def first(self, n: int) -> Plain:
        """What decoding n tokens and no more would have left."""
        read, prefill = len(self.ids) + n - 1, (self.prefill[0], self.prefill[1].copy())
        recorded = [m.read for m in self.state.memories if isinstance(m, KDAMemory)]
        inputs = [KDATokens(*(np.concatenate(parts)[:read] for parts in zip(*layer))) for layer in recorded]
        rows = [m.rows[:read] for m in self.state.memories if not isinstance(m, KDAMemory)]
        return Plain(self.ids, self.tokens[:n], min(self.margins[:n]), self.states[:n], inputs, rows, prefill)
