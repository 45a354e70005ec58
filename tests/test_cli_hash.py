"""The `hash` command: its JSON, its text, and broken arguments."""

import json

import commands
import pytest

from k3core.cli import main


def command(line):
    answer, lines = commands.command("hash", *line.split())
    assert not any("\n" in text for text in lines)
    return json.loads(json.dumps(answer)), lines


def test_jump_takes_integers_as_they_are():
    """google/guava golden values."""
    answer, lines = command("jump --nodes 100 --keys 0,1,2 --json")
    assert answer["assignments"] == [0, 55, 62]
    assert any(line.split() == ["1", "node55"] for line in lines)


def test_maglev_table_in_sorted_order():
    """Envoy's test of host names; weights follow their nodes."""
    answer, _ = command("maglev --nodes 95,94,93,92,91,90 --table 7 --keys 3,one")
    assert answer["nodes"] == ["90", "91", "92", "93", "94", "95"]
    assert answer["table"] == [2, 5, 0, 3, 4, 1, 0]
    assert len(answer["assignments"]) == 2
    weighted, _ = command("maglev --nodes 127.0.0.1:91,127.0.0.1:90 --weights 2,1 --table 17")
    assert weighted["table"] == [1, 0, 0, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 0, 1, 0, 1]
    assert "assignments" not in weighted


def test_envoy_ring_points_in_full():
    nodes = ",".join(f"127.0.0.1:{port}" for port in range(90, 96))
    keys = f"0,{2**64 - 1},3551244743356806947,3551244743356806948"
    answer, lines = command(f"ring --style envoy --ring-size 12 --nodes {nodes} --keys {keys}")
    assert answer["points"][0] == [833437586790550860, "127.0.0.1:94"]
    assert answer["points"][-1] == [16117243373044804889, "127.0.0.1:90"]
    assert answer["assignments"] == [4, 4, 5, 3]
    assert any("16117243373044804889  127.0.0.1:90" in line for line in lines)


def test_ketama_ring():
    answer, lines = command("ring --style ketama --vnodes 160 --nodes a,b,c --keys 1,2")
    assert len(answer["points"]) == 480
    assert all(0 <= position < 2**32 for position, _ in answer["points"])
    assert answer["points"] == sorted(answer["points"])
    assert "... and 440 more; --json prints all" in lines


def test_the_others_and_a_file_of_keys(tmp_path):
    path = tmp_path / "keys.txt"
    path.write_text("alpha\n\nbeta\ngamma\n")
    for scheme in ("rendezvous", "modulo", "bounded", "ring", "jump"):
        answer, _ = command(f"{scheme} --nodes a,b,c --keys {path}")
        assert answer["keys"] == ["alpha", "beta", "gamma"]
        assert len(answer["assignments"]) == 3 and sum(answer["counts"]) == 3
    bounded, lines = command("bounded --nodes 4 --keys 1,2,3,4,5,6,7,8 --load-factor 1 --weights 1,1,1,1")
    assert bounded["counts"] == bounded["cap"] == [2, 2, 2, 2]
    assert any("node0  cap 2" in line for line in lines)
    modulo, _ = command("modulo --nodes 10 --keys 7,17,28")
    assert modulo["assignments"] == [7, 7, 8]


@pytest.mark.parametrize(
    "line, message",
    [
        ("jump --nodes 0 --keys 1", "nodes is 0"),
        ("jump --nodes 4", "give --keys"),
        ("maglev --nodes a,b,c --table 8", "table is 8"),
        ("maglev --nodes a,b,c --table seven", "--table is 'seven'"),
        ("ring --nodes a,,b", "non-empty name"),
        ("ring --nodes a,b --weights 1", "weights has 1 values for 2 nodes"),
        ("ring --nodes a,b --weights 1,x", "--weights is 'x'"),
        ("ring --nodes a,b --table 7", "ring does not take table_size"),
        ("jump --nodes 3 --keys 1 --weights 1,1,1", "jump does not take weights"),
        ("bounded --nodes 3 --keys 1 --load-factor 0.5", "load_factor is 0.5"),
        ("bounded --nodes 3 --keys 1 --load-factor 1e18", "load_factor is 1e.18; it must be a number"),
        ("bounded --nodes 3 --keys 1 --load-factor much", "--load-factor is 'much'"),
        ("modulo --nodes 3 --keys ,", "holds no key"),
        ("modulo --nodes 3 --keys nope.txt", "--keys 'nope.txt' looks like a file, and there is none of that name"),
        ("modulo --nodes 3 --keys logs/keys", "--keys 'logs/keys' looks like a file"),
        ("modulo --nodes 3 --keys 18446744073709551616", "keys holds 18446744073709551616"),
        ("best --nodes 3 --keys 1", "scheme is 'best'"),
    ],
)
def test_bad_arguments_are_named(line, message):
    with pytest.raises(ValueError, match=message):
        command(line)


@pytest.mark.parametrize("keys", ["10.0.0.1", "1.5", "users/42,users/43", "users/42,", "nope"])
def test_keys_with_dots_and_slashes_are_keys(keys):
    assert command(f"modulo --nodes 3 --keys {keys}")[0]["keys"] == [key for key in keys.split(",") if key]


def test_a_binary_file_is_named(tmp_path):
    path = tmp_path / "keys.bin"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="keys.bin: this is not text in UTF-8"):
        command(f"modulo --nodes 3 --keys {path}")


def test_it_is_a_command_of_k3core(capsys):
    assert main(["hash", "jump", "--nodes", "100", "--keys", "0,1,2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["assignments"] == [0, 55, 62]
    assert main(["hash", "jump", "--nodes", "0", "--keys", "1"]) == 2
    assert "nodes is 0" in capsys.readouterr().err
