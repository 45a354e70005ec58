"""Every experiment keeps the contract: what the page, the command line and the parity tests rely on."""

import dataclasses
import json
import re
import xml.etree.ElementTree as ElementTree
from functools import cache
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, reject, settings
from lab_values import settings_of

from k3core.lab.contract import (
    BADGES,
    FAMILIES,
    VALUE_KINDS,
    Check,
    Column,
    Metric,
    Progress,
    Result,
    Table,
    dumps,
)
from k3core.lab.drawing import MEANINGS
from k3core.lab.params import RESERVED, ParamError
from k3core.lab.registry import everything, experiment, experiments, slugs
from k3core.lab.text import LANGUAGES, Text

STATIC = Path(__file__).parents[1] / "sitegen" / "static"
SCENE_SCRIPT = (STATIC / "js" / "7-scene.js").read_text(encoding="utf-8")
STYLE = "".join(path.read_text(encoding="utf-8") for path in sorted((STATIC / "css").glob("*.css")))
WIDTHS = {False: 720, True: 340}
SVG = "{http://www.w3.org/2000/svg}"
SETTERS = ("data-drag-x", "data-drag-y", "data-drag-turn", "data-click")

EVERY = [experiment(slug) for slug in everything()]
every_experiment = pytest.mark.parametrize("chosen", EVERY, ids=lambda chosen: chosen.slug)


def allow_list(name: str) -> set:
    """The words of one of the page's sets, read from its script."""
    return set(re.findall(r'"([^"]+)"', re.search(rf"const {name} = new Set\(\[(.*?)\]\)", SCENE_SCRIPT, re.S)[1]))


@cache
def situations(slug: str) -> list:
    """(name, result, checks that may fail) of the defaults and of every preset."""
    chosen = experiment(slug)
    return [("defaults", chosen.run(), ()),
            *((preset.name, chosen.run(preset.params, preset.seed), preset.breaks) for preset in chosen.presets)]


def run_or_refuse(chosen, params: dict) -> Result:
    """A result; settings that contradict each other are refused and tried no further."""
    try:
        return chosen.run(params)
    except ParamError:
        reject()


def numbers_in(data):
    """Every number of nested JSON data."""
    if isinstance(data, dict):
        data = list(data.values())
    if isinstance(data, list):
        for item in data:
            yield from numbers_in(item)
    elif isinstance(data, (int, float)) and not isinstance(data, bool):
        yield data


# --- what an experiment declares --------------------------------------------------------------------------------


@every_experiment
def test_it_is_described_in_both_languages(chosen):
    for lang in LANGUAGES:
        data = json.loads(dumps(chosen.to_json(lang)))
        assert all(data[key] for key in ("slug", "name", "title", "question", "params"))
        assert all(param["label"] for param in data["params"])
        assert all(preset["title"] and preset["expect"] for preset in data["presets"])
        assert data["prediction"]["question"] and len(set(data["prediction"]["options"])) >= 2


@every_experiment
def test_its_names_can_stand_in_an_address_and_in_code(chosen):
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", chosen.slug) and chosen.family in FAMILIES
    names = [param.name for param in chosen.params]
    assert len(set(names)) == len(names) and not set(names) & set(RESERVED)
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", name) for name in (*names, *chosen.draw))
    presets = [preset.name for preset in chosen.presets]
    assert len(set(presets)) == len(presets) and all(re.fullmatch(r"[a-z0-9-]+", name) for name in presets)


@every_experiment
def test_its_numbers_have_bounds_and_its_defaults_are_valid(chosen):
    for param in chosen.params:
        if param.kind in ("int", "float", "list"):
            assert param.minimum is not None and param.minimum < param.maximum
        assert param.parse(param.default) == param.default
    for preset in chosen.presets:
        result = next(result for name, result, _ in situations(chosen.slug) if name == preset.name)
        assert {name: result.params[name] for name in preset.params} == preset.params


@every_experiment
def test_a_control_hangs_only_on_a_choice_that_there_is(chosen):
    values = {param.name: {value for value, _ in param.choices} for param in chosen.params}
    for param in chosen.params:
        assert not param.when or (param.when[1] and set(param.when[1]) <= values[param.when[0]])


def test_tabs_are_numbered_once_and_families_come_in_order():
    tabs = [chosen.tab for chosen in experiments()]
    assert len(set(tabs)) == len(tabs) and all(1 <= tab <= 14 for tab in tabs)
    assert [chosen.slug for chosen in experiments()] == slugs()


# --- what it returns --------------------------------------------------------------------------------------------


@every_experiment
def test_results_are_complete_json_in_both_languages(chosen):
    for _, result, _ in situations(chosen.slug):
        for lang in LANGUAGES:
            data = json.loads(dumps(result.to_json(lang)))
            assert data["metrics"] and data["checks"]
            keys = [item["key"] for item in (*data["metrics"], *data["checks"])]
            assert len(set(keys)) == len(keys) and all(key.isidentifier() for key in keys)
            for metric in data["metrics"]:
                assert metric["label"] and metric["text"]
                assert metric["badge"] in BADGES and metric["kind"] in VALUE_KINDS
            assert all(check["label"] and check["text"] for check in data["checks"])
            assert 0 <= data["prediction"]["answer"] < len(chosen.prediction.options) and data["prediction"]["text"]
            assert all(abs(value) <= 2**53 for value in numbers_in(data) if isinstance(value, int))


@every_experiment
def test_exact_values_are_no_floats(chosen):
    """An exact value is the same on every platform, which a computed float is not."""
    for _, result, _ in situations(chosen.slug):
        values = [metric.value for metric in result.metrics if metric.kind == "exact"]
        for table in result.tables.values():
            for row in table.rows:
                values += [cell for column, cell in zip(table.columns, row, strict=True) if column.kind == "exact"]
        assert not [value for value in values if isinstance(value, (float, np.floating))]
        assert all(metric.scale > 0 for metric in result.metrics if metric.kind == "error")


@every_experiment
def test_figures_name_columns_of_their_tables(chosen):
    for _, result, _ in situations(chosen.slug):
        for figure in result.figures:
            columns = {column.key for column in result.tables[figure.table].columns}
            text = dumps(figure.to_json("en"))
            own = {key for row in re.findall(r'"values":\[(\{.*?\})', text) for key in json.loads(row)}
            wanted = set(re.findall(r'"field":"(\w+)"', text))
            assert wanted and wanted <= columns | own


@every_experiment
def test_a_scene_has_a_caption_and_a_drawing_per_frame(chosen):
    for _, result, _ in situations(chosen.slug):
        assert {scene.name for scene in result.scenes} <= set(chosen.draw)
        for scene in result.scenes:
            assert len(scene.captions) == scene.frames > 0 <= scene.poster < scene.frames
            json.dumps(scene.events)
            for lang in LANGUAGES:
                assert all(scene.to_json(lang)["captions"])
            for frame in (-1, scene.frames, 0.5, "0", None):
                with pytest.raises(ValueError, match="has frames 0 to"):
                    chosen.picture(result, scene.name, frame, "en")
        with pytest.raises(ValueError, match="has no scene"):
            chosen.picture(result, "no such scene", 0, "en")


@every_experiment
def test_runs_report_progress_and_end_with_the_result(chosen):
    *steps, last = chosen.steps()
    assert isinstance(last, Result) and (last.slug, last.seed) == (chosen.slug, 0)
    assert all(isinstance(step, Progress) and 0 <= step.done <= step.total for step in steps)


def test_a_wrong_parameter_is_refused_before_the_first_step():
    with pytest.raises(ParamError):
        experiment("byte-cost").steps({"dk": "x"})
    with pytest.raises(ValueError, match="there is no tab 'nope'; there are"):
        experiment("nope")
    with pytest.raises(ParamError, match="there is no preset 'nope'"):
        experiment("byte-cost").preset("nope")


# --- checks -----------------------------------------------------------------------------------------------------


@every_experiment
def test_exactly_the_announced_checks_fail(chosen):
    for name, result, breaks in situations(chosen.slug):
        assert {check.key for check in result.checks if not check.passed} == set(breaks), name


@every_experiment
def test_the_mechanism_can_be_broken(chosen):
    breakers = {param.name for param in chosen.params if param.breaker}
    assert breakers
    breaking = [preset for preset in chosen.presets if preset.breaks]
    assert any(breakers & set(preset.params) for preset in breaking)


# --- digest -----------------------------------------------------------------------------------------------------


@every_experiment
def test_the_digest_depends_on_values_only(chosen):
    result = chosen.run()
    assert {result.to_json(lang)["digest"] for lang in LANGUAGES} == {result.digest()} == {chosen.run().digest()}
    renamed = dataclasses.replace(
        result, metrics=[dataclasses.replace(metric, label=Text("seed"), text="other") for metric in result.metrics],
        checks=[dataclasses.replace(check, label=Text("seed"), measured=None) for check in result.checks],
        scenes=[], figures=[], answer_text=None)
    assert renamed.digest() == result.digest()
    first = dataclasses.replace(result.checks[0], passed=not result.checks[0].passed)
    assert dataclasses.replace(result, checks=[first, *result.checks[1:]]).digest() != result.digest()


def test_the_digest_covers_exact_values_and_nothing_else():
    label = Text("seed")

    def digest(exact=1, real=0.1, cell=2, words=label):
        columns = (Column("a", label), Column("b", label, "float"), Column("c", label))
        metrics = [Metric("m", label, exact), Metric("r", label, real, kind="float")]
        return Result(metrics, [], {"t": Table(columns, [(cell, real, words)])}).digest()

    assert digest(real=0.2) == digest(words=Text("frame")) == digest()
    assert len({digest(), digest(exact=2), digest(cell=3)}) == 3


# --- plain data -------------------------------------------------------------------------------------------------


def test_integers_beyond_two_to_the_53_become_strings():
    big = 2**53 + 1
    result = Result([Metric("m", Text("seed"), np.int64(big), "B"), Metric("n", Text("seed"), 2**53)],
                    [Check("c", Text("seed"), np.bool_(True), big, -big)],
                    {"t": Table((Column("a", Text("seed")),), [(big,), ([big, 1],)])}, params={"p": big, "q": [big, 1]})
    data = json.loads(dumps(result.to_json("en")))
    assert [metric["value"] for metric in data["metrics"]] == [str(big), 2**53]
    assert data["metrics"][0]["text"] == "8 PiB"
    assert (data["checks"][0]["measured"], data["checks"][0]["bound"]) == (str(big), str(-big))
    assert data["tables"]["t"]["rows"] == [[str(big)], [[str(big), 1]]]
    assert data["params"] == {"p": str(big), "q": [str(big), 1]}


def test_numpy_values_of_a_table_read_like_python_ones():
    columns = (Column("a", Text("seed"), unit="B"), Column("b", Text("seed")))
    rows = [(np.int64(2**60), np.bool_(True)), (np.int32(1), np.bool_(False))]
    own = [tuple(cell.item() for cell in row) for row in rows]
    assert Table(columns, rows, Text("seed")).to_json("en") == Table(columns, own, Text("seed")).to_json("en")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.float64("-inf")])
def test_what_is_not_finite_is_no_result(value):
    with pytest.raises(ValueError, match="cannot be part of a result"):
        Metric("m", Text("seed"), value).to_json("en")


# --- drawings ---------------------------------------------------------------------------------------------------


@cache
def drawn(slug: str) -> SimpleNamespace:
    """What drawings consist of, in both widths: every frame of the defaults, a few frames of each preset."""
    chosen = experiment(slug)
    seen = SimpleNamespace(pictures=0, elements=set(), attributes=set(), classes=set(), swatches=set(), sets=set())
    for (name, result, _), narrow in product(situations(slug), WIDTHS):
        for scene in result.scenes:
            for frame in range(scene.frames) if name == "defaults" else {0, scene.poster, scene.frames - 1}:
                picture = chosen.picture(result, scene.name, frame, "zh", narrow)
                root = ElementTree.fromstring(picture.svg)
                assert root.tag == SVG + "svg" and root.get("role") == "img" and root.get("aria-label")
                assert all(words.render("zh") for _, words in picture.legend)
                seen.pictures += 1
                seen.swatches |= {name for swatch, _ in picture.legend for name in swatch.split()}
                for node in root.iter():
                    seen.elements.add(node.tag.removeprefix(SVG))
                    seen.attributes |= set(node.attrib)
                    seen.classes |= set(node.get("class", "").split())
                    seen.sets |= {(node.get(name), node.get("data-value")) for name in SETTERS if node.get(name)}
    return seen


@every_experiment
def test_every_frame_uses_only_what_the_page_lets_in(chosen):
    seen = drawn(chosen.slug)
    assert seen.pictures or not chosen.draw
    assert seen.elements <= allow_list("SVG_ELEMENTS") and seen.attributes <= allow_list("SVG_ATTRIBUTES")


@every_experiment
def test_every_class_has_a_rule(chosen):
    def without_rule(names, root):
        return [name for name in names if not re.search(rf"{root}[^{{}}]*\.{name}(?![\w-])", STYLE)]

    assert without_rule(drawn(chosen.slug).classes, r"\.picture ") == []
    assert without_rule(drawn(chosen.slug).swatches, r"\.swatch") == []


@every_experiment
def test_the_page_can_click_and_drag_only_parameters(chosen):
    params = {param.name: param for param in chosen.params}
    for name, value in drawn(chosen.slug).sets:
        assert name in params
        if value is not None:
            params[name].parse(value)


def test_every_meaning_has_a_colour_a_shape_rule_and_a_swatch():
    for meaning in MEANINGS:
        assert STYLE.count(f"--{meaning}:") >= 1, meaning
        assert re.search(rf"\.picture [^{{}}]*\.{meaning}(?![\w-])", STYLE) and f".swatch.{meaning}" in STYLE, meaning


@every_experiment
def test_anywhere_in_its_range_checks_hold_and_drawings_stay_inside_their_width(chosen):
    """Unless it is broken on purpose. What reaches beyond its box makes a narrow page scroll sideways."""
    whole = {param.name: param.default for param in chosen.params if param.breaker}

    @given(settings_of(chosen))
    @settings(max_examples=8, deadline=None, derandomize=True)
    def check(params):
        result = run_or_refuse(chosen, params | whole)
        assert not [check.key for check in result.checks if not check.passed]
        for scene in result.scenes:
            for narrow, width in WIDTHS.items():
                picture = chosen.picture(result, scene.name, scene.frames - 1, "en", narrow)
                assert_inside(ElementTree.fromstring(picture.svg), width)

    check()


def assert_inside(root, width: float):
    left, _, right, _ = map(float, root.get("viewBox").split())
    assert (left, right) == (0, width)
    for node in root.iter(SVG + "rect"):
        x, wide = float(node.get("x")), float(node.get("width"))
        assert x >= -0.01 and x + wide <= width + 0.5, ElementTree.tostring(node)
