"""The workbench `traces`: published hit rates and reports first, then files that are wrong, then the drawing."""

import contextlib
import csv
import io
import json
import shlex
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from commands import parse
from hypothesis import given, settings
from hypothesis import strategies as st
from lab_values import settings_of

from k3core import cli_replay
from k3core.lab.contract import Progress
from k3core.lab.params import ParamError
from k3core.lab.traces import EXPERIMENT
from k3core.lab.traces_problems import PROBLEMS, problem_in_words
from k3core.traces import TraceError, read_trace

PLAIN = {"sweep": "never"}


def run(preset=None, text=None, **params):
    chosen = EXPERIMENT.preset(preset).params if preset else {}
    return EXPERIMENT.run(PLAIN | chosen | params, files={} if text is None else {"trace": text})


def values(result) -> dict:
    return {metric.key: metric.value for metric in result.metrics}


def failed(result) -> list:
    return [check.key for check in result.checks if not check.passed]


def line(ms=0, length=600, ids=None, output=10) -> str:
    return json.dumps({"timestamp": ms, "input_length": length, "output_length": output,
                       "hash_ids": list(range(-(-length // 512))) if ids is None else ids})


def prompts(count: int, length: int, shared: int, block: int) -> str:
    """`count` prompts of one length that share their first `shared` tokens, as a file."""
    full = -(-length // block)
    same = shared // block
    return "\n".join(line(i, length, [*range(same), *(1000 * (i + 1) + j for j in range(full - same))])
                     for i in range(count))


# --- figures of others ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("length", "share"), [(500, 0.0), (528, 0.0), (552, 0.957), (979, 0.539)])
def test_a_prompt_sent_twice_hits_whole_blocks_of_528(length, share):  # vllm #40696
    result = run(text=prompts(2, length, length, 528), hash_block=528, grain_blocks=1)
    second = result.tables["requests"].rows[1]
    assert second[4] / second[3] == pytest.approx(share, abs=5e-4) and failed(result) == []


@pytest.mark.parametrize(("policy", "requests"), [("align", 0), ("marconi", 62), ("retain:0", 62), ("dense", 63)])
def test_a_checkpoint_in_tokens_of_its_own_serves_nobody(policy, requests):  # vllm #45238
    result = run(text=prompts(64, 2200, 1500, 132), hash_block=132, grain_blocks=4, policy=policy)
    assert values(result)["requests_with_hit"] == requests
    assert {one["hit"] for one in result.scenes[0].events["requests"]} == ({0} if not requests else {0, 1056})


def test_a_prefix_shorter_than_one_block_never_hits():  # vllm #53749
    text = prompts(5, 4000, 2000, 500)
    assert values(run(text=text, hash_block=500, grain_blocks=5, policy="dense"))["hit_tokens"] == 0
    assert values(run(text=text, hash_block=500, grain_blocks=4, policy="dense"))["hit_tokens"] == 4 * 2000


def test_a_trace_without_prefixes_hits_nothing():
    text = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,374,44\n2023-11-16 18:15:50.95,396,109\n"
    result = run(text=text)
    assert (values(result)["requests"], values(result)["hit_tokens"], failed(result)) == (2, 0, [])
    assert "does not say" in result.scenes[0].captions[1].render("en")


def test_time_and_price_follow_the_published_figures():
    result = run(text=line(0, 8000))
    assert values(result)["ttft_ms"] == pytest.approx(376.3, rel=1e-9)
    assert values(result)["cost"] == pytest.approx((8000 * 3.0 + 10 * 15.0) / 1e6)  # $3 and $15 a million
    half = values(run(text=line(0, 8000) + "\n" + line(1, 8000)))
    assert half["cost_saved"] == pytest.approx(7680 * 2.7 / 1e6)  # $0.3 a million where it hits: 5 grains of 1,536


# --- the same answer elsewhere ----------------------------------------------------------------------------------


def command_line(text: str) -> dict:
    with contextlib.redirect_stderr(io.StringIO()):
        return cli_replay.run(parse(*shlex.split(text)[3:]))


@given(settings_of(EXPERIMENT), st.integers(0, 99))
@settings(max_examples=12, deadline=None, derandomize=True)
def test_the_command_gives_the_same_answer(tmp_path_factory, params, seed):
    folder = tmp_path_factory.mktemp("trace")
    try:
        result = EXPERIMENT.run(params | PLAIN | {"forget_states": False}, seed)
    except ParamError:
        return
    *make, replay = result.snippets[0].text.split("\n")
    made = subprocess.run([sys.executable, "-c", "\n".join(make[1:-1])], capture_output=True, text=True, check=True)
    (folder / "trace.jsonl").write_text(made.stdout)
    answer, shown = command_line(replay.replace("trace.jsonl", str(folder / "trace.jsonl"))), values(result)
    for key in ("hit_rate", "hit_tokens", "rows_hit_tokens", "requests_with_hit", "checkpoints", "evicted_checkpoints",
                "evicted_blocks", "peak_bytes", "requests", "lines_skipped"):
        assert shown[key] == answer[key], key


def test_the_comparison_can_be_copied_as_csv():
    result = run()
    rows = list(csv.DictReader(io.StringIO(result.snippets[1].text)))
    assert [row["policy"] for row in rows][:2] == ["dense", "align"]
    assert int(rows[1]["hit_tokens"]) == values(result)["hit_tokens"]


def test_presets_say_what_happens():
    shares = {name: f"{100 * values(run(name))['hit_rate']:.1f} %" for name in (None, "marconi", "fine", "agents")}
    assert shares == {None: "58.2 %", "marconi": "68.9 %", "fine": "69.5 %", "agents": "76.6 %"}
    assert all(shares[name] in EXPERIMENT.preset(name).expect.template for name in shares if name)
    rows = {row[1]: row for row in run("agents").tables["policies"].rows}
    dense, marconi = rows["dense"], rows["marconi"]
    assert f"{100 * dense[2]:.1f} %" == "67.2 %" and round(dense[6] / marconi[6]) == 5
    assert len({row[2] for row in run("conversations").tables["policies"].rows}) == 1


def test_rows_alone_promise_more_than_there_is():
    assert failed(run("forget")) == ["recount", "resumable"]
    assert values(run("forget"))["hit_tokens"] > values(run())["hit_tokens"]
    assert failed(run("forget", policy="dense")) == []  # where a checkpoint is everywhere, rows are the truth


# --- files that are wrong ---------------------------------------------------------------------------------------

BAD = {
    '{"timestamp": 1, "input_len': "cannot be read as JSON", "[1]": "is not a JSON object", "\0\1": "this is not text",
    '{"timestamp": 1, "input_length": 5}': "output_length is missing", line(-5): "timestamp is -5",
    line(1, 600, [1]): "hash_ids has 1 entries, but an input_length of 600 makes 2 blocks of 512",
    line(1, 600, [1, 2**64]): "outside 0 to 2**64 - 1", line(1, 600, ["a", 2]): "must be a list of integers",
    line(1, 10**30, [1]): "must be an integer from 1 to 16777216",
    '{"timestamp": ' + "9" * 5000 + "}": "cannot be read as JSON",
    line(2.5, 10, [1]).replace("10,", "1e1,", 1): "input_length is 10.0", "<b>": "cannot be read as JSON",
}


@pytest.mark.parametrize(("bad", "words"), BAD.items(), ids=range(len(BAD)))
def test_a_bad_line_is_named_with_number_and_reason(bad, words):
    text = "\n".join([line(0), bad, line(7)])
    with pytest.raises(ParamError) as caught:
        run(text=text)
    assert caught.value.name == "trace" and f"line 2: {words}"[:8] in str(caught.value) and words in str(caught.value)
    assert "第 2 行" in caught.value.render("zh") and words not in caught.value.render("zh")
    result = run(text=text, bad_lines="skip")
    assert (values(result)["requests"], values(result)["lines_skipped"], failed(result)) == (2, 1, [])
    number, reason = result.tables["lines"].rows[0]
    assert number == 2 and words in reason.render("en")


def test_every_bad_line_is_named():
    text = "\n".join(row for ms in range(30) for row in (line(ms), "", "?"))
    result = run(text=text, bad_lines="skip")
    assert [row[0] for row in result.tables["lines"].rows] == list(range(3, 91, 3)) and failed(result) == []
    with pytest.raises(ParamError, match="line 3: .*; line 30: .*; and 20 more"):
        run(text=text)


def test_time_that_goes_back_is_a_bad_line():
    with pytest.raises(ParamError, match="line 3: timestamp 4 is earlier than the one before, 5"):
        run(text="\n".join([line(0), line(5), line(4), line(6)]))


@pytest.mark.parametrize(("text", "words"), [
    ("", "the trace is empty"), ("\n \n", "the trace is empty"),
    ("\0\n\0\n", "the trace is empty: line 1: this is not text"),
    ("{\n", "the trace holds no request: line 1"), ("a,b\n1,2\n", "neither JSON nor a CSV header"),
    (line() + "\n" + "x\n" * 2000, "more than 1,000 lines are not requests: line 2"),
])
@pytest.mark.parametrize("bad_lines", ["refuse", "skip"])
def test_a_file_without_requests_is_refused(text, words, bad_lines):
    with pytest.raises(ParamError) as caught:
        run(text=text, bad_lines=bad_lines)
    assert words in str(caught.value) and words not in caught.value.render("zh")


def test_lines_before_the_first_good_one_do_not_decide_the_kind_of_file():
    for head, count in (("\0", 1), ("\0\nTIMESTAMP,ContextTokens,GeneratedTokens", 2)):
        body = line(3) if count == 1 else "3,600,1"
        assert failed(run(text=f"\ufeff{head}\n{body}\n", bad_lines="skip")) == []


@given(st.lists(st.sampled_from([line(1), line(2, 3000), "", "?", "{}", "\0", "[" * 2000]), min_size=1, max_size=12),
       st.integers(0, 60))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_nothing_is_lost_whatever_is_in_a_file(lines, cut):
    text = "\n".join([line(0), *lines])
    try:
        result = run(text=text[:len(text) - cut], bad_lines="skip")
    except ParamError as error:
        assert error.name == "trace" and "\n" not in str(error)
    else:
        assert failed(result) == []


def test_words_about_a_line_are_those_of_the_reader():
    found, header = set(), "TIMESTAMP,ContextTokens,GeneratedTokens"
    rows = ["x,1,1", "1,2", '1,"2,3', "1,-2,3", "2023-01-01 00:00:00,1,1", "2023-01-01 00:00:00+00:00,1,1",
            "2022-01-01 00:00:00,1,1"]
    for text in ([header, *rows], *([line(9), bad, line(1)] for bad in BAD), ["a,b"], [], ["{"]):
        errors = []
        try:
            list(read_trace(text, skip=errors.append))
        except TraceError as error:
            errors.append(error)
        except ValueError as error:
            found.add(str(error))
        found |= {str(error).removeprefix(f"line {error.line}: ") for error in errors}
    kinds = set()
    for said in found:
        words = problem_in_words(said)
        assert not isinstance(words, str) and words.render("en") == said and words.render("zh") != said
        kinds.add(words.template)
    assert len(kinds) == len(PROBLEMS)


@pytest.mark.parametrize(("params", "name", "words"), [
    ({"tp": 32}, None, ""), ({"model": "kimi-linear-48b", "tp": 32, "grain_blocks": 16}, None, ""),
    ({"capacity_gib": 0.001}, "capacity_gib", "less than one block of"),
    ({"model": "qwen3.5-27b", "tp": 32}, "tp", "does not divide the 48 heads"),
])
def test_settings_that_do_not_fit_name_the_parameter(params, name, words):
    if name is None:
        assert failed(run(**params)) == []
        return
    with pytest.raises(ParamError) as caught:
        run(**params)
    assert caught.value.name == name and words in str(caught.value) and caught.value.render("zh")


def test_chunks_shorter_than_the_grain_are_left_out_or_refused():
    text = prompts(3, 30_000, 20_000, 1000)
    coarse = {"text": text, "hash_block": 1000, "grain_blocks": 10}
    assert "align+8192" not in [row[1] for row in run(**coarse).tables["policies"].rows]
    with pytest.raises(ParamError, match="policy is align.8192, whose chunks are shorter than the grain of 10,000"):
        run(policy="align+8192", **coarse)


# --- long runs and curves ---------------------------------------------------------------------------------------


def test_a_long_trace_reports_progress_and_is_read_once():
    text = prompts(400, 20_000, 10_000, 512)
    *first, result = EXPERIMENT.steps(PLAIN, 0, {"trace": text})
    assert all(isinstance(step, Progress) and 0 <= step.done <= step.total for step in first)
    notes = [step.note.template for step in first]
    assert notes.count("reading the trace") >= 4 and len(notes) > 20
    *second, again = EXPERIMENT.steps(PLAIN | {"policy": "marconi"}, 0, {"trace": text})
    assert second == [] and again.tables["policies"].rows == result.tables["policies"].rows
    *third, _ = EXPERIMENT.steps(PLAIN | {"grain_blocks": 2}, 0, {"trace": text})
    assert third and not [step for step in third if step.note.template == "reading the trace"]


def test_curves_are_drawn_for_short_traces_or_on_demand():
    long = prompts(600, 20_000, 10_000, 512)
    assert len({row[0] for row in run(sweep="auto").tables["grain"].rows}) == 6
    assert len({row[0] for row in run(sweep="auto", text=long).tables["grain"].rows}) == 1
    table = run(sweep="always").tables["capacity"]
    rates = [row[2] for row in table.rows if row[1] == "dense"]
    assert rates == sorted(rates) and rates[0] < rates[-1] == pytest.approx(0.6994, abs=1e-4)


# --- the drawing ------------------------------------------------------------------------------------------------


def bars(result, frame: int, narrow: bool = False) -> dict:
    """Mark of a request -> its rectangles as (class, x, width)."""
    root = ElementTree.fromstring(EXPERIMENT.picture(result, "requests", frame, "en", narrow).svg)
    return {group.get("data-id"): [(node.get("class"), float(node.get("x")), float(node.get("width"))) for node in group
                                   if node.tag.endswith("}rect")] for group in root.iter() if group.get("data-id")}


@pytest.mark.parametrize("narrow", [False, True])
def test_bars_are_to_scale(narrow):
    result = run(text=prompts(3, 8000, 5000, 512), policy="marconi")
    requests = result.scenes[0].events["requests"]
    assert [(one["hit"], one["rows"], one["written"], one["source"]) for one in requests] == [
        (0, 0, [7680], None), (0, 4608, [4608, 7680], None), (4608, 4608, [7680], 1)]
    drawn = bars(result, 2, narrow)
    scale = (340 - 60 if narrow else 720 - 120) / 8000
    assert [(style, pytest.approx(wide, abs=0.01)) for style, _, wide in drawn["request:2"]] == [
        ("snapshot", 4608 * scale), ("ordinary", 3392 * scale), ("state", 4), ("state", 4)]
    assert [style for style, _, _ in drawn["request:3"]] == ["hit", "ordinary", "state"]


def test_frames_scroll_through_the_first_requests():
    result = run()
    assert result.scenes[0].frames == 48 and result.scenes[0].poster == 15
    assert [mark for mark in bars(result, 2) if mark.startswith("request:")] == ["request:1", "request:2", "request:3"]
    assert [mark for mark in bars(result, 40) if mark.startswith("request:")] == [f"request:{i}" for i in range(26, 42)]


def test_a_later_part_of_the_trace_can_be_drawn():
    whole, later = run(policy="marconi"), run(policy="marconi", start=50)
    assert [one["number"] for one in later.scenes[0].events["requests"]] == list(range(32, 65))
    assert later.scenes[0].events["requests"][:17] == whole.scenes[0].events["requests"][31:]
    assert values(later) == values(whole)


def test_a_checkpoint_written_again_counts_as_the_newest():
    text = "\n".join(line(i, 1536, [3 * j, 1, 2]) for i, j in enumerate((0, 0, 1, 2, 3, 0, 0)))
    result = run(text=text.replace("1536", "1537").replace("2]", "2, 9]"), capacity_gib=0.25)
    assert [one["source"] for one in result.scenes[0].events["requests"]] == [None, 0, None, None, None, None, 5]


def test_a_promise_without_a_checkpoint_is_drawn_as_such():
    result = run("forget")
    assert [style for style, _, _ in bars(result, 1)["request:2"]] == ["miss", "ordinary", "state"]
    assert "Counted as reused: 4,608" in result.scenes[0].captions[1].render("en")


def test_a_policy_is_chosen_on_the_drawing_and_the_grip_follows_the_grain():
    def parts(result):
        root = ElementTree.fromstring(EXPERIMENT.picture(result, "requests", 5, "en").svg)
        grip = next(node for node in root.iter() if node.get("data-drag-x") == "grain_blocks")
        return {node.get("data-value") for node in root.iter() if node.get("data-click") == "policy"}, grip

    names, grip = parts(run())
    assert names == {"dense", "align", "align+8192", "marconi", "marconi+8192", "retain:0"}
    moved = parts(run(grain_blocks=5, policy="retain:8g"))
    assert "retain:8g" in moved[0]
    step = float(moved[1].get("cx")) - float(grip.get("cx"))
    assert step == pytest.approx(2 * float(grip.get("data-per-x")), abs=0.02)
