"""A result kept for comparison: the host runs its settings beside the new ones, and a wrong pin disturbs nothing."""

import json

from k3core.lab.contract import dumps
from k3core.lab.host import Host
from k3core.lab.registry import experiment


def handled(pin: dict, **more) -> dict:
    host, request = Host(), {"do": "start", "slug": "byte-cost", "params": {}, "seed": 0, "lang": "en", "pin": pin}
    reply = json.loads(host.handle(dumps(request | more)))
    while reply["state"] == "progress":
        reply = json.loads(host.handle('{"do":"step"}'))
    return reply


def test_the_kept_settings_are_run_beside_the_new_ones():
    reply = handled({"params": {"dk": "16", "dv": "16"}, "seed": "3"}, params={"drafts": 2})
    kept = experiment("byte-cost").run({"dk": 16, "dv": 16}, 3)
    assert reply["pinned"] == {"metrics": json.loads(dumps(kept.to_json("en")["metrics"]))}
    assert reply["result"] == json.loads(dumps(experiment("byte-cost").run({"drafts": 2}).to_json("en")))


def test_a_wrong_pin_says_so_and_the_run_goes_on():
    reply = handled({"params": {"dk": 999}, "seed": 0}, lang="zh")
    assert reply["state"] == "done" and "999" in reply["pinned"]["message"] and "整数" in reply["pinned"]["message"]


def test_without_a_pin_there_is_nothing_to_compare_with():
    host = Host()
    request = {"do": "start", "slug": "byte-cost", "params": {}, "seed": 0, "lang": "en"}
    assert json.loads(host.handle(dumps(request | {"pin": {"params": {}, "seed": 0}})))["pinned"]
    assert json.loads(host.handle(dumps(request)))["pinned"] is None
