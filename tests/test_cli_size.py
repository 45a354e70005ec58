"""The `size` command: answers, text, and broken files and arguments."""

import json
import re
from functools import partial

import commands
import pytest

from k3core import models
from k3core.cli import main

GQA = {"num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 8}


command = partial(commands.command, "size")


def test_command_answers_as_data_and_as_text():
    answer, lines = command(
        "kimi-linear-48b", "--tp", 2, "--mode", "none", "--max-model-len", 120000, "--memory-gib", 2.30
    )
    assert answer["reported_tokens"] == 299_062
    assert any("reported tokens" in line and "299,062" in line for line in lines)
    assert not any("\n" in line for line in lines)


@pytest.mark.parametrize("arguments, line", [
    (["qwen3-next-80b"], "State dtype bf16: the model's own, as vLLM takes for GDN"),
    (["qwen3-next-80b", "--state-dtype", "fp32"], "State dtype fp32: as it is set"),
    (["qwen3.5-4b"], "State dtype fp32: named in the model's file"),
    (["kimi-k3"], "State dtype fp32: vLLM's for KDA, whatever the model's"),
    (["nemotron-3-nano-30b"], "State dtype fp32: vLLM's default for Nemotron-H"), (["llama-3.3-70b"], None),
])
def test_the_dtype_of_the_state_is_explained(arguments, line):
    said = [text for text in command(*arguments)[1] if text.startswith("State dtype")]
    assert said == ([line] if line else [])


def test_command_has_every_key_of_the_contract():
    answer, _ = command("kimi-k3", "--tp", 8, "--kv-dtype", "fp8", "--num-blocks", 1000)
    assert {
        "bytes_per_token",
        "state_bytes_per_sequence",
        "conv_bytes_per_sequence",
        "checkpoint_bytes",
        "token_equivalent",
        "page_bytes",
        "block_size",
        "padding_percent",
        "groups",
        "padding_layers",
        "num_blocks",
        "blocks_per_request",
        "max_concurrency",
        "reported_tokens",
        "slots_per_request",
    } <= set(answer)
    assert all({"kind", "layers"} <= set(group) for group in answer["groups"])


@pytest.mark.parametrize("name", models.names())
def test_command_renders_every_preset(name):
    for more in ([], ["--memory-gib", "40"]):
        _, lines = command(name, *more)
        assert "None" not in "\n".join(lines)


def test_command_reads_a_config_file_or_its_folder(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(GQA))
    assert command(path)[0]["bytes_per_token"] == command(tmp_path)[0]["bytes_per_token"] == 2 * 2 * 4 * 8 * 2
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="empty.config.json"):
        command(tmp_path / "empty")


def test_a_mark_at_the_start_of_a_file_is_passed_over(tmp_path):
    path = tmp_path / "config.json"
    path.write_text("\ufeff" + json.dumps(GQA), encoding="utf-8")
    assert command(path)[0]["bytes_per_token"] == 2 * 2 * 4 * 8 * 2


def test_without_memory_the_last_line_says_what_to_add(tmp_path):
    """Without a length in the file neither question is answered; each option that is given leaves the hint."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(GQA))
    memory, length = ["--memory-gib", 1], ["--max-model-len", 4096]
    said = {count: command(path, *options)[1][-1] for count, options in
            enumerate(([], length, memory, ["--num-blocks", 9], [*memory, *length]))}
    assert said[0] == "How many requests fit: add --memory-gib X (or --num-blocks N) and --max-model-len N."
    assert said[1] == "How many requests fit: add --memory-gib X (or --num-blocks N)."
    assert said[2] == said[3] == "How many requests fit: add --max-model-len N."
    assert "add" not in said[4]


@pytest.mark.parametrize(("model", "options"), [
    ("kimi-k3", []), ("kimi-k3", ["--tp", 8, "--mode", "none", "--drafts", 7]), ("llama-3.3-70b", []),
    ("deepseek-v4-pro", []), ("pi0.5", []), ("kimi-linear-48b", ["--max-model-len", 1]),
])
def test_where_nothing_fits_the_last_line_says_what_one_request_takes(model, options):
    """With the memory that it names one request fits, with a block less none."""
    answer, lines = command(model, *options, "--memory-gib", 1e-9)
    assert answer["limit"]["requests_at_max_model_len"] == 0
    said = re.fullmatch(r"Nothing fits: one request of ([\d,]+) tokens takes ([\d,]+) .*bytes. "
                        r"Give --memory-gib ([\d.]+) or more.*\.", lines[-1])
    need = answer["blocks_per_request"] * answer["block_bytes"]
    assert int(said[2].replace(",", "")) == answer["request_bytes"] == need
    enough, lines = command(model, *options, "--memory-gib", said[3])
    assert enough["limit"]["requests_at_max_model_len"] == 1 and "Nothing fits" not in "\n".join(lines)
    less = (answer["request_bytes"] - 1) / 2**30
    assert command(model, *options, "--memory-gib", less)[0]["limit"]["requests_at_max_model_len"] == 0


def test_too_few_blocks_are_told_in_blocks_and_it_is_no_error(capsys):
    answer, lines = command("kimi-k3", "--num-blocks", 100)
    assert f"Give --num-blocks {answer['blocks_per_request']} or more, or a shorter --max-model-len." in lines[-1]
    enough, _ = command("kimi-k3", "--num-blocks", answer["blocks_per_request"])
    assert enough["limit"]["requests_at_max_model_len"] == 1
    assert main(["size", "kimi-k3", "--memory-gib", "0.001"]) == 0 and "Nothing fits" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "config.json: line 1, column 1: there is nothing to read; this is not JSON"),
        (b'{\n"a": 1,\n}', "config.json: line [23], column [17]: .*; this is not JSON"),
        (b"[1]", "is a list"),
        (b"\xff\xfe\x00", "config.json: this is not text in UTF-8"),
        (b"[" * 100_000, "config.json: nested more than 100 levels deep"),
        (b'{"num_hidden_layers": ' + b"9" * 5000 + b"}", "config.json: it holds a number of thousands of digits"),
        (b'{"num_hidden_layers": NaN}', "is nan; it must be an integer"),
    ],
)
def test_command_refuses_a_broken_file_in_one_line(tmp_path, content, message):
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        command(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-such-model"], "'no-such-model' is neither a file nor a preset"),
        (["m" * 5000], "is neither a file nor a preset"),
        (["kimi-k3", "--tp", "x"], "--tp is 'x'; it must be an integer"),
        (["kimi-k3", "--memory-gib", "nan"], "--memory-gib is 'nan'"),
        (["kimi-k3", "--memory-gib", "-1"], "--memory-gib is '-1'"),
        (["kimi-k3", "--memory-gib", "1e300"], "--memory-gib is '1e300'"),
        (["kimi-k3", "--num-blocks", "1", "--memory-gib", "1"], "both given"),
    ],
)
def test_command_refuses_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        command(*arguments)
