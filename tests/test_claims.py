"""Claims: each is there, each verdict follows from its numbers, each link opens the state of those numbers."""

import re
import string
from dataclasses import replace
from types import SimpleNamespace
from urllib.parse import unquote

import pytest

from k3core.lab.params import parse_all
from k3core.lab.registry import everything, experiment
from k3core.lab.text import LANGUAGES
from sitegen.claims import CLAIMS
from sitegen.claims import words as claims
from sitegen.claims.evidence import CONDITIONS, FAILS, HOLDS, OPEN, VERDICTS, Run, Runs, run
from sitegen.render import page_path

RUNS = Runs()
IDS = [claim.id for claim in CLAIMS]
BY_ID = {claim.id: claim for claim in CLAIMS}
RUN_STATES = sorted({figure.run for claim in CLAIMS for figure in claim.figures if figure.run}, key=repr)
PLACES = {lang: {tab.slug: {"tab": tab.tab, "name": tab.name.render(lang), "path": page_path(tab)}
                 for tab in map(experiment, everything())} for lang in LANGUAGES}

# What the demonstration is reported to show, in the order of the report -> the claims made of it.
REPORTED = {
    "records under 0.4 of snapshots for S0 to S3, replay consistent": ["projection-share"],
    "snapshots grow linearly with the sequence": ["snapshots-with-length"],
    "dk = 16: 5,000 bytes, 1,500 bytes, 7.9 times": ["bytes-at-16", "gap-of-7.9", "all-three-figures"],
    "same output, interrupted or corrected, asynchronous or with jitter": ["same-output", "asynchronous-nodes"],
    "Key-Dependent Attention": ["kda-name"],
    "ring: fixed capacity, endless sequence; rebuild cost varies": ["ring-capacity", "ring-rebuild"],
    "snapshots exponential in the draft, inputs linear": ["growth-with-drafts"],
    "one pool: steadier, without fragmentation, robust under concurrency":
        ["steadier-access", "less-fragmentation", "robust-at-concurrency"],
    "two-stage lookup, chained hash, atomic checkpoint; a hit saves 40 %; a miss leaves a checkpoint":
        ["two-stage-lookup", "hit-saves-40", "miss-leaves-a-checkpoint", "atomic-checkpoint"],
    "even spread; few keys, no avalanche; a quota per class":
        ["even-spread", "few-keys-move", "no-avalanche", "own-quota"],
    "VIP P99 200 ms against 800 ms": ["vip-p99"],
    "a generation under one cent": ["under-one-cent"],
    "matches or beats the large model; fit for edge devices": ["like-the-large-model", "edge-devices"],
    "Kimi K3, DeepSeek V4, pi0.5, pi0.7": ["suits-k3", "suits-deepseek-v4", "suits-robot-policies"],
}

# Other numbers, and the verdict that they have to lead to.
PERTURBED = {
    "projection-share": [({"s0": 0.41}, FAILS), ({"off": 1e-9}, FAILS), ({"eight": 0.3}, HOLDS)],
    "snapshots-with-length": [({"window_long": 10**15}, HOLDS), ({"every_long": 1}, FAILS)],
    "bytes-at-16": [({"both": 1}, HOLDS), ({"records": 980}, FAILS), ({"snapshots": 4096}, FAILS)],
    "gap-of-7.9": [({"plain": 7.9, "with_conv": 7.9}, HOLDS), ({"mixed": 7.0}, FAILS)],
    "all-three-figures": [({"most": 8.0}, CONDITIONS)],
    "growth-with-drafts": [({"state_chain": 255 * 65536}, HOLDS)],
    "same-output": [({"resumed": False}, FAILS), ({"corrected": False}, FAILS),
                    ({"loose": True, "twice": True}, HOLDS)],
    "asynchronous-nodes": [({"late": False}, FAILS), ({"nodes": False}, FAILS),
                           ({"nodes_end": SimpleNamespace(template="in the same bits")}, HOLDS)],
    "ring-capacity": [({"moved": 1}, FAILS), ({"moved_eight": 1}, FAILS), ({"most": 21}, FAILS)],
    "ring-rebuild": [({"window": 8.1, "buffer": 8.2}, FAILS)],
    "steadier-access": [({"two_pools": 10**6, "reserved": 10**6}, HOLDS), ({"unified": 10**9}, FAILS)],
    "less-fragmentation": [({"unified": 0.4}, FAILS), ({"two_ends": 0.2, "steady_split": 0.2}, HOLDS)],
    "robust-at-concurrency": [({"p99_crowd": 10**6}, FAILS), ({"mapped_short": 0.9}, HOLDS)],
    "two-stage-lookup": [({"hit": 0}, FAILS), ({"wrong": 1}, FAILS), ({"wrong_unchained": 0}, FAILS)],
    "hit-saves-40": [({"saved": 39.0}, FAILS), ({"saved_small": 41.0, "saved_nothing": 41.0}, HOLDS)],
    "miss-leaves-a-checkpoint": [({"next": 0}, FAILS), ({"written": 0}, FAILS), ({"next_align": 528}, HOLDS)],
    "atomic-checkpoint": [({"violations": 1}, FAILS), ({"early": None}, FAILS), ({"half": None}, FAILS)],
    "even-spread": [({"peak": 1.3}, FAILS), ({"peak_one": 1.1, "load_hot": 1.1}, HOLDS)],
    "few-keys-move": [({"moved": 0.2}, FAILS), ({"needless": 0.01}, FAILS), ({"modulo": 0.1}, FAILS)],
    "no-avalanche": [({"secondary": 1.0}, FAILS), ({"one_point": 0.2}, HOLDS)],
    "own-quota": [({"changed": 1}, FAILS), ({"changed_lending": 0, "changed_priority": 0}, HOLDS)],
    "vip-p99": [({"isolated": 201.0}, FAILS), ({"shared": 799.0}, FAILS),
                ({"last_token": 150.0, "exponential": 150.0, "routed": 150.0}, HOLDS)],
    "under-one-cent": [({"short": 0.02}, FAILS), ({"chat": 0.009, "agents": 0.009}, HOLDS)],
    "suits-k3": [({"slot": 0}, FAILS), ({"padding": 0.5}, FAILS)],
    "suits-deepseek-v4": [({"token": 0}, FAILS), ({"slot": 1}, HOLDS)],
    "suits-robot-policies": [({"with_prefix": 20_000}, FAILS), ({"slot": 1, "slot_larger": 1}, HOLDS)],
    "kda-name": [({"delta": 0.5}, HOLDS)],
}


def parse_state(fragment: str) -> dict:
    """What the page's script makes of a fragment."""
    return {unquote(name): unquote(value) for name, _, value in (piece.partition("=") for piece in fragment.split("&"))
            if name}


def fields(template: str) -> set:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


def test_every_claim_of_the_report_is_there():
    assert sorted(id for ids in REPORTED.values() for id in ids) == sorted(IDS)
    assert set(claims.words()) == set(IDS)


# --- numbers of others, reached through the same figures --------------------------------------------------------


def test_figures_against_published_ones():
    at_16 = RUNS.numbers(BY_ID["bytes-at-16"])
    assert (at_16.snapshots, at_16.records) == (5 * 16 * 16 * 4, 4 * 97 * 4) == (5120, 1552)
    assert RUNS.numbers(BY_ID["gap-of-7.9"]).mixed == pytest.approx(1024 / 130)
    share = RUNS.numbers(BY_ID["projection-share"])
    assert [share.s0, share.s1] == [97 * 4 / 1024, (6 * 32 + 1) * 4 / 4096]
    assert RUNS.numbers(BY_ID["few-keys-move"]).ideal == pytest.approx(1 / 11)
    vip = RUNS.numbers(BY_ID["vip-p99"])
    assert (vip.measured_flow, vip.measured_open) == (329.7, 941.3)  # llm-d-batch-gateway #491
    k3, robot = RUNS.numbers(BY_ID["suits-k3"]), RUNS.numbers(BY_ID["suits-robot-policies"])
    assert (k3.slot, k3.token, k3.block) == (69 * 814_080, 13_824, 1536)
    assert (robot.token, robot.with_prefix, robot.without_prefix) == (18_432, 968 + 50 * 10, (968 + 50) * 10)
    name = RUNS.numbers(BY_ID["kda-name"])
    assert (name.delta, name.added) == (0.0, 1.0)


# --- verdicts ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("claim", CLAIMS, ids=IDS)
def test_the_verdict_is_the_one_that_is_explained(claim):
    assert claim.decide(RUNS.numbers(claim)) == claims.words()[claim.id]["verdict"]


@pytest.mark.parametrize("id", [id for id in IDS if claims.words()[id]["verdict"] != OPEN])
def test_other_numbers_lead_to_another_verdict(id):
    claim, numbers = BY_ID[id], vars(RUNS.numbers(BY_ID[id]))
    now = claim.decide(SimpleNamespace(**numbers))
    for change, verdict in PERTURBED[id]:
        assert set(change) <= set(numbers) and verdict != now
        assert claim.decide(SimpleNamespace(**numbers | change)) == verdict, change


def test_an_explanation_goes_when_its_verdict_does():
    claim = BY_ID["few-keys-move"]
    assert claims.card(claim, RUNS, PLACES["en"], "en")["why"]
    card = claims.card(replace(claim, decide=lambda n: FAILS), RUNS, PLACES["en"], "en")
    assert card["verdict"] == FAILS and card["why"] == []


# --- links ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", RUN_STATES, ids=lambda where: f"{where.slug}#{where.fragment}")
def test_a_link_is_the_state_that_was_run(where):
    params = experiment(where.slug).params
    opened = parse_all(params, parse_state(where.fragment))
    assert opened == parse_all(params, dict(where.settings))
    assert opened == RUNS.result(where).params
    defaults = parse_all(params, {})
    assert all(opened[name] != defaults[name] for name, _ in where.settings)  # nothing idle in the address


@pytest.mark.parametrize("where", [run("byte-cost", dk=16, dv=9, drafts=8), run("minimal-disruption", scheme="modulo"),
                                   run("allocation-jitter", memory=16.0, load=120)], ids=lambda where: where.slug)
def test_running_a_link_gives_the_same_numbers(where):
    again = experiment(where.slug).run(parse_state(where.fragment)).to_json("en")
    assert again["metrics"] == RUNS.result(where).to_json("en")["metrics"]


def test_an_address_is_written_as_the_page_writes_it():
    where = run("page-table", lengths=(12, 1536), wrong_table=True, memory=16.0, share=0.5)
    assert where.fragment == "lengths=12%2C1536&wrong_table=true&memory=16&share=0.5"
    assert Run("byte-cost").fragment == ""


# --- words ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("claim", CLAIMS, ids=IDS)
def test_words_are_complete_in_both_languages(claim):
    said, keys = claims.words()[claim.id], [figure.key for figure in claim.figures]
    assert set(said) <= {"short", "claim", "verdict", "why", "figures"} and said["verdict"] in VERDICTS
    assert set(said.get("figures", {})) <= set(keys) and len(set(keys)) == len(keys)
    named = fields(said["why"]["en"])
    assert fields(said["why"]["zh"]) == named <= set(keys) | set(claim.derive(RUNS.numbers(claim)))
    for words in (said["claim"], said["why"], said["short"], *said.get("figures", {}).values()):
        assert set(words) == set(LANGUAGES) and all(words.values())
        assert not re.search(r"[\u4e00-\u9fff]", words["en"])
    assert re.search(r"[\u4e00-\u9fff]", said["claim"]["zh"]) and re.search(r"[\u4e00-\u9fff]", said["why"]["zh"])


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_page_has_every_claim_once(lang):
    page = claims.page(RUNS, PLACES[lang], lang)
    cards = [card for cards in page["groups"].values() for card in cards]
    assert [card["id"] for card in cards] == IDS
    assert sum(len(tally) for tally in page["tally"].values()) == len(IDS) and set(page["tally"]) == set(VERDICTS)
    paths = {place["path"] for place in PLACES[lang].values()}
    for card in cards:
        assert card["why"] and "".join(text for text, _ in card["claim"]) == claims.words()[card["id"]]["claim"][lang]
        for item in card["evidence"]:
            assert item["source"] or item["link"].split("#")[0] in paths
            assert all(number["text"] and number["label"] for number in item["numbers"])


def test_bytes_written_out_name_what_the_tab_shows():
    card = claims.card(BY_ID["bytes-at-16"], RUNS, PLACES["en"], "en")
    assert card["evidence"][0]["numbers"] == [
        {"key": "snapshots", "label": "5 states, fp32", "text": "5,120 B", "tab": "5 KiB"}]
    assert card["evidence"][0]["settings"] == [("Key size dk", "16"), ("Value size dv", "16"), ("Draft tokens", "4")]
