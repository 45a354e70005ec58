"""Tab `page-table`: published page sizes and shares, the pool's bookkeeping, and what the reader can break."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from k3core.lab import page_table as tab
from k3core.lab.page_table_bytes import LEVELS, compare, decode, e4m3_values, encode
from k3core.lab.page_table_log import Timeline, contents, discrepancies, role
from k3core.models import load
from k3core.paged_cache import BlockPool, PageTables
from k3core.sizing import Settings, make_layout, resolve

RUN = tab.EXPERIMENT.run
EXAMPLES = settings(max_examples=40, deadline=None, derandomize=True)


def metrics(result) -> dict:
    return {metric.key: metric.value for metric in result.metrics}


def failed(result) -> set:
    return {check.key for check in result.checks if not check.passed}


def frames(result) -> list:
    return result.scene("pool").events["frames"]


def k3(**changed):
    chosen = resolve(load("kimi-k3"), Settings(**{"tp": 8, "kv_dtype": "fp8", "align": 128} | changed))
    return make_layout(load("kimi-k3"), chosen), chosen


# --- published figures ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tokens", "align", "none"), [
    (12, 0.379, 0.663), (1536, 0.521, 0.911), (8192, 0.665, 0.887), (131072, 0.956, 0.9885),
    (1048576, 0.9946, 0.9989)])
def test_useful_share_of_a_k3_request(tokens, align, none):
    """TP8, fp8, blocks of 1,536 tokens; of two state blocks per group one counts as useful."""
    for mode, share in (("align", align), ("none", none)):
        found = metrics(RUN({"lengths": [tokens], "mode": mode}))
        assert found["mapping_efficiency"] == pytest.approx(share, abs=6e-4) and found["block_size"] == 1536
    row = next(row for row in RUN().tables["lengths"].rows if row[0] == tokens)
    assert (row[2], row[4]) == (pytest.approx(align, abs=6e-4), pytest.approx(none, abs=6e-4))


def test_useful_share_of_a_k3_block():
    found = metrics(RUN())
    assert found["mla_page_efficiency"] == 1 and found["kda_page_efficiency"] == pytest.approx(0.8818, abs=5e-5)
    assert metrics(RUN({"drafts": 7}))["kda_page_efficiency"] == pytest.approx(0.952, abs=5e-4)


def test_twelve_tokens_take_seven_blocks():
    result = RUN({"lengths": [12]})
    assert result.tables["requests"].rows[0][2:5] == (12, 1, 6)
    assert frames(result)[1]["used"] == 7 and metrics(result)["pool_efficiency"] == pytest.approx(0.379, abs=5e-4)


def test_kimi_linear_runs_two_requests_of_120_000_tokens():
    """vllm #28228: block 960, 319 blocks, 125 of rows and 6 of states per request, 2.44 at a time."""
    result = RUN(tab.EXPERIMENT.preset("kimi-linear").params)
    assert metrics(result)["block_size"] == 960 and result.tables["requests"].rows[0][3:5] == (125, 6)
    assert max(len(frame["tables"]) for frame in frames(result)) == 2
    assert [frame["request"] for frame in frames(result) if frame["kind"] == "wait"] == ["C"]


def test_fp8_codes_are_those_of_the_specification():
    """OCP 8-bit floating point, E4M3: bias 7, no infinities, largest 448, smallest 2^-9."""
    values = e4m3_values()
    for code, value in ((0x00, 0.0), (0x01, 2**-9), (0x07, 7 * 2**-9), (0x08, 2**-6), (0x38, 1.0), (0x3C, 1.5),
                        (0x7E, 448.0), (0xB8, -1.0), (0xFE, -448.0)):
        assert values[code] == value
    assert np.flatnonzero(np.isnan(values)).tolist() == [0x7F, 0xFF]


# --- the pool ---------------------------------------------------------------------------------------------------

REQUESTS = st.lists(st.tuples(st.integers(1, 60000), st.booleans()), min_size=1, max_size=6)


@given(REQUESTS, st.sampled_from(("none", "align", "all")), st.integers(0, 3), st.integers(16, 96))
@EXAMPLES
def test_whoever_can_fit_runs_and_all_blocks_come_back(requests, mode, drafts, num_blocks):
    layout, chosen = k3(mode=mode, drafts=drafts)
    timeline = Timeline(layout, chosen, num_blocks)
    named = [("ABCDEF"[i], tokens, forks) for i, (tokens, forks) in enumerate(requests)]
    timeline.play(named)
    assert timeline.discrepancies == 0 and timeline.frames[-1]["used"] == 0 and not timeline.waiting
    for name, tokens, _ in named:
        fits = sum(timeline.need(tokens)) <= num_blocks - 1
        assert any(name in frame["tables"] and frame["tokens"][name] == tokens for frame in timeline.frames) == fits
        assert any(frame["kind"] == "refuse" and frame["request"] == name for frame in timeline.frames) != fits


@given(REQUESTS, st.sampled_from(("none", "align", "all")), st.integers(0, 2))
@EXAMPLES
def test_no_block_is_in_two_tables_unless_a_fork_shares_it(requests, mode, drafts):
    layout, chosen = k3(mode=mode, drafts=drafts)
    timeline = Timeline(layout, chosen, 256)
    timeline.play([("ABCDEF"[i], tokens, forks) for i, (tokens, forks) in enumerate(requests)])
    for frame in timeline.frames:
        held = contents(frame, layout.block_size)
        assert len(held) == frame["used"]
        assert {tuple(sorted({name.upper() for name in block["holders"]})) for block in held.values()} <= {
            (name,) for name in "ABCDEF"}
        assert all(len(block["holders"]) == len(set(block["holders"])) <= 2 for block in held.values())


def test_a_fork_copies_what_it_writes_and_nothing_else():
    result = RUN()
    log = {frame["kind"]: frame for frame in frames(result) if frame["request"] == "d"}
    assert log["fork"]["tables"]["d"] == log["fork"]["tables"]["D"] and log["fork"]["taken"] == []
    before, after = log["write"]["tables"]["D"], log["write"]["tables"]["d"]
    assert before == log["fork"]["tables"]["D"]  # the source keeps its blocks
    differ = [(g, i) for g, table in enumerate(after) for i, block in enumerate(table) if block != before[g][i]]
    assert differ == [(0, 26), (1, 1), (2, 1), (3, 1)]  # the part-full block of rows, and three running states
    assert log["write"]["used"] == log["fork"]["used"] + 4
    assert metrics(result)["shared_bytes"] == (33 - 4) * 21_233_664


def test_a_fork_at_a_block_boundary_takes_a_fresh_block_of_rows():
    log = {frame["kind"]: frame for frame in frames(RUN({"lengths": [3072], "running": [2]}))}
    assert [len(table) for table in log["write"]["tables"]["A"]] == [2, 2, 2, 2]
    assert [len(table) for table in log["write"]["tables"]["a"]] == [3, 2, 2, 2]
    assert log["write"]["tables"]["a"][0][:2] == log["write"]["tables"]["A"][0]


def test_a_request_that_fits_later_gets_the_blocks_that_others_left():
    log = frames(RUN())
    left = {block for frame in log if frame["kind"] == "leave" and frame["request"] in "AB"
            for block in frame["freed"]}
    let_in = next(frame for frame in log if frame["kind"] == "let_in")
    assert let_in["request"] == "F" and left <= {block for table in let_in["tables"]["F"] for block in table}


def test_what_can_never_fit_is_refused_and_holds_nobody_up():
    """vllm-ascend #17074: it waited forever instead."""
    log = frames(RUN(tab.EXPERIMENT.preset("too-long").params))
    kinds = [(frame["kind"], frame["request"]) for frame in log if frame["request"]]
    assert ("refuse", "D") in kinds and kinds.index(("refuse", "D")) < kinds.index(("arrive", "E"))
    assert not any(frame["waiting"] for frame in log)


def test_a_request_sent_away_takes_nothing_and_nobody_may_come_at_all():
    assert "C" not in {name for frame in frames(RUN({"running": [1, 1, 0]})) for name in frame["tables"]}
    empty = RUN({"running": [0] * 6})
    assert metrics(empty)["mapping_efficiency"] is None and not failed(empty) and len(frames(empty)) == 1


def test_roles_of_a_state_table():
    assert [role(1, index) for index in range(4)] == ["kept", "running", "draft", "draft"]
    assert role(None, 7) == "rows"


# --- real bytes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ("fp8", "bf16"))
def test_rows_survive_the_pool_and_a_state_read_as_rows_is_garbage(dtype):
    assert not failed(RUN({"kv_dtype": dtype}))
    broken = RUN({"kv_dtype": dtype, "wrong_table": True}, seed=5)
    assert failed(broken) == {"rows_read_back"}
    found = broken.scene("page").events["found"]
    assert found["different"] > 0.95 * found["values"] and found["not_finite"] > 0
    assert found["largest"] > {"fp8": 400, "bf16": 1e30}[dtype]


@pytest.mark.parametrize("dtype", ("fp8", "bf16"))
def test_values_that_a_type_holds_come_back_exactly(dtype):
    assert np.array_equal(decode(encode(LEVELS, dtype), dtype), LEVELS)
    with pytest.raises(ValueError, match="exactly"):
        encode(np.array([1 / 3], np.float32), "fp8")


def test_the_comparison_counts_what_differs():
    written = np.array([1.0, 2.0, 3.0], np.float32)
    assert compare(written, written) == {"values": 3, "different": 0, "not_finite": 0, "largest": 0.0}
    found = compare(written, np.array([1.0, np.nan, -4.0], np.float32))
    assert found == {"values": 3, "different": 2, "not_finite": 1, "largest": 7.0}


# --- the checks can fail ----------------------------------------------------------------------------------------


def test_a_leak_is_noticed(monkeypatch):
    release = PageTables.release

    def leak(self, request):
        self.tables[request][0].pop()
        release(self, request)

    monkeypatch.setattr(PageTables, "release", leak)
    assert {"pool_whole_again", "tables_agree"} <= failed(RUN())


def test_a_fork_that_does_not_count_is_noticed(monkeypatch):
    monkeypatch.setattr(BlockPool, "touch", lambda self, blocks: None)
    with pytest.raises(ValueError, match="not in use"):
        RUN()
    assert discrepancies([0, 1, 1], {"A": [[1, 2]], "a": [[1, 2]]}) == 2
    assert discrepancies([0, 1], {"A": [[0, 1]]}) == 2


def test_a_table_that_leads_elsewhere_is_noticed(monkeypatch):
    monkeypatch.setattr(tab, "role", lambda running, index: "rows" if running is None else "kept")
    assert failed(RUN()) == {"bytes_as_formula"}


# --- drawing ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", [None, "million", "kimi-linear", "seven-drafts"])
def test_the_grid_draws_every_block_in_use(preset):
    result = RUN(tab.EXPERIMENT.preset(preset).params if preset else {})
    for frame, logged in enumerate(frames(result)):
        picture = tab.EXPERIMENT.picture(result, "pool", frame, "en")
        for block in range(1, result.scene("pool").events["num_blocks"]):
            used = any(block in table for tables in logged["tables"].values() for table in tables)
            assert (f'data-id="block:{block}"' in picture.svg) == used
        counts = [int(words.args["n"]) for swatch, words in picture.legend if swatch in ("mla", "state", "snapshot")]
        assert sum(counts) == logged["used"]


def test_the_prediction_is_answered_for_the_settings():
    assert [RUN(params).answer for params in ({}, {"mode": "none"}, {"drafts": 7})] == [2, 1, 3]
