"""Small operations shared by the kernels and the decoder: projection, sigmoid, SiLU, RMSNorm, softmax."""

import numpy as np


def project(x, w):
    """Multiply rows by a weight matrix, so that a row's bits do not depend on the rows beside it.

    x [T, n], w [n, m], both float32 or float64 -> [T, m]. `@` calls BLAS, which picks its kernel by shape, so
    the low bits of a row change with how many rows came along. Each output here is one running sum in the
    order of n, whatever T is. Raises ValueError on shapes that do not fit.
    """
    if x.ndim != 2 or w.ndim != 2 or x.shape[1] != w.shape[0]:
        raise ValueError(f"project needs x [T, n] and w [n, m], not {x.shape} and {w.shape}")
    return np.einsum("tn,nm->tm", x, w, optimize=False)


def sigmoid(x):
    """Logistic function, elementwise, without overflow for large |x|."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def silu(x):
    """x * sigmoid(x), elementwise."""
    return x * sigmoid(x)


def rms_norm(x, weight, eps):
    """Root-mean-square norm over the last axis: x / sqrt(mean(x^2) + eps) * weight."""
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * weight


def softmax(x):
    """Softmax over the last axis. -inf gets weight 0; at least one entry per row must be finite."""
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)
