"""The `fleet` command and the scenarios behind it."""

import json

import commands
import pytest

from k3core.cli import main
from k3core.fleet.scenario import PRESETS, Scenario, play
from k3core.fleet.simulate import finish


def command(*arguments):
    answer, lines = commands.command("fleet", *arguments)
    assert not any("\n" in text for text in lines)
    return json.loads(json.dumps(answer, allow_nan=False)), lines


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_answers_and_its_books_balance(preset):
    answer, lines = command("--preset", preset)
    assert {
        "vip_p99_isolated_ms",
        "vip_p99_shared_ms",
        "hit_rate",
        "cost_per_request_usd",
        "rejected",
    } <= set(answer["metrics"])
    for outcome in answer["runs"].values():
        assert all(check["passed"] for check in outcome["checks"])
    assert "CHECK FAILS" not in "\n".join(lines)


def test_the_claim_holds_for_fixed_service_and_fails_for_exponential():
    """VIP P99 of 200 ms isolated, over 800 shared: true of 100 ms fixed, impossible for Exp(100 ms)."""
    claim = command("--preset", "claim")[0]["metrics"]
    assert claim["vip_p99_isolated_ms"] < 200 and claim["vip_p99_shared_ms"] > 800
    assert claim["ordinary_p99_isolated_ms"] > 1.2 * claim["ordinary_p99_shared_ms"]  # the price
    assert command("--preset", "claim-exponential")[0]["metrics"]["vip_p99_isolated_ms"] > 400


def test_a_burst_on_k3_and_one_cent():
    burst, lines = command()
    assert burst["metrics"]["vip_p99_isolated_ms"] < 300
    assert burst["metrics"]["vip_p99_shared_ms"] > 800
    assert any("in the burst" in line and "unstable" in line for line in lines)
    assert command("--preset", "one-cent")[0]["metrics"]["cost_per_request_usd"] < 0.01
    assert command("--preset", "agentic-day")[0]["metrics"]["cost_per_request_usd"] > 0.1


def test_a_lost_cluster_costs_prefill_and_attempts():
    lost, calm = (
        command("--preset", "cluster-loss")[0],
        command("--preset", "cluster-loss", "--set", "fail_at=-1", "--set", "recover_at=-1")[0],
    )
    assert sum(one["lost_attempts"] for one in lost["runs"]["strict"]["classes"]) > 0
    assert lost["metrics"]["hit_rate"] < calm["metrics"]["hit_rate"]


def test_settings_and_own_policy():
    answer, _ = command("--set", "policy=borrow", "--set", "clusters=2", "--set", "vip_rate=3", "--seed", "7")
    assert answer["params"]["clusters"] == 2 and answer["params"]["vip_rate"] == 3.0 and answer["seed"] == 7
    assert list(answer["runs"]) == ["strict", "shared", "borrow"]
    bucket, _ = command("--set", "policy=token_bucket", "--set", "token_rate=200000")
    assert bucket["runs"]["token_bucket"]["rejected"] > 0
    assert (
        bucket["metrics"]["rejected"]
        == bucket["runs"]["token_bucket"]["classes"][1]["rejected"]["over its token rate"]
    )
    limited, _ = command("--set", "queue_limit=5")
    assert limited["metrics"]["rejected"] > 0


def test_vip_is_the_same_whatever_the_burst():
    calm, wild = (finish(play(Scenario(burst_factor=factor), 3))["strict"] for factor in (1.0, 5.0))
    assert calm.classes[0] == wild.classes[0]


@pytest.mark.parametrize("times", [["burst=0"], ["burst=1e-300"], ["before=0", "burst=0", "after=0"]])
def test_a_window_without_length_has_no_load(times):
    answer, _ = command("--preset", "claim", *(part for time in times for part in ("--set", time)))
    assert all(run["load_in_burst"] == [] for run in answer["runs"].values())
    assert (answer["runs"]["strict"]["load"] == []) == (len(times) == 3)


def test_progress_reaches_the_total():
    seen = list(play(Scenario(), 0))
    assert seen == sorted(seen) and seen[-1][0] == seen[-1][1]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--preset", "calm"], "preset is 'calm'"),
        (["--seed", "-1"], "seed is -1; it takes a whole number from 0 to 4294967295"),
        (["--seed", "9" * 5000], "seed is '999"),
        (["--set", "speed=3"], "there is no parameter 'speed'; there are "),
        (["--set", "clusters"], "--set takes NAME=VALUE, not 'clusters'"),
        (["--set", "clusters=two"], "clusters is 'two'"),
        (["--set", "clusters=0"], "clusters is 0"),
        (["--set", "clusters=1001"], "clusters is 1001; it must be at most 1,000"),
        (["--set", "slots=" + "9" * 30], "slots is 9+; it must be at most 16,777,216"),
        (["--set", "vip_prompt=16777217"], "vip_prompt is 16777217; it must be at most 16,777,216"),
        (["--set", "vip_conversations=100001"], "vip_conversations is 100001; it must be at most 100,000"),
        (["--set", "slots=0"], "slots is 0"),
        (["--set", "slots=1"], "reserves 0 slots"),
        (["--set", "vip_percent=100"], "vip_percent is 100"),
        (["--set", "policy=fair"], "policy is 'fair'"),
        (["--set", "router=best"], "router is 'best'"),
        (["--set", "measure=speed"], "measure is 'speed'"),
        (["--set", "vip_rate=nan"], "vip_rate is nan"),
        (["--set", "vip_rate=-1"], "finite seconds and rate"),
        (["--set", "vip_rate=1e9"], "the limit is 2,000,000"),
        (["--set", "burst_factor=inf"], "burst_factor is inf"),
        (["--set", "grain=1000"], "grain is 1000"),
        (["--set", "token_ms=-1"], "decode_seconds is"),
        (["--set", "blocks=-1"], "pages is"),
        (["--set", "policy=token_bucket"], "needs a class with a token_rate"),
        (["--set", "policy=token_bucket", "--set", "token_rate=0"], "token_rate is 0"),
        (["--set", "recover_at=5"], "cannot recover"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        command(*arguments)


def test_it_is_a_command_of_k3core(capsys):
    assert main(["fleet", "--preset", "claim", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["vip_p99_isolated_ms"] < 200
    assert main(["fleet", "--set", "clusters=0"]) == 2
    assert "clusters is 0" in capsys.readouterr().err
