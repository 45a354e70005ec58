"""Real text on the prefix cache, tabs 8 to 10: a hit changes neither text nor state, unless a rule is broken.

Nothing here hangs on the text that the weights write, only on equalities.
"""

from html import unescape

import pytest
from decoder_states import assert_same_state

from k3core.decode import START, Gumbel, encode, tiny_model
from k3core.lab import prefix_hit, prefix_miss, prefix_text
from k3core.lab.checkpoint_atomicity import EXPERIMENT as ATOMICITY
from k3core.lab.contract import Progress
from k3core.lab.params import ParamError
from k3core.lab.prefix_hit import EXPERIMENT as HIT
from k3core.lab.prefix_miss import EXPERIMENT as MISS
from k3core.lab.text import LANGUAGES

TEXT = {"source": "text", "answer": 8}


def failing(result) -> set:
    return {check.key for check in result.checks if not check.passed}


def value(result, key: str):
    return next(metric.value for metric in result.metrics if metric.key == key)


def finish(steps):
    """What a generator returns; everything that it yields is Progress with the text so far."""
    while True:
        try:
            step = next(steps)
        except StopIteration as stop:
            return stop.value
        assert isinstance(step, Progress) and isinstance(step.note, str) and 0 <= step.done <= step.total


# --- the reference ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("choosing", ["greedy", "sampled"])
def test_an_uninterrupted_run_is_that_of_the_decoder_and_goes_on_from_what_it_read(choosing, monkeypatch):
    """The decoder's own generation, from the first token, is the truth for both the text and the state."""
    monkeypatch.setattr(prefix_text, "_REMEMBERED", {})
    ids, sampler = [START, *encode("class Queue:\n")], Gumbel(5, 0.8 if choosing == "sampled" else 0)
    first = finish(prefix_text.uncached(ids, 6, choosing, 5))
    assert first.tokens == tiny_model().generate(ids, 6, sampler)
    longer = [*first.read, first.tokens[-1], *encode("\n# then\n")]
    second = finish(prefix_text.uncached(longer, 6, choosing, 5))
    state = tiny_model().new_state()
    tiny_model().forward([*longer, *second.tokens[:-1]], state)
    assert second.tokens == tiny_model().generate(longer, 6, sampler)
    assert_same_state(second.state, state)
    assert first.state.length == len(first.read) and second.state.length == len(second.read)
    assert not list(prefix_text.uncached(ids, 6, choosing, 5))  # remembered: no step of work


# --- tab 8 ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [
    {}, {"choosing": "sampled"}, {"policy": "dense"}, {"kept": False}, {"policy": "marconi", "grain": 2},
    {"block": 8}, {"block": 32, "page": 3}, {"lost": "2"}, {"prompt": ""}, {"more": ""}, {"more": "", "kept": False},
])
def test_a_hit_changes_neither_text_nor_state(settings):
    assert failing(HIT.run(TEXT | settings, 3)) == set()


def test_the_boundary_is_that_of_the_characters():
    """START and 52 characters are 53 tokens: with blocks of 16 the prompt's last boundary is 48, the answer's 64."""
    assert len(prefix_hit.PROMPT) == 52
    assert value(HIT.run(TEXT | {"answer": 16}), "hit_tokens") == 48
    assert value(HIT.run(TEXT | {"answer": 16, "policy": "dense"}), "hit_tokens") == 64
    assert value(HIT.run(TEXT | {"answer": 16, "policy": "dense", "kept": False}), "hit_tokens") == 48
    assert value(HIT.run(TEXT | {"answer": 16, "block": 32, "page": 4}), "hit_tokens") == 32
    assert value(HIT.run(TEXT | {"lost": "1"}), "hit_tokens") == 0


@pytest.mark.parametrize("group", ["1", "2", "3"])
def test_a_state_that_is_missing_spoils_what_comes_after(group):
    result = HIT.run(TEXT | {"lost": group, "all_groups": False})
    assert failing(result) == {"resume", "content"}
    said = [caption.render("en") for caption in result.scenes[0].captions]
    assert any("Another request takes the block" in words for words in said)
    assert sum("without a cache, and all" in words for words in said) == 1  # turn 1 came before


def test_the_drawing_shows_each_character_once_and_the_states_that_can_be_evicted():
    result = HIT.run(TEXT | {"answer": 16})
    log, last = result.scenes[0].events, result.scenes[0].frames - 1
    for narrow in (False, True):
        svg = HIT.picture(result, "turns", last, "en", narrow).svg
        assert svg.count('data-click="lost"') == 3
        glyphs = [part.split("<")[0] for part in svg.split('text-anchor="middle">')[1:]]
        assert unescape("".join(glyphs)) == "".join(row["glyphs"] for row in log["rows"])
    assert log["rows"][0]["glyphs"].startswith("∅def␣area(width,␣height):⏎")
    early = HIT.picture(result, "turns", 0, "en").svg
    assert early.count("def␣area") == 1  # turns to come do not tell what will be said


@pytest.mark.parametrize("settings, words", [
    ({"prompt": "naïve"}, "prompt holds 'ï'; the trained model reads ASCII only"),
    ({"more": "→"}, "more holds '→'"),
    ({"page": 2}, "page is 2 hash blocks of 16 characters; .* so take 6 hash blocks or more"),
])
def test_what_cannot_be_read_is_refused(settings, words):
    with pytest.raises(ParamError, match=words):
        HIT.run(TEXT | settings)


# --- tab 9 ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cause", prefix_miss.CAUSES)
@pytest.mark.parametrize("policy", ["align", "marconi", "dense"])
def test_a_miss_changes_neither_text_nor_state(cause, policy):
    assert failing(MISS.run(TEXT | {"cause": cause, "policy": policy}, 1)) == set()


def test_request_3_finds_what_request_2_left():
    """52 + 15 tokens leave a state at 64, behind what is shared; request 2 leaves one at 48, where prompts part."""
    assert len(prefix_miss.TEXT) == 51  # and START
    result = MISS.run(TEXT)
    assert [value(result, key) for key in ("hit_tokens", "rows_unused", "next_hit_tokens")] == [0, 48, 48]
    assert value(MISS.run(TEXT | {"policy": "align"}), "next_hit_tokens") == 0


def test_the_bytes_are_those_of_the_models_memories():
    """State [4, 32, 32] and 3 rows of 4 x (32 + 32 + 32) of a convolution, a row of 48 + 8, in float32."""
    state = tiny_model().new_state()
    kda = next(m for m in state.memories if hasattr(m, "conv"))
    row = next(m for m in state.memories if hasattr(m, "rows"))
    assert prefix_text.pages(tiny_model().config) == (kda.state.nbytes + kda.conv.nbytes, 4 * row.rows.shape[1])
    assert prefix_text.pages(tiny_model().config) == (62_976 // 3, 224)  # as the prose says: a checkpoint is 281 rows
    how = [line.render("en") for line in next(m for m in MISS.run(TEXT).metrics if m.key == "checkpoints_written").how]
    assert f"in 3 KDA layers {3 * (kda.state.nbytes + kda.conv.nbytes):,} B" in how[1]


def test_without_the_parents_key_the_state_is_another_texts():
    assert failing(MISS.run(TEXT | {"cause": "token", "chained": False})) == {"resume", "content", "next"}


@pytest.mark.parametrize("settings, words", [
    ({"ends": "a\nb"}, "ends takes 3 lines, the end of each request; given: 2"), ({"text": "é"}, "text holds 'é'"),
    ({"cause": "token", "text": "abc", "ends": "\n\n", "place": 9}, "place is 9, but the text has 3 characters"),
])
def test_requests_that_cannot_be_made_are_refused(settings, words):
    with pytest.raises(ParamError, match=words):
        MISS.run(TEXT | settings)


# --- tab 10 -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings, right", [
    ({}, True), ({"requests": 1}, True), ({"shared": 1}, True),
    ({"publish_on_commit": False}, False), ({"publish_on_commit": False, "until": "entry"}, False),
    ({"evict_together": False}, False), ({"evict_together": False, "until": "entry"}, False),
    ({"pin_first": False, "blocks": 7}, False),
])
def test_the_model_goes_on_from_what_the_interleaving_left(settings, right):
    """The states are right to the bit exactly where the model checker found nothing wrong."""
    plain, real = ATOMICITY.run(settings), ATOMICITY.run(TEXT | settings)
    assert failing(real) == failing(plain) == (set() if right else {"own_prefix"})
    assert real.scenes[0].frames == plain.scenes[0].frames + 2
    log, [mapped, said] = real.scenes[0].events["text"], real.scenes[0].captions[-2:]
    assert right == all(read["ok"] for read in log["reads"])
    assert right == ("numbers that it goes on from are right" in mapped.render("en"))
    assert right == (said.render("en").endswith("right to the bit."))
    assert not right or log["right"] == log["wrong"]


def test_names_stand_for_pieces_of_the_text():
    result = ATOMICITY.run(TEXT | {"text": "abcd", "ends": "xy\nz"})
    log = result.scenes[0].events["text"]
    assert (log["who"], log["names"], log["ends"], log["glyphs"]) == ("B", ["t1", "t2", "b3"], [3, 5, 6], "∅abcdz")
    for lang in LANGUAGES:
        svg = ATOMICITY.picture(result, "interleaving", result.scenes[0].frames - 1, lang).svg
        assert all(f">{name}<" in svg for name in ("t1", "t2", "b3"))


@pytest.mark.parametrize("settings, words", [
    ({"ends": "a"}, "ends takes 2 lines with text, how A and B go on; given: 1"),
    ({"ends": "a\n"}, "ends takes 2 lines with text"),
    ({"text": "a"}, "text has 1 characters"), ({"text": "ü?"}, "text holds 'ü'"),
])
def test_texts_that_have_no_piece_for_each_token_are_refused(settings, words):
    with pytest.raises(ParamError, match=words):
        ATOMICITY.run(TEXT | settings)
