"""A small model in one .npz: matrices as int8 with a scale per row, everything else in float32.

Members: `config`, the bytes of a config.json in uint8; for each parameter its published name, and for a matrix
[out, in] in int8 also `<name>.scale`, float32 [out]: the weight is int8 * scale.
"""

import io
import json

import numpy as np


def pack_weights(weights, config):
    """Bytes of an .npz: weights {published name: float array}, config the mapping in config.json."""
    arrays = {"config": np.frombuffer(json.dumps(config, sort_keys=True).encode(), np.uint8)}
    for name, array in weights.items():
        array = np.asarray(array, np.float32)
        if array.ndim == 2:
            scale = np.maximum(np.abs(array).max(axis=1), np.finfo(np.float32).tiny) / np.float32(127)
            arrays[f"{name}.scale"] = scale
            array = np.rint(array / scale[:, None]).astype(np.int8)
        arrays[name] = array
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # not compressed: what sends it compresses it
    return buffer.getvalue()


def unpack_weights(data):
    """(weights {published name: float32 array}, mapping in config.json) from the bytes that `pack_weights` made.

    Raises ValueError where the bytes are something else.
    """
    from zipfile import BadZipFile  # here, because it takes the browser long and np.load imports it anyway

    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        config = json.loads(arrays.pop("config").tobytes())
    except (BadZipFile, KeyError, ValueError, OSError, TypeError, AttributeError, EOFError) as error:
        raise ValueError(f"data must be an .npz with a member 'config', but: {error}") from None
    scales = {name: arrays.pop(name) for name in list(arrays) if name.endswith(".scale")}
    weights = {}
    for name, array in arrays.items():
        if array.dtype == np.int8:
            scale = scales.get(f"{name}.scale")
            if array.ndim != 2 or scale is None or scale.shape != array.shape[:1]:
                raise ValueError(f"data holds {name} in int8 without its '{name}.scale', a number for each row")
            array = array * scale[:, None]
        weights[name] = array
    return weights, config
