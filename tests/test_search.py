"""The search index: everything that can be found is there, and every address in it leads somewhere."""

import gzip
import json
import re

import pytest

from k3core.lab.registry import everything, experiment
from k3core.lab.text import LANGUAGES
from sitegen import claims, content, glossary, render, search

EXPERIMENTS = [experiment(slug) for slug in everything()]
KINDS = list(search.KINDS)


@pytest.fixture(scope="module", params=LANGUAGES)
def found(request):
    """(language, the entries of its index as dicts)."""
    index = search.index(EXPERIMENTS, request.param, render.page_path)
    names = ("kind", "title", "text", "also", "address", "place")
    entries = [dict(zip(names, entry, strict=True)) for entry in index["entries"]]
    assert len(index["kinds"]) == len(KINDS) and all(index["kinds"])
    for entry in entries:
        entry["kind"] = KINDS[entry["kind"]]
        entry["place"] = index["places"][entry["place"]] if entry["place"] >= 0 else None
    return request.param, entries


def of_kind(entries: list, kind: str) -> list:
    return [entry for entry in entries if entry["kind"] == kind]


def test_every_tab_control_and_situation_is_there_once(found):
    lang, entries = found
    assert len({entry["address"] for entry in entries}) == len(entries)
    assert len(of_kind(entries, "tab")) == len(EXPERIMENTS)
    assert len(of_kind(entries, "param")) == sum(len(chosen.params) for chosen in EXPERIMENTS)
    assert len(of_kind(entries, "preset")) == sum(len(chosen.presets) for chosen in EXPERIMENTS)
    tab = next(entry for entry in entries if entry["address"] == "tabs/byte-cost.html")
    assert tab["title"] == experiment("byte-cost").title.render(lang) and "byte-cost" in tab["also"]
    drafts = next(entry for entry in entries if entry["address"] == "tabs/byte-cost.html#param.drafts")
    assert drafts["place"] == experiment("byte-cost").name.render(lang) and drafts["also"] == "drafts"


def test_every_term_and_claim_is_there(found):
    lang, entries = found
    assert [entry["address"] for entry in of_kind(entries, "term")] == \
        [f"glossary.html#{term['anchor']}" for term in glossary.entries(lang)]
    assert {entry["address"] for entry in of_kind(entries, "claim")} == {f"claims.html#{c.id}" for c in claims.CLAIMS}


def test_every_field_report_is_there_and_leads_to_its_line(found):
    lang, entries = found
    for chosen in EXPERIMENTS:
        if chosen.family == "home":
            continue
        anchors = re.findall(r'<li id="(report-\d+)"', content.prose(lang, chosen.slug))
        path = render.page_path(chosen)
        assert len(anchors) >= 3
        assert [f"{path}#{anchor}" for anchor in anchors] == [entry["address"] for entry in of_kind(entries, "report")
                                                             if entry["address"].startswith(path)]


def test_nothing_is_empty_and_nothing_carries_marks(found):
    _, entries = found
    for entry in entries:
        assert entry["title"] or entry["kind"] == "report", entry
        assert entry["text"] or entry["kind"] == "param", entry
        assert not re.search(r"[*`<>]", entry["title"]), entry


def test_reports_lie_under_the_heading_that_says_so():
    """They are found by their place, the last heading; were another one added below, this would notice."""
    for chosen in EXPERIMENTS:
        for lang, heading in (("en", "Field reports"), ("zh", "现场报告")):
            if chosen.family != "home":
                assert re.findall("<h2>(.*)</h2>", content.prose(lang, chosen.slug))[-1] == heading


def test_a_report_is_its_source_and_its_words():
    anchor, title, text = content.reports("en", "verify-and-replay")[0]
    assert (anchor, title) == ("report-1", "LMCache #5249")
    assert text.startswith("LMCache #5249: on a full hit") and "\n" not in text and "*" not in text


# What people of the field type -> one of what they should find: ids of terms, and "slug param" of controls.
TYPED = {
    "en": {"kv cache": "#kv-cache", "kv-cache": "#kv-cache", "mla": "#mla", "latent": "#latent-row", "gdn": "#gdn",
           "mamba": "#mamba", "block size": "#block", "page size": "#cache-page", "ttft": "#ttft", "tpot": "#tpot",
           "latency": "#latency", "throughput": "#throughput", "speculative": "#speculative", "eagle": "#draft-model",
           "draft": "#draft", "cuda graph": "#cuda-graph", "fp8": "#fp8-ds-mla", "bf16": "#param.state_dtype",
           "tensor parallel": "#tensor-parallel", "sglang": "#report-", "vllm": "#report-"},
    "zh": {"前缀缓存": "#prefix-cache", "显存": "#kv-cache", "块大小": "#block", "吞吐": "#throughput",
           "草稿": "#draft", "状态": "#state", "kv cache": "#kv-cache", "延迟": "#latency"},
}


def test_words_of_the_field_find_what_they_mean(found):
    lang, entries = found
    for typed, address in TYPED[lang].items():
        hits = [entry["address"] for entry in entries
                if all(word in f"{entry['title']}\n{entry['also']}\n{entry['text']}\n{entry['place']}".lower()
                       for word in typed.split())]
        assert any(address in hit if address.endswith("-") else hit.endswith(address) for hit in hits), (typed, hits)


def test_the_index_is_small_on_the_wire(found):
    lang, _ = found
    text = json.dumps(search.index(EXPERIMENTS, lang, render.page_path), ensure_ascii=False, separators=(",", ":"))
    assert len(gzip.compress(text.encode(), mtime=0)) < 60_000
