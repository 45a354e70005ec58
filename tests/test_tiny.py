"""The packaged tiny model: what it reads from bytes is what the training framework computes; its text."""

import io
import math
from pathlib import Path

import numpy as np
import pytest

from k3core.decode import (
    HybridDecoder,
    decode,
    encode,
    pack_weights,
    parameter_shapes,
    tiny_model,
    unpack_weights,
)

DATA = Path(__file__).with_name("data")


def test_logits_equal_those_of_the_training_framework():
    with np.load(DATA / "tiny_logits.npz") as file:
        ids, expected = file["ids"], file["logits"]
    logits = tiny_model().logits(ids)
    assert np.abs(logits - expected).max() < 1e-4
    assert np.abs(expected).max() > 5  # a trained model's, so 1e-4 is small


def test_shape():
    config = tiny_model().config
    assert config.layers == ("kda", "kda", "kda", "mla")
    assert config.gate_lower_bound == -5 and config.conv_kernel == 4 and config.mla_output_gate
    assert sum(map(math.prod, parameter_shapes(config).values())) == 1_016_988
    assert config.vocab_size == 128 and tiny_model().dtype == np.float32 and tiny_model().exact


def test_weights_are_small_enough_to_travel():
    from importlib import resources

    assert len((resources.files("k3core.models") / "tiny.npz").read_bytes()) < 1.2e6


def test_packing_keeps_every_value_within_half_a_step_of_its_row():
    rng = np.random.default_rng(0)
    weights = {"a": rng.standard_normal((5, 7)), "b": rng.standard_normal(4), "c": np.zeros((2, 3))}
    read, config = unpack_weights(pack_weights(weights, {"vocab_size": 3}))
    assert config == {"vocab_size": 3} and read.keys() == weights.keys()
    step = np.abs(weights["a"]).max(axis=1, keepdims=True) / 127
    assert (np.abs(read["a"] - weights["a"]) <= step * 0.5001).all()
    assert np.array_equal(read["b"], weights["b"].astype(np.float32)) and not read["c"].any()


def test_packing_is_repeatable():
    weights = {"a": np.arange(6.0).reshape(2, 3)}
    assert pack_weights(weights, {}) == pack_weights(weights, {})


@pytest.mark.parametrize("data", [b"", b"nonsense", b"PK\x03\x04 cut off"])
def test_bytes_that_are_no_model(data):
    with pytest.raises(ValueError, match="data must be an .npz"):
        HybridDecoder.from_npz(data)


@pytest.mark.parametrize("more", [{}, {"a.scale": np.ones(3)}, {"a.scale": np.ones((2, 1))}, {"a": np.int8([1, 2])}])
def test_integers_without_their_scale_are_no_model(more):
    arrays = {"config": np.frombuffer(b"{}", np.uint8), "a": np.ones((2, 3), np.int8)} | more
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    with pytest.raises(ValueError, match="holds a in int8 without its 'a.scale'"):
        unpack_weights(buffer.getvalue())


def test_text_is_ascii():
    assert decode(encode("def f():\n\treturn 1")) == "def f():\n\treturn 1" and encode("") == []
    with pytest.raises(ValueError, match=r"character 4 is 'é' \(U\+00E9\)"):
        encode("café")
    assert encode("\x00\x7f") == [0, 127]
    with pytest.raises(ValueError, match=r"character 1 is '\\x80' \(U\+0080\)"):
        encode("\x80")
    with pytest.raises(ValueError, match="0 to 127, not 5 to 128"):
        decode([5, 128])
