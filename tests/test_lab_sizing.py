"""The workbench `sizing`: published figures and log lines first, then wrong files, then the drawing."""

import json
import math
import re
import shlex
from xml.etree import ElementTree

import pytest
from commands import parse
from hypothesis import given, reject, settings
from lab_values import settings_of
from test_models import WRONG

from k3core import cli_size
from k3core.lab.params import ParamError
from k3core.lab.sizing import EXPERIMENT

GQA = {"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
       "max_position_embeddings": 131072}
HYBRID = {"layers": [{"kind": "gdn", "count": 36, "heads": 32, "key_heads": 16, "dk": 128, "dv": 128,
                      "conv_kernel": 4},
                     {"kind": "full", "count": 12, "kv_heads": 2, "head_dim": 256}]}


def run(preset=None, config=None, **params):
    chosen = EXPERIMENT.preset(preset).params if preset else {}
    files = {} if config is None else {"config": config if isinstance(config, str) else json.dumps(config)}
    return EXPERIMENT.run(chosen | params, files=files)


def values(result) -> dict:
    return {metric.key: metric.value for metric in result.metrics}


def snippet(result, key: str) -> str:
    return next(snippet.text for snippet in result.snippets if snippet.key == key)


# --- figures of others ---


@pytest.mark.parametrize(("preset", "changed", "figures", "line"), [
    ("kimi-linear", {}, {"block_size": 960, "num_blocks": 319, "blocks_per_request": 128,
                         "reported_tokens": 299_062},
     "Maximum concurrency for 120,000 tokens per request: 2.49x"),  # vllm #28228
    ("kimi-linear", {"mode": "align"}, {"blocks_per_request": 131, "reported_tokens": 292_213},
     "Maximum concurrency for 120,000 tokens per request: 2.44x"),
    ("qwen-528", {}, {"block_size": 528}, "Padding mamba page size by 0.76%"),  # vllm #40696
    ("qwen-27b", {}, {"block_size": 784, "blocks_per_request": 45, "requests": 33,
                      "reported_tokens": 1_082_800},
     "Maximum concurrency for 32,768 tokens per request: 33.04x"),  # vllm #40691
    ("old-log", {}, {"requests": 33, "reported_tokens": 290_864}, "Padding mamba page size by 0.13%"),
    ("k3-drafts", {}, {"block_size": 1536, "padding_percent": pytest.approx(0.0070, abs=5e-5)},
     "Setting attention block size to 1536 tokens"),  # vllm recipes #861
    (None, {}, {"block_size": 1536, "page_bytes": 884_736, "padding_layers": 3, "token_equivalent": 4_063},
     "Add 3 padding layers, may waste at most 4.35% KV cache memory"),
    (None, {"kv_dtype": "bf16", "tp": 1}, {"bytes_per_token": 27_648, "slot_bytes": 449_372_160,
                                           "token_equivalent": 16_253}, "GPU KV cache size"),
                                                                    # K3 day-0 figures
    ("pi05", {}, {"bytes_per_token": 18_432, "block_size": 16, "token_equivalent": None},
     "GPU KV cache size"),
])
def test_it_gives_the_figures_of_reports(preset, changed, figures, line):
    result = run(preset, **changed)
    assert {key: values(result)[key] for key in figures} == figures
    assert line in snippet(result, "log")


@pytest.mark.parametrize("params, value, words", [
    ({"model": "qwen3-next-80b", "tp": 1}, "bf16", "the model's own, as vLLM takes for GDN"),
    ({"model": "kimi-k3"}, "fp32", "vLLM's for KDA, whatever the model's"),
    ({"model": "qwen3-next-80b", "state_dtype": "fp32"}, "fp32", "as it is set"),
    ({"model": "llama-3.3-70b"}, "–", "no recurrent state"),
])
def test_it_says_which_dtype_the_state_has_and_why(params, value, words):
    metric = next(metric for metric in run(**params).metrics if metric.key == "state_dtype")
    assert (metric.value, metric.label.render("en")) == (value, f"state dtype: {words}")


def test_the_memory_is_explained_in_a_line():
    param = next(param for param in EXPERIMENT.params if param.name == "memory_gib")
    assert len(param.help.render("en").split()) <= 20
    assert all("Available KV cache memory" in param.help.render(lang) for lang in ("en", "zh"))  # as vLLM logs it


def test_the_groups_of_k3_are_24_and_three_times_23():
    rows = run().tables["groups"].rows
    assert [(str(row[1].template), row[2]) for row in rows] == [("MLA", 24), ("KDA", 23), ("KDA", 23),
                                                                ("KDA", 23)]
    assert [row[5] for row in rows] == pytest.approx([1.0, 0.8818, 0.8818, 0.8818], abs=5e-5)


def test_short_requests_are_limited_by_their_states():
    lengths = {row[1]: row for row in run().tables["lengths"].rows}
    assert lengths[1024][2:5] == (1, 6, 2350 // 7) and lengths[1024][6].template == "recurrent states"
    assert lengths[1048576][2:5] == (683, 6, 3) and lengths[1048576][6].template == "attention rows"


# --- the same answer elsewhere ---


def command_line(text: str) -> dict:
    return cli_size.run(parse(*shlex.split(text)[3:]))


@given(settings_of(EXPERIMENT))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_the_command_gives_the_same_answer(params):
    try:
        result = run(**params)
    except ParamError:
        reject()
    answer = command_line(snippet(result, "command"))
    shown = values(result)
    for key in ("block_size", "bytes_per_token", "slot_bytes", "token_equivalent", "page_bytes",
                "padding_layers",
                "blocks_per_request", "num_blocks"):
        assert shown[key] == answer[key], key
    assert shown["requests"] == answer["limit"]["requests_at_max_model_len"]
    assert snippet(result, "log") == "\n".join(answer["log_lines"])


def test_the_command_names_the_file_where_there_is_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(HYBRID))
    result = run(config=HYBRID, tp=2, memory_gib=8.0)
    assert "size config.json --tp 2" in snippet(result, "command")
    assert command_line(snippet(result, "command"))["block_size"] == values(result)["block_size"]


@pytest.mark.parametrize("params", [{}, {"model": "deepseek-v4-pro"}, {"mode": "all"}, {"model": "pi0.5"}])
def test_every_derivation_is_arithmetic_that_gives_its_result(params):
    names = {"ceil": math.ceil, "floor": math.floor, "lcm": math.lcm, "max": max, "min": min, "sum": sum}
    count = 0
    for metric in run(**params).metrics:
        for formula, numbers in zip(metric.how[::2], metric.how[1::2], strict=True):
            arithmetic, shown = re.fullmatch(r" {4}= (.+) = (\S+)", numbers).groups()
            assert eval(arithmetic, {"__builtins__": {}} | names) == pytest.approx(float(shown),
                                                                                   abs=1e-4), formula
            count += 1
    assert count > 20


# --- files and settings that do not fit ---


def test_a_file_suggests_what_an_engine_would_take():
    """K3 is served in fp8, with blocks of 128 and a million tokens; nothing says that another model is."""
    layers = {"num_hidden_layers": 2, "num_attention_heads": 8, "head_dim": 64}
    assert run().to_json("en")["suggested"] == {}
    assert run(config=layers).suggested == {"kv_dtype": "bf16", "align": 0}
    told = run(config=layers | {"max_position_embeddings": 4096})
    assert told.to_json("zh")["suggested"] == {"kv_dtype": "bf16", "align": 0, "max_model_len": 4096}
    line = snippet(run(config=layers, **told.suggested), "command")  # so the command needs to name none but the length
    assert "kv-dtype" not in line and "align" not in line and "--max-model-len 4096" in line


def test_a_file_takes_the_place_of_the_preset():
    assert values(run(config=GQA, kv_dtype="bf16", tp=1))["bytes_per_token"] == 2 * 32 * 8 * 128 * 2
    assert [row[2] for row in run(config=HYBRID, tp=1).tables["groups"].rows] == [12, 12, 12, 12]


@pytest.mark.parametrize(("config", "english", "chinese"), [
    ("", "line 1, column 1: there is nothing to read; this is not JSON", "第 1 行第 1 列：没有可读的内容；这不是 JSON"),
    ('{\n  "a": 1\n  "b": 2\n}', "line 3, column 3: a comma or a closing bracket is missing; this is not JSON",
     "第 3 行第 3 列：缺少逗号或右括号；这不是 JSON"),
    ("[" * 100_000, "the JSON is nested too deeply", "JSON 嵌套过深"),
    ('{"num_hidden_layers": ' + "9" * 5000 + "}", "it holds a number of thousands of digits",
     "其中有一个长达数千位的数"),
    ({"kv_lora_rank": 512, "num_hidden_layers": 2}, "the field qk_rope_head_dim is missing",
     "缺少字段 qk_rope_head_dim"),
    ({"num_hidden_layers": 2, "head_dim": 8},
     "there is neither the field num_key_value_heads nor num_attention_heads",
     "既没有字段 num_key_value_heads，也没有 num_attention_heads"),
    ({**GQA, "num_hidden_layers": "32"}, "field num_hidden_layers is '32'; it must be an integer from 1 to 10000",
     "字段 num_hidden_layers 的值是 '32'；应为 1 到 10000 之间的整数"),
])
def test_a_wrong_file_is_told_where_it_is_wrong(config, english, chinese):
    with pytest.raises(ParamError) as caught:
        run(config=config)
    assert caught.value.name == "config"
    assert (caught.value.render("en"), caught.value.render("zh")) == (english, chinese)


@pytest.mark.parametrize("config", [config for config, _ in WRONG])
def test_what_is_wrong_with_a_model_is_said_in_chinese_throughout(config):
    """Every message of the reader is known here: nothing of its English is left but names and values."""
    with pytest.raises(ParamError) as caught:
        run(config=config)
    said = caught.value.render("zh")
    assert "无法读作" not in said, said
    assert not re.search(r"\b(is|are|must|be|the|not|has|holds|known|which|of|and)\b", said), said


# Every kind of damage that Python's JSON reader tells apart.
DAMAGE = ["[1,,2]", "{1: 2}", '{"a" 1}', "[1 2]", "[1,]", '{"a": 1,}', "{} {}", '"a', '"a\nb"', '"\\q"', '"\\u12"',
          " ", "nul"]


@pytest.mark.parametrize("text", DAMAGE)
def test_damage_is_named_in_both_languages(text):
    with pytest.raises(ParamError) as caught:
        run(config=text)
    english, chinese = caught.value.render("en"), caught.value.render("zh")
    assert re.fullmatch(r"line \d, column \d: .+; this is not JSON", english) and "this cannot be read" not in english
    assert re.fullmatch(r"第 \d 行第 \d 列：[^a-z]+；这不是 JSON", chinese.replace("JSON 在此", "在此")), chinese


@pytest.mark.parametrize(("params", "name", "words"), [
    ({"model": "qwen3.5-27b", "tp": 32, "kv_dtype": "bf16"}, "tp",
     "TP is 32, which does not divide the 48 heads"),
    ({"model": "llama-3.3-70b", "kv_dtype": "fp8_ds_mla"}, "kv_dtype",
     "KV dtype is fp8_ds_mla, which Llama 3.3 70B has"),
    ({"model": "deepseek-v4-pro", "kv_dtype": "int8"}, "kv_dtype", "KV dtype is int8"),
])
def test_settings_that_contradict_the_model_name_the_parameter(params, name, words):
    with pytest.raises(ParamError) as caught:
        run(**params)
    assert caught.value.name == name and words in str(caught.value) and caught.value.render("zh")


def test_layers_that_cannot_share_a_page_are_refused_with_the_reason():
    mixed = {"layers": [{"kind": "kda", "heads": 4, "dk": 64, "dv": 64, "conv_kernel": 4},
                        {"kind": "full", "kv_heads": 1, "head_dim": 48},
                        {"kind": "mla", "kv_lora_rank": 100, "rope_dim": 13}]}
    with pytest.raises(ParamError, match="cannot be sized with these settings: .*cannot share one pool"):
        run(config=mixed, tp=1, kv_dtype="bf16", align=16)


# --- the drawing ---


def shapes(result, frame: int = -1, narrow: bool = False) -> list:
    """Rectangles as (class, mark of itself or of its group, x, width)."""
    scene = result.scenes[0]
    root = ElementTree.fromstring(EXPERIMENT.picture(result, "layout", frame % scene.frames, "en",
                                                     narrow).svg)
    found = []
    for parent in root.iter():
        for node in parent:
            if node.tag.endswith("}rect"):
                found.append((node.get("class"), node.get("data-id") or parent.get("data-id"),
                              float(node.get("x")),
                              float(node.get("width"))))
    return found


@pytest.mark.parametrize("narrow", [False, True])
def test_state_window_and_padding_are_drawn_to_one_scale(narrow):
    width = 340 if narrow else 720
    drawn = {mark: wide for _, mark, _, wide in reversed(shapes(run(), narrow=narrow)) if mark
             and mark.startswith("part:")}
    assert drawn["part:state"] == pytest.approx(width * 786_432 / 884_736, abs=0.01)
    assert drawn["part:conv"] == pytest.approx(width * 27_648 / 884_736, abs=0.01)
    assert drawn["part:padding"] == pytest.approx(width * 70_656 / 884_736, abs=0.02)
    assert drawn["part:rows"] == pytest.approx(width, abs=0.01)


def test_each_group_has_a_cell_per_layer_and_an_outline_per_empty_slot():
    cells = [(style, mark) for style, mark, _, _ in shapes(run()) if mark and mark.startswith("group:")]
    assert cells.count(("mla", "group:0")) == 24 and cells.count(("state", "group:3")) == 23
    assert cells.count(("ghost", "group:3")) == 1 and cells.count(("padding", "group:1")) == 23


def test_groups_that_look_alike_are_drawn_once_where_there_are_many():
    many = {"layers": [{"kind": "mamba2", "count": 30, "heads": 8, "key_heads": 1, "dk": 64, "dv": 64,
                        "conv_kernel": 4},
                       {"kind": "full", "count": 10, "kv_heads": 2, "head_dim": 64},
                       {"kind": "full", "kv_heads": 1, "head_dim": 64}]}
    result = run(config=many, tp=1, kv_dtype="bf16")
    assert len(result.tables["groups"].rows) == 41  # vllm #56445: groups of one layer
    assert {mark for _, mark, _, _ in shapes(result) if mark and mark.startswith("group:")} == {"group:0",
                                                                                                "group:11"}


def test_frames_build_the_picture_up():
    result = run()
    steps = result.scenes[0].events["steps"]
    assert steps == ["row", "measure", "align", "page", "groups", "request", "pool"]
    rows = [next(wide for _, mark, _, wide in shapes(result, frame) if mark == "part:rows")
            for frame in (0, 1, 2)]
    assert rows[0] < 1 and rows[1:] == pytest.approx([720 * 814_080 / 884_736, 720], abs=0.01)
    assert run("pi05").scenes[0].events["steps"] == ["align", "groups", "request", "pool"]


def test_the_grips_follow_what_they_set():
    def grip(result, name):
        root = ElementTree.fromstring(EXPERIMENT.picture(result, "layout", len(result.scenes[0].captions) - 1,
                                                         "en").svg)
        node = next(node for node in root.iter() if node.get("data-drag-x") == name)
        return float(node.get("cx")), float(node.get("data-per-x"))

    x, per = grip(run(), "drafts")
    assert grip(run(drafts=3), "drafts")[0] - x == pytest.approx(3 * per, abs=0.02)
    x, per = grip(run(max_model_len=153_600), "max_model_len")
    assert grip(run(max_model_len=153_600 + 1536 * 100),
                "max_model_len")[0] - x == pytest.approx(153_600 * per, rel=1e-3)
