"""The `size` command: answers, text, and broken files and arguments."""

import argparse
import json

import pytest

from k3core import cli_size, models


def command(*arguments):
    parser = argparse.ArgumentParser()
    cli_size.add_parser(parser.add_subparsers())
    args = parser.parse_args(["size", *map(str, arguments)])
    answer = args.run(args)
    return answer, args.render(answer)


def test_command_answers_as_data_and_as_text():
    answer, lines = command(
        "kimi-linear-48b", "--tp", 2, "--mode", "none", "--max-model-len", 120000, "--memory-gib", 2.30
    )
    assert answer["reported_tokens"] == 299_062
    assert any("reported tokens" in line and "299,062" in line for line in lines)
    assert not any("\n" in line for line in lines)


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
    path.write_text(json.dumps({"num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 8}))
    assert command(path)[0]["bytes_per_token"] == command(tmp_path)[0]["bytes_per_token"] == 2 * 2 * 4 * 8 * 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not JSON"),
        (b"{", "is not JSON"),
        (b"[1]", "is a list"),
        (b"\xff\xfe\x00", "cannot read"),
        (b"[" * 100_000, "is not JSON"),
        (b'{"num_hidden_layers": ' + b"9" * 5000 + b"}", "is not JSON"),
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
