"""Claims about what all this is good for: models, devices, and a name."""

import numpy as np

from k3core.kda import kda_update
from k3core.models import load
from k3core.sizing import size
from sitegen.claims.evidence import CONDITIONS, FAILS, HOLDS, OPEN, Claim, computed, metric, run

K3 = run("sizing")
V4 = run("sizing", model="deepseek-v4-pro", tp=1, kv_dtype="bf16")
ROBOT = run("sizing", model="pi0.5", tp=1, kv_dtype="bf16", max_model_len=968)
LARGER_ROBOT = run("sizing", model="pi0.7", tp=1, kv_dtype="bf16")
SESSION = run("unified-pool", context=8192)


def left_of_the_old_value(delta: bool) -> tuple:
    """Write a value, then another under the same key: the share of the first that a look-up still returns, by the rule
    of KDA or by one that adds to a key whatever comes."""
    key, old, new = np.array([[0.6, 0.8]]), np.array([[1.0, -2.0, 3.0]]), np.array([[4.0, 0.5, -1.0]])
    state, gate, beta = np.zeros((1, 2, 3)), np.zeros((1, 2)), np.ones(1)
    for value in (old, new):
        state = kda_update(key, value, gate, beta, state)[0] if delta else state + key[:, :, None] * value[:, None, :]
    found = np.einsum("hkv,hk->hv", state, key)
    return round(float(np.linalg.norm(found - new) / np.linalg.norm(old)), 9), "share", None


def robot_tokens(name: str):
    """Tokens that π0.5 computes for one action, as `size` counts them."""
    return lambda: (size(load("pi0.5"))["policy"][name], "", None)


CLAIMS = (
    Claim("like-the-large-model", "fitness", (), lambda n: OPEN),
    Claim("edge-devices", "fitness", (
        metric("state", SESSION, "state_bytes"), metric("rows", SESSION, "bytes_at_context"),
    ), lambda n: OPEN),
    Claim("suits-k3", "fitness", (
        metric("slot", K3, "slot_bytes"), metric("token", K3, "bytes_per_token"), metric("block", K3, "block_size"),
        metric("padding", K3, "padding_percent"),
    ), lambda n: HOLDS if n.slot > 0 and n.token > 0 and n.padding < 0.25 else FAILS),
    Claim("suits-deepseek-v4", "fitness", (
        metric("slot", V4, "slot_bytes"), metric("token", V4, "bytes_per_token"),
    ), lambda n: FAILS if not n.token else HOLDS if n.slot else CONDITIONS),
    Claim("suits-robot-policies", "fitness", (
        metric("slot", ROBOT, "slot_bytes"), metric("slot_larger", LARGER_ROBOT, "slot_bytes"),
        metric("token", ROBOT, "bytes_per_token"),
        computed("with_prefix", "k3core.sizing.size", robot_tokens("tokens_with_cache")),
        computed("without_prefix", "k3core.sizing.size", robot_tokens("tokens_without_cache")),
    ), lambda n: FAILS if n.with_prefix >= n.without_prefix else HOLDS if n.slot and n.slot_larger else CONDITIONS),
    Claim("kda-name", "fitness", (
        computed("delta", "k3core.kda.kda_update", lambda: left_of_the_old_value(True)),
        computed("added", "k3core.kda.kda_update", lambda: left_of_the_old_value(False)),
    ), lambda n: FAILS if n.delta < 1e-6 < n.added else HOLDS),
)
