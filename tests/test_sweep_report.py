"""The report of a sweep: a file by itself, charts of what was computed, links that open what a point was."""

import math
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from sweeps import HITS, Inline, lines, sweep, write_trace

from k3core.lab.registry import experiment
from k3core.sweep import charts, pools, report
from k3core.sweep.links import address
from k3core.sweep.spec import sweep_from

SITE = "https://lab.example/k3"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pools, "Processes", Inline)
    write_trace(tmp_path / "trace.jsonl")
    return tmp_path


class Page(HTMLParser):
    """Elements, addresses and words of a page; every element that is opened must be closed."""

    VOID = {"meta", "line", "path", "rect", "br"}

    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.words, self.open = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.links += [value for name, value in attributes if name in ("href", "src", "xlink:href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def page_of(here, capsys, source, *arguments):
    (here / "some.toml").write_text(source)
    status, _, err = sweep(capsys, "some.toml", *arguments)
    assert (status, err) == (0, "")
    return Page((here / "some-results/report.html").read_text(encoding="utf-8"))


# --- the page ---


def test_it_is_one_file_without_script_or_address_of_another(here, capsys):
    page = page_of(here, capsys, HITS)
    assert page.links == [] and not {"script", "link", "img", "iframe", "style src"} & {tag for tag, _ in page.tags}
    policy = next(attributes for tag, attributes in page.tags if "http-equiv" in attributes)["content"]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    words = " ".join(page.words)
    assert "replay: 4 × policy, 4 × capacity_gib" in words and "16 points" in words
    assert 'policy = ["dense", "align", "marconi", "retain:0"]' in words  # the sweep itself
    assert "prefers-color-scheme: dark" in words


def test_charts_take_their_colours_from_the_style(here, capsys):
    page = page_of(here, capsys, HITS + '[report]\ny = ["hit_rate", "evicted_blocks"]\n')
    assert sum(tag == "figure" for tag, _ in page.tags) == 2
    strokes = {attributes.get("stroke") for _, attributes in page.tags} - {None}
    assert {"var(--s0)", "var(--s1)", "var(--s2)", "var(--s3)"} <= strokes
    assert all(stroke.startswith("var(--") or stroke == "transparent" for stroke in strokes)


def test_hostile_text_stays_text(here, capsys):
    evil = "<img src=x onerror=alert(1)>.jsonl"
    (here / "trace.jsonl").rename(here / evil)
    source = HITS.replace("trace.jsonl", evil).replace('"dense",', '"dense", "align+1",')
    page = page_of(here, capsys, source, "--site", SITE)
    assert "img" not in {tag for tag, _ in page.tags} and any(evil in words for words in page.words)


def test_failed_points_are_listed(here, capsys):
    page = page_of(here, capsys, HITS.replace('"dense",', '"dense", "align+1000",'))
    words = " ".join(page.words)
    assert "Points that failed" in words and "4 failed" in words
    assert "policy=align+1000, capacity_gib=64: policy align+1000 has chunks shorter than the grain" in words


def test_without_vl_convert_it_says_what_to_install(here, capsys, monkeypatch):
    monkeypatch.setattr(report, "find_spec", lambda name: None)
    page = page_of(here, capsys, HITS)
    assert "svg" not in {tag for tag, _ in page.tags} and "table" in {tag for tag, _ in page.tags}
    assert "pip install 'k3core[report]'" in page.words
    status, out, _ = sweep(capsys, "some.toml")
    assert "the report has no charts: pip install 'k3core[report]' brings what draws them" in out


def test_many_points_are_told_not_drawn(here, capsys, monkeypatch):
    monkeypatch.setattr(report, "DRAWN", 10)
    monkeypatch.setattr(report, "LISTED", 5)
    page = page_of(here, capsys, HITS, "--site", SITE)
    words = " ".join(page.words)
    assert "16 points are too many to draw here" in words and "The first 5 of 16" in words
    assert sum(tag == "tr" for tag, _ in page.tags) == 6


def test_a_wrong_metric_in_the_spec_costs_a_line_and_no_point(here, capsys):
    (here / "some.toml").write_text(HITS + '[report]\ny = "hitrate"\n')
    status, out, err = sweep(capsys, "some.toml")
    assert (status, out) == (2, "") and "report.y is 'hitrate'; it must be one of block_bytes, " in err
    (here / "some.toml").write_text(HITS + '[report]\ny = "hit_rate"\n')
    assert sweep(capsys, "some.toml")[1].startswith("16 points: 0 computed now, 16 before")


# --- what is drawn ---


def made(source, value, folder=None):
    """Sweep and rows, as if each point had the metrics that `value` gives."""
    found = sweep_from(source, folder)
    points = [found.point(index) for index in range(len(found))]
    return found, [{"params": point.params, "seed": point.seed, "metrics": value(point)} for point in points]


FLEET = 'command = "fleet"\nseeds = 3\n[grid]\npolicy = ["strict", "shared"]\nslots = [16, 32, 64, 128]\n'


def test_numbers_go_along_the_axis_words_become_lines_and_seeds_a_band():
    found, rows = made(FLEET, lambda point: {"rejected": point.params["slots"] + point.seed, "same": 1, "word": "x"})
    chosen = charts.plan(found, rows, ["rejected", "same", "word"])
    assert chosen == charts.Plan("slots", "policy", None, ["rejected"], ["seed"])
    panel, = charts.panels(chosen, rows, [None] * len(rows))
    assert panel.series["strict"] == [(str(slots), slots + 1.0, slots, slots + 2, None) for slots in (16, 32, 64, 128)]
    assert charts.bounds_of([panel], "rejected") == (0, 130)


def test_a_third_parameter_makes_panels_and_the_spec_can_choose():
    source = FLEET.replace("seeds = 3\n", "") + 'router = ["affinity", "round_robin"]\n'
    found, rows = made(source, lambda point: {"rejected": point.params["slots"]})
    assert charts.plan(found, rows, ["rejected"]) == charts.Plan("slots", "policy", "router", ["rejected"], [])
    found, rows = made(source + '[report]\nx = "policy"\ncolor = "slots"\n', lambda point: {"rejected": 1.5})
    chosen = charts.plan(found, rows, ["rejected"])
    assert chosen is None  # nothing differs
    found, rows = made(source + '[report]\nx = "policy"\ncolor = "slots"\ny = "rejected"\n',
                       lambda point: {"rejected": 1.5})
    assert charts.plan(found, rows, ["rejected"]) == charts.Plan("policy", "slots", "router", ["rejected"], [])


@pytest.mark.parametrize("values", [["1.2.3", "1.3"], ["1", "nan"], ["1", "inf"], ["", "2"], ["1e", "2"]])
def test_what_only_looks_like_numbers_is_words_on_the_axis(values):
    axis, value = charts._x_axis([{"x": text} for text in values], "prompt")
    assert axis["type"] == "ordinal" and axis["sort"] == values and value is str
    assert charts._x_axis([{"x": "-1.5"}, {"x": "2e3"}], "slots")[0]["type"] == "quantitative"


def test_means_do_not_hang_on_the_order_of_a_sum():
    found, rows = made(FLEET, lambda point: {"rejected": (1e16, 1.0, -1e16)[point.seed]})
    chosen = charts.plan(found, rows, ["rejected"])
    assert charts.panels(chosen, rows, [None] * 24)[0].series["strict"][0][1] == 1 / 3


def test_lines_are_told_apart_by_more_than_colour():
    names = [f"line {number}" for number in range(charts.SERIES)]
    styles = charts.styles_of([charts.Panel("m", None, dict.fromkeys(names, []))])
    assert len({(colour, tuple(dashes), mark) for colour, dashes, mark in styles.values()}) == charts.SERIES
    for what in zip(*list(styles.values())[:8], strict=True):
        assert len(set(map(str, what))) == 8  # colours, dashes, marks


def test_no_two_of_the_colours_are_nearly_the_same():
    light, dark = report.STYLE.split("@media")
    for scheme in (light, dark):
        found = [bytes.fromhex(code) for code in re.findall(r"--s\d: #(\w{6})", scheme)]
        assert len(found) == charts.COLOURS
        assert min(math.dist(a, b) for place, a in enumerate(found) for b in found[:place]) > 75


def test_a_line_has_its_mark_in_the_chart_and_beside_its_name(here, capsys):
    page = page_of(here, capsys, HITS + '[report]\ny = "hit_rate"\n')
    beside = [attributes["d"] for tag, attributes in page.tags if tag == "path" and attributes.get("d") in charts.MARKS]
    assert beside == list(charts.MARKS[:4])
    shapes = {attributes["d"] for tag, attributes in page.tags
              if tag == "path" and str(attributes.get("fill", "")).startswith("var(--s") and "d" in attributes}
    assert len(shapes - set(beside)) == 4  # drawn to size


def test_what_is_drawn_is_the_first_column_after_the_names(here, capsys):
    for metric in ("hit_rate", "evicted_blocks"):
        page_of(here, capsys, HITS + f'[report]\ny = "{metric}"\n')
        head = re.search("<thead>.*?</thead>", (here / "some-results/report.html").read_text(encoding="utf-8"))[0]
        assert re.findall(r"<th(?: [^>]*)?>([^<]*)<", head)[:3] == ["policy", "capacity_gib", metric]


def test_values_without_limit_have_a_place_on_the_axis(here, capsys):
    page = page_of(here, capsys, HITS.replace('{start = 1, stop = 64, count = 4, scale = "log"}', "[1, 8, inf]"))
    assert "inf" in [words.strip() for words in page.words]
    rows = lines(here / "some-results/results.jsonl")
    assert rows[2]["params"]["capacity_gib"] == math.inf or rows[2]["params"]["capacity_gib"] == "inf"


# --- links ---


def opened(link: str, files=None):
    """What the page behind a link computes."""
    parts = urlsplit(link)
    state = dict(parse_qsl(parts.fragment, keep_blank_values=True))
    seed = int(state.pop("seed", 0))
    given = {name[5:]: files[state.pop(name)] for name in list(state) if name.startswith("file.")}
    slug = parts.path.removesuffix(".html").split("/")[-1]
    assert parts.path.startswith("tabs/") == (experiment(slug).tab > 0)
    return experiment(slug).run(state, seed, given)


def values(result):
    return {metric.key: metric.value for metric in result.metrics}


def test_a_link_opens_the_trace_with_the_settings_of_its_point(here, capsys):
    page = page_of(here, capsys, HITS, "--site", SITE)
    rows = lines(here / "some-results/results.jsonl")
    in_table = [link for link in page.links][-16:]
    assert len(page.links) > 16 and all(link.startswith(SITE + "/traces.html#") for link in page.links)
    assert set(page.links) == set(in_table)  # points of the charts too
    for row, link in list(zip(rows, in_table, strict=True))[::5]:
        content = {row["files"]["trace"]: (here / "trace.jsonl").read_text()}
        there = values(opened(link.removeprefix(SITE + "/"), content))
        for name in ("hit_tokens", "peak_bytes", "evicted_checkpoints", "requests"):
            assert there[name] == row["metrics"][name]


@pytest.mark.parametrize(("source", "metrics"), [
    ('command = "size"\n[grid]\nmodel = ["kimi-k3", "qwen3.5-4b", "pi0.5"]\ntp = [1, 8]\nmemory_gib = 40.0\n',
     {"block_size": "block_size", "slot_bytes": "slot_bytes", "requests": "limit.requests_at_max_model_len"}),
    ('command = "size"\n[grid]\nmodel = "kimi-k3"\ndrafts = [0, 7]\nalign = 128\nkv_dtype = "fp8"\nnum_blocks = 900\n',
     {"block_size": "block_size", "num_blocks": "num_blocks"}),
    ('command = "run"\nseeds = [0, 5]\n[grid]\nslug = "prefix-hit"\n', None),
    ('command = "run"\n[grid]\nslug = "byte-cost"\npreset = ["no-gate", "k3-vllm"]\ndk = [64]\n', None),
    ('command = "fleet"\nseeds = [0, 2]\n[grid]\npreset = "claim"\nvip_percent = [20, 40]\nfail_at = 8\n'
     'recover_at = 13\n',
     {"vip_p99_shared_ms": "vip_p99_shared_ms", "vip_p99_isolated_ms": "vip_p99_isolated_ms"}),
])  # fmt: skip
def test_a_link_opens_what_the_point_was(source, metrics):
    from k3core.sweep.commands import COMMANDS

    found = sweep_from(source, Path())
    for index in range(len(found)):
        point = found.point(index)
        link = address(point)
        if point.params.get("model") == "pi0.5" and link is None:
            continue  # heads that 8 ranks do not divide
        computed, digest = COMMANDS[point.command].compute(point.texts, point.seed, point.files)
        there = opened(link)
        if metrics is None:
            assert (there.digest(), there.seed) == (digest, point.seed or 0)
        for name, own in (metrics or {}).items():
            assert values(there)[name] == pytest.approx(computed[own], rel=1e-12, abs=0)


@pytest.mark.parametrize("source", [
    'command = "size"\n[grid]\nmodel = "kimi-k3"\ntp = 7\n',  # does not divide the heads
    'command = "size"\n[grid]\nmodel = "kimi-k3"\ntp = 64\n',  # more than the page offers
    'command = "fleet"\n[grid]\nslots = 65\n', 'command = "fleet"\n[grid]\npolicy = "token_bucket"\ntoken_rate = 9\n',
    'command = "fleet"\n[grid]\nfail_at = 10.5\n',
    'command = "replay"\n[grid]\ntrace = "trace.jsonl"\npolicy = "align+10000"\n',
    'command = "replay"\n[grid]\ntrace = "trace.jsonl"\nkv_dtype = "fp8"\n',
    'command = "replay"\n[grid]\ntrace = "trace.jsonl"\ngrain = 51200\n',
    'command = "replay"\n[grid]\ntrace = "trace.jsonl"\nmodel = "config.json"\n',
])  # fmt: skip
def test_a_point_that_no_page_can_show_has_no_link(here, source):
    (here / "config.json").write_text('{"num_hidden_layers": 2, "num_attention_heads": 4, "head_dim": 8}')
    assert address(sweep_from(source, here).point(0)) is None


@pytest.mark.parametrize(("site", "start"), [("https://a.example", "https://a.example/tabs/"),
                                             ("../site/zh/", "../site/zh/tabs/"), ("file:///srv/k3", "file:///srv/k3/tabs/")])
def test_sites_anywhere(here, capsys, site, start):
    page = page_of(here, capsys, 'command = "run"\n[grid]\nslug = "byte-cost"\ndk = [32, 64, 128]\n', "--site", site)
    assert page.links and all(link.startswith(start + "byte-cost.html") for link in page.links)
    assert sum(bool(re.search(r"#dk=32$", link)) for link in page.links) >= 2  # in the chart and in the table
