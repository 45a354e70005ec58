"""The sizing workbench as a reader uses it: files dropped and pasted, a wrong one, a kept result, a link."""

import json

import numpy as np
import parity
import pytest
from test_access import in_both_schemes
from visit import shows

from k3core.lab.registry import experiment

MODEL = {"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
         "max_position_embeddings": 131072}
PAGE = "sizing.html"
PICK = '[data-input="config"] input[type="file"]'


def value(page, key: str) -> str:
    return page.inner_text(f'[data-metric="{key}"] .value')


def file_of(config: dict, name: str = "config.json") -> dict:
    return {"name": name, "mimeType": "application/json", "buffer": json.dumps(config).encode()}


def test_a_file_is_sized_and_a_wrong_one_loses_nothing(workbench):
    page = workbench.page
    page.set_input_files(PICK, file_of(MODEL))
    shows(page, "bytes_per_token", "16,384 B")
    assert "size config.json --tp 8" in page.inner_text('[data-snippet="command"] pre')
    page.wait_for_selector("#notice:not([hidden])")  # K3's serving settings are not this model's
    assert "KV dtype: bf16" in page.inner_text("#notice") and "131072" in page.inner_text("#notice")
    assert workbench.state | {"file.config": ""} == {"file.config": "", "kv_dtype": "bf16", "align": "0",
                                                     "max_model_len": "131072"}
    assert page.is_disabled('select[name="model"]')
    page.fill('input.exact[name="max_model_len"]', "65536")  # what the reader sets, the next file leaves alone
    page.set_input_files(PICK, file_of(MODEL | {"max_position_embeddings": 4096}))
    workbench.settle()
    assert workbench.state["max_model_len"] == "65536"
    page.set_input_files(PICK, file_of(MODEL | {"kv_lora_rank": 512}, "mine.json"))
    page.wait_for_selector("#notice.problem")
    assert "mine.json: the field qk_rope_head_dim is missing" in page.inner_text("#notice")
    assert value(page,
                 "bytes_per_token") == "16,384 B" and "kv_lora_rank" in page.input_value(".drop textarea")
    page.click("#notice button")
    shows(page, "bytes_per_token", "13,824 B")
    page.wait_for_function("() => !location.hash.includes('file.config')")
    assert page.is_hidden("#notice") and workbench.state == {"max_model_len": "65536"}


def test_a_pasted_text_is_the_same_as_a_file(workbench):
    page = workbench.page
    page.click(".drop summary")
    page.fill(".drop textarea", json.dumps(MODEL))
    shows(page, "bytes_per_token", "16,384 B")
    page.fill(".drop textarea", "")
    shows(page, "bytes_per_token", "13,824 B")


def test_a_file_can_be_dropped_on_its_place(workbench):
    page = workbench.page
    transfer = page.evaluate_handle("""(text) => {
        const transfer = new DataTransfer();
        transfer.items.add(new File([text], "config.json"));
        return transfer;
    }""", json.dumps(MODEL))
    page.dispatch_event('[data-input="config"]', "drop", {"dataTransfer": transfer})
    shows(page, "bytes_per_token", "16,384 B")
    # What cannot be read, such as a folder, is named; of two files the later one counts, however long the first takes.
    page.evaluate("""() => K3.lab.files.take(K3.page.experiment.inputs[0],
        { name: "folder", size: 1, arrayBuffer: () => Promise.reject(new Error()) })""")
    assert "folder cannot be read" in page.inner_text("#notice.problem")
    page.evaluate("""async (text) => {
        const { files } = K3.lab, [input] = K3.page.experiment.inputs;
        let release;
        const bytes = new Promise((resolve) => { release = () => resolve(new ArrayBuffer(1)); });
        const first = files.take(input, { name: "first", size: 1, arrayBuffer: () => bytes });
        await files.take(input, new File([text], "second"));
        release();
        await first;
    }""", json.dumps(MODEL | {"num_hidden_layers": 16}))
    shows(page, "bytes_per_token", "8,192 B")
    assert page.inner_text(".held") == "second" and page.is_hidden("#notice")


def test_a_kept_result_stands_beside_the_new_one_and_in_the_link(workbench, visit):
    page = workbench.page
    page.click("#compare button")
    page.check('input[name="tp"][value="16"]', force=True)
    shows(page, "block_size", "768")
    kept = '[data-metric="block_size"] .kept'
    assert page.inner_text(kept) == "kept: 1,536"
    assert "kept 8, now 16" in page.inner_text("#compare .differences")
    page.wait_for_function("() => location.hash.includes('pin=')")
    other = visit(page.url)
    other.wait()
    other.page.wait_for_selector(kept)
    assert other.page.inner_text(kept) == "kept: 1,536" and value(other.page, "block_size") == "768"
    page.click("#compare button")
    assert page.is_hidden(kept)


def test_the_page_computes_what_cpython_computes(workbench):
    chosen = experiment("sizing")
    rng = np.random.default_rng(2607)
    points = [({}, 0), *((preset.params, 0) for preset in chosen.presets),
              *((parity.sample(chosen, rng), 0) for _ in range(12))]
    for params, seed in points:
        found = parity.differences(parity.native("sizing", params, seed),
                                   workbench.compute("sizing", params, seed))
        assert not found, f"{params}: {found[:5]}"


@pytest.mark.parametrize("lang", ["", "zh/"])
def test_no_accessibility_violation_beside_a_wrong_file_and_a_kept_result(visit, http_root, lang):
    opened = visit(f"{http_root}/{lang}sizing.html#guess=0", bypass_csp=True)
    page = opened.wait()
    page.click("#compare button")
    page.click(".drop summary")
    page.fill(".drop textarea", json.dumps({"num_hidden_layers": 2}))
    page.wait_for_selector("#notice.problem")
    for summary in page.locator(".how details:not([open]) > summary").all()[:3]:
        summary.click()
    assert in_both_schemes(page) == {"light": [], "dark": []}
