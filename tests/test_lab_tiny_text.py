"""The reader's own text: read, continued and remembered exactly as plain decoding would."""

import json

import numpy as np
import pytest

from k3core.decode import START, Greedy, Gumbel, PromptLookup, Speculation, encode, tiny_model
from k3core.lab import tiny_text
from k3core.lab.contract import Experiment, Needs, Prediction, Progress
from k3core.lab.host import Host
from k3core.lab.params import ParamError
from k3core.lab.registry import experiment, experiments
from k3core.lab.text import Text
from k3core.replayssm import ProjectionStore

PROMPT = "def f(x):\n"
SAMPLERS = {"greedy": Greedy(), "sampled": Gumbel(7, tiny_text.TEMPERATURE)}


def finished(steps) -> tuple:
    """(reports, outcome) of a generator of Progress."""
    reports = []
    while True:
        try:
            reports.append(next(steps))
        except StopIteration as stop:
            return reports, stop.value


@pytest.fixture(autouse=True)
def forgetful():
    tiny_text._REMEMBERED.clear()


@pytest.mark.parametrize("choosing", list(SAMPLERS))
def test_it_is_plain_decoding(choosing):
    ids, decoder, n = [START, *encode(PROMPT)], tiny_model(), 6
    reports, plain = finished(tiny_text.plain_once(PROMPT, n, choosing, 7))
    assert plain.ids == ids and plain.tokens == decoder.generate(ids, n, SAMPLERS[choosing])
    assert reports and all(isinstance(step, Progress) for step in reports)
    assert reports[-1].note == plain.text and plain.text.startswith(PROMPT)
    assert all(later.note.startswith(sooner.note) for sooner, later in zip(reports, reports[1:]))
    logits, state = decoder.prefill([*ids, *plain.tokens[:-1]])
    kda, mla = state.memories[:3], state.memories[3]
    for layer in range(3):
        assert np.array_equal(plain.states[-1][layer], kda[layer].state)
        assert np.array_equal(plain.inputs[layer].conv_inputs[-3:], kda[layer].conv)
        assert len(plain.inputs[layer].v) == len(ids) + n - 1
    assert np.array_equal(plain.rows[0], mla.rows)
    assert np.array_equal(plain.prefill[0][0], logits[len(ids) - 1]) and plain.margin > 0


def test_what_is_remembered_grows_and_is_cut():
    _, long = finished(tiny_text.plain_once(PROMPT, 6, "greedy", 1))
    again, short = finished(tiny_text.plain_once(PROMPT, 4, "greedy", 2))  # greedy: no matter which seed
    assert not again and short.tokens == long.tokens[:4] and len(short.rows[0]) == len(long.rows[0]) - 2
    assert np.array_equal(short.states[3][0], long.states[3][0]) and len(short.states) == 4
    more, longer = finished(tiny_text.plain_once(PROMPT, 8, "greedy", 1))
    assert len(more) == 2 and longer.tokens[:6] == long.tokens
    assert longer.tokens == tiny_model().generate(longer.ids, 8)
    by_length = [finished(tiny_text.plain_once(PROMPT, n, "greedy", 0))[1].margin for n in range(1, 9)]
    assert by_length == sorted(by_length, reverse=True) and by_length[0] > by_length[-1] == longer.margin


def test_drawn_texts_are_remembered_by_their_seed():
    texts = [finished(tiny_text.plain_once(PROMPT, 12, "sampled", seed))[1].tokens for seed in (1, 2, 1)]
    assert texts[0] == texts[2] != texts[1]
    assert texts[1] == tiny_model().generate([START, *encode(PROMPT)], 12, Gumbel(2, tiny_text.TEMPERATURE))


def test_a_run_given_up_goes_on_where_it_was():
    steps = tiny_text.plain_once(PROMPT, 4, "greedy", 0)
    for _ in range(3):
        next(steps)
    reports, plain = finished(tiny_text.plain_once(PROMPT, 4, "greedy", 0))
    assert plain.tokens == tiny_model().generate(plain.ids, 4)
    assert len(reports) + 3 == len(finished(_forgotten(4))[0])


def _forgotten(n):
    tiny_text._REMEMBERED.clear()
    return tiny_text.plain_once(PROMPT, n, "greedy", 0)


def test_its_prefill_starts_speculation_and_survives_it():
    for _ in range(2):
        _, plain = finished(tiny_text.plain_once("ab ab ab", 8, "greedy", 0))
        run = Speculation(tiny_model(), plain.ids, PromptLookup(), ProjectionStore, 3, prefill=plain.prefill)
        run.run(8)
        assert run.tokens == plain.tokens


def test_only_a_few_texts_are_remembered():
    for i in range(tiny_text.MOST_REMEMBERED + 2):
        finished(tiny_text.plain_once(str(i), 1, "greedy", 0))
    assert len(tiny_text._REMEMBERED) == tiny_text.MOST_REMEMBERED


def test_every_token_has_a_glyph_of_its_own():
    shown = tiny_text.glyphs(range(128))
    assert len(set(shown)) == len(shown) == 128 and shown.isprintable() and " " not in shown
    assert tiny_text.glyphs(encode("a b\n")) == "a␣b⏎" and tiny_text.glyphs([START]) == "∅"


def test_a_near_tie_is_said():
    assert tiny_text.margin_words(0.25) == "0.25" == tiny_text.margin_line(0.25).args["margin"]
    assert "another machine may choose another token" in tiny_text.margin_words(9e-5).render("en")
    assert tiny_text.margin_words(9e-5).render("zh") in tiny_text.margin_line(9e-5).render("zh")


@pytest.mark.parametrize("prompt", ["café", "词元", "\ud800", "a\u00a0b"])
def test_what_is_not_ascii_is_named(prompt):
    with pytest.raises(ParamError, match="ASCII only") as caught:
        next(tiny_text.plain_once(prompt, 1, "greedy", 0))
    assert caught.value.name == "prompt"
    for lang in ("en", "zh"):
        assert caught.value.render(lang).encode()  # can be sent, whatever was typed


TEXTS = [(chosen.slug, param) for chosen in experiments() for param in chosen.params if param.kind == "text"
         and any(param.name == "source" for param in chosen.params)]
QUICK = {"answer": 4, "tokens": 8}  # where a tab has them


@pytest.mark.parametrize("slug, param", TEXTS, ids=[f"{slug} {param.name}" for slug, param in TEXTS])
def test_any_text_gives_a_result_or_one_sentence_in_each_language(slug, param):
    chosen = experiment(slug)
    names = {param.name for param in chosen.params}
    settings = {"source": "text"} | {name: value for name, value in QUICK.items() if name in names}
    answers = []
    for text in ("", "a", "a\r\n\tb\0\x7f", "x" * 10_000, "词", "\n" * 3):
        try:
            result = chosen.run(settings | {param.name: text})
        except ParamError as error:
            assert error.name == param.name
            assert error.render("en") != error.render("zh") and len(error.render("en")) < 200
            answers.append(error.render("en"))
        else:
            assert result.to_json("en")["metrics"] and result.to_json("zh")["metrics"]
            assert all(check.passed for check in result.checks)
            answers.append("")
    assert "10000 characters" in answers[3] and answers[4]
    assert answers[0] == "" or answers[0].startswith((f"{param.name} has ", f"{param.name} takes "))


def test_a_host_says_which_weights_it_lacks(monkeypatch):
    def function(p, seed):
        raise Needs("tiny.npz")

    lacking = Experiment("x", 1, "state", *[Text("seed")] * 3, (), (), Prediction(Text("seed"), ()), function)
    monkeypatch.setattr("k3core.lab.host.experiment", lambda slug: lacking)
    request = {"do": "start", "slug": "x", "params": {}, "seed": 0, "lang": "en"}
    assert json.loads(Host().handle(json.dumps(request))) == {"state": "needs", "name": "tiny.npz"}


def test_missing_weights_are_asked_for(monkeypatch, tmp_path):
    tiny_model.cache_clear()
    monkeypatch.setattr("k3core.decode.tiny.resources.files", lambda package: tmp_path)
    with pytest.raises(Needs, match=r"no k3core/models/tiny\.npz") as caught:
        tiny_text.model()
    assert caught.value.name == "tiny.npz"
    tiny_model.cache_clear()
