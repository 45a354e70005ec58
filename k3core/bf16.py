"""bfloat16 as NumPy can hold it: the upper half of a float32's bits, in uint16."""

import numpy as np


def to_bf16(x):
    """Round float32 to bfloat16, nearest even: any shape -> uint16 of that shape. Raises ValueError on NaN or inf."""
    x = np.asarray(x, np.float32)
    if not np.isfinite(x).all():
        raise ValueError("only finite numbers can be rounded to bfloat16")
    bits = x.view(np.uint32)
    half = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    return ((bits + half) >> np.uint32(16)).astype(np.uint16)


def from_bf16(bits):
    """The float32 values of bfloat16 bits: uint16 of any shape -> float32, exactly."""
    return (np.asarray(bits, np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
