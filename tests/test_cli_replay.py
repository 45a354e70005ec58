"""`python -m k3core replay`: what it counts, and which lines and options it refuses."""

import json
from functools import partial

import commands
import numpy as np
import pytest

from k3core.traces import WORKLOADS, generate_trace

command = partial(commands.command, "replay")


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(json.dumps(r._asdict()) + "\n"
                            for r in generate_trace(WORKLOADS["multi-turn"], 60, np.random.default_rng(1))))
    return path


def test_command_counts_in_bytes_of_k3(trace):
    answer, lines = command(trace, "--policy", "marconi", "--tp", 8, "--kv-dtype", "fp8", "--capacity-gib", 1)
    assert {"requests", "input_tokens", "hit_tokens", "hit_rate", "requests_with_hit", "blocks_total",
            "blocks_distinct", "checkpoints", "evicted_checkpoints", "evicted_blocks", "peak_bytes"} <= set(answer)
    assert (answer["block_bytes"], answer["checkpoint_bytes"]) == (1536 * 13_824, 449_372_160 // 8)
    assert 0 < answer["peak_bytes"] <= 2**30 and answer["requests"] == 60 and answer["evicted_checkpoints"]
    assert any("hit rate" in line for line in lines) and not any("\n" in line for line in lines)


def test_command_names_or_skips_a_bad_line(trace, capsys):
    trace.write_text(trace.read_text() + "rubbish\n")
    with pytest.raises(ValueError, match="trace.jsonl, line 61: 'rubbish' cannot be read as JSON"):
        command(trace)
    assert command(trace, "--bad-lines", "skip")[0]["lines_skipped"] == 1
    assert "skipped line 61" in capsys.readouterr().err


@pytest.mark.parametrize(("options", "problem"), [
    (["--grain", "0"], "--grain is '0'"), (["--grain", "1000"], "grain is 1000; it must be a multiple"),
    (["--hash-block", "-1"], "--hash-block is '-1'"), (["--policy", "best"], "policy 'best' is not known"),
    (["--capacity-gib", "nan"], "--capacity-gib is 'nan'"), (["--capacity-gib", "-inf"], "--capacity-gib is '-inf'"),
    (["--capacity-gib", "1e300"], "--capacity-gib is '1e300'"), (["--eviction", "x"], "--eviction is 'x'"),
    (["--model", "nope"], "'nope' is neither a file nor a preset"), (["--tp", "7"], "tp 7 does not divide"),
    (["--kv-dtype", "int3"], "kv-dtype is 'int3'"), (["--bad-lines", "ignore"], "--bad-lines is 'ignore'"),
])  # fmt: skip
def test_command_refuses_options_that_make_no_sense(trace, options, problem):
    with pytest.raises(ValueError, match=problem):
        command(trace, *(f"{options[0]}={options[1]}",))


def test_command_without_a_file(tmp_path):
    with pytest.raises(OSError, match="No such file"):
        command(tmp_path / "missing.jsonl")
