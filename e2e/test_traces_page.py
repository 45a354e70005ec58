"""The Trace workbench as a reader uses it: a file dropped, a wrong one, a policy chosen on the drawing, a stop."""

import json

import parity
from visit import shows

from k3core.lab.registry import experiment

PAGE = "traces.html"
PICK = '[data-input="trace"] input[type="file"]'


def line(ms: int, length: int, own: int) -> str:
    """A prompt that shares its first 4 blocks of 512 with all others."""
    full = -(-length // 512)
    return json.dumps({"timestamp": ms, "input_length": length, "output_length": 9,
                       "hash_ids": [*range(4), *(1000 * own + i for i in range(full - 4))]})


def file_of(text: str) -> dict:
    return {"name": "trace.jsonl", "mimeType": "application/json", "buffer": text.encode()}


def test_a_trace_is_replayed_and_a_wrong_one_loses_nothing(workbench):
    page, text = workbench.page, "\n".join(line(i, 4000, i + 1) for i in range(5))
    page.set_input_files(PICK, file_of(text))
    shows(page, "requests", "5")
    assert page.inner_text('[data-metric="hit_tokens"] .value') == "0"
    assert page.inner_text('[data-snippet="command"] pre') == "python -m k3core replay trace.jsonl --tp 8"
    page.locator('text[data-click="policy"]', has_text="marconi").first.click()
    shows(page, "hit_tokens", "4,608")  # the third to the fifth, one grain of 1,536 each
    page.set_input_files(PICK, file_of(text + '\n{"timestamp": 9, "input_len'))
    page.wait_for_selector("#notice.problem")
    assert "line 6" in page.inner_text("#notice") and "cannot be read as JSON" in page.inner_text("#notice")
    assert page.inner_text('[data-metric="hit_tokens"] .value') == "4,608"
    page.check('input[name="bad_lines"][value="skip"]', force=True)
    shows(page, "lines_skipped", "1")
    assert page.inner_text('[data-table="lines"] tbody th') == "6" and page.is_hidden("#notice")


def test_a_long_replay_can_be_stopped(workbench):
    page = workbench.page
    page.set_input_files(PICK, file_of("\n".join(line(i, 60_000, i + 1) for i in range(3000))))
    page.get_by_role("button", name="Stop").click(timeout=30_000)
    page.wait_for_selector("html[data-python=idle]", timeout=60_000)
    assert page.inner_text('[data-metric="requests"] .value') == "64"


def test_the_page_computes_what_cpython_computes(workbench):
    for preset in (None, *experiment("traces").presets):
        params = preset.params if preset else {}
        found = parity.differences(parity.native("traces", params), workbench.compute("traces", params, 0))
        assert not found, f"{params}: {found[:5]}"
