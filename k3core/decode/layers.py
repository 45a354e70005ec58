"""The layers of the hybrid decoder. Each takes rows [T, hidden] and the memory of its layer.

`matmul` is `ops.project` in exact mode and `numpy.matmul` in fast mode. Everything is in the dtype of the weights,
float32 or float64; `weights` are those of the layer alone, by published name (see `parameter_shapes`).
"""

import numpy as np

from ..kda import KDATokens, gate_lower_bound, gate_softplus, l2norm, short_conv
from ..mla import latent_rows, mla_decode, mla_prefill
from ..ops import rms_norm, sigmoid, silu

LATENT_NORM_EPS = 1e-6  # of the two low-rank norms in MLA, whatever rms_norm_eps says


def matrix(weights, name):
    """A checkpoint's [out, in] matrix as contiguous [in, out]."""
    return np.ascontiguousarray(weights[name + ".weight"].T)


class KDALayer:
    """One KDA layer: projections, short convolution, gates, recurrence, gated norm, output.

    Source: Kimi Linear (arXiv 2510.26692) section 3; Kimi K3 report (arXiv 2607.24653) section 2.1.1.
    """

    def __init__(self, config, weights):
        self.config = config
        self.w_qkv = np.concatenate([matrix(weights, f"{name}_proj") for name in "qkv"], axis=1)
        taps = np.concatenate([weights[f"{name}_conv1d.weight"] for name in "qkv"])
        self.conv = np.ascontiguousarray(taps[:, 0].T)
        self.w_f_a, self.w_f_b = matrix(weights, "f_a_proj"), matrix(weights, "f_b_proj")
        self.dt_bias, self.A_log = weights["dt_bias"], weights["A_log"]
        self.w_beta = matrix(weights, "b_proj")
        gate = ["g_proj"] if config.full_rank_gate else ["g_a_proj", "g_b_proj"]
        self.w_gate = [matrix(weights, name) for name in gate]
        self.o_norm, self.w_o = weights["o_norm.weight"], matrix(weights, "o_proj")

    def __call__(self, x, memory, matmul):
        """x [T, hidden] -> [T, hidden]; the memory takes the tokens in."""
        o = memory.advance(self.tokens(x, memory.conv, matmul))
        gate = x
        for w in self.w_gate:
            gate = matmul(gate, w)
        y = rms_norm(o, self.o_norm, self.config.rms_norm_eps) * sigmoid(gate).reshape(o.shape)
        return matmul(y.reshape(len(x), -1), self.w_o)

    def tokens(self, x, conv_window, matmul):
        """What the recurrence sees of rows x [T, hidden] -> KDATokens; conv_window [kernel - 1, D]: the convolution's
        inputs before them."""
        c, T = self.config, len(x)
        conv_inputs = matmul(x, self.w_qkv)
        mixed, _ = short_conv(conv_inputs, self.conv, conv_window)
        keys = c.kda_heads * c.kda_key_dim
        q, k, v = (part.reshape(T, c.kda_heads, -1) for part in np.split(mixed, [keys, 2 * keys], axis=1))
        z = (matmul(matmul(x, self.w_f_a), self.w_f_b) + self.dt_bias).reshape(T, c.kda_heads, -1)
        if c.gate_lower_bound is None:
            g = gate_softplus(z, self.A_log)
        else:
            g = gate_lower_bound(z, self.A_log, c.gate_lower_bound)
        return KDATokens(l2norm(q), l2norm(k), v, g, sigmoid(matmul(x, self.w_beta)), conv_inputs)


class MLALayer:
    """One MLA layer: low-rank query or not, latent cache row, attention, optional output gate.

    Source: DeepSeek-V2 (arXiv 2405.04434) section 2.1; Kimi K3 report (arXiv 2607.24653) section 2.1.2.
    """

    def __init__(self, config, weights):
        c = self.config = config
        if c.q_lora_rank is None:
            self.w_q, self.q_norm = [matrix(weights, "q_proj")], None
        else:
            self.w_q = [matrix(weights, "q_a_proj"), matrix(weights, "q_b_proj")]
            self.q_norm = weights["q_a_layernorm.weight"]
        self.w_kv, self.kv_norm = matrix(weights, "kv_a_proj_with_mqa"), weights["kv_a_layernorm.weight"]
        kv_b = weights["kv_b_proj.weight"].reshape(c.heads, -1, c.kv_lora_rank)
        self.w_uk = np.ascontiguousarray(kv_b[:, : c.qk_nope_head_dim])
        self.w_uv = np.ascontiguousarray(kv_b[:, c.qk_nope_head_dim :].swapaxes(1, 2))
        self.w_gate = matrix(weights, "g_proj") if c.mla_output_gate else None
        self.w_o = matrix(weights, "o_proj")

    def __call__(self, x, memory, matmul, exact):
        """x [T, hidden] -> [T, hidden]; the memory (a LatentCache) gains T rows.

        Exact: each row attends alone over exactly its own length, so that its bits do not depend on its
        company.
        """
        T = len(x)
        q = matmul(x, self.w_q[0])
        if self.q_norm is not None:
            q = matmul(rms_norm(q, self.q_norm, LATENT_NORM_EPS), self.w_q[1])
        q = q.reshape(T, self.config.heads, -1)
        memory.append(latent_rows(matmul(x, self.w_kv), self.kv_norm, LATENT_NORM_EPS))
        if exact:
            before = memory.length - T
            lengths = range(before + 1, before + T + 1)
            o = np.stack([mla_decode(q[t], memory.rows[:n], self.w_uk, self.w_uv) for t, n in enumerate(lengths)])
        else:
            o = mla_prefill(q, memory.rows, self.w_uk, self.w_uv)
        o = o.reshape(T, -1)
        if self.w_gate is not None:
            o = o * sigmoid(matmul(x, self.w_gate))
        return matmul(o, self.w_o)


class MLP:
    """Gated feed-forward layer, SwiGLU or K3's SiTU: b tanh(g / b) sigmoid(g) * c tanh(u / c).

    Source of SiTU: Kimi K3's config.json, which calls b activation_situ_beta and c activation_situ_linear_beta.
    """

    def __init__(self, config, weights):
        self.config = config
        self.w_gate, self.w_up = matrix(weights, "gate_proj"), matrix(weights, "up_proj")
        self.w_down = matrix(weights, "down_proj")

    def __call__(self, x, matmul):
        """x [T, hidden] -> [T, hidden]."""
        gate, up = matmul(x, self.w_gate), matmul(x, self.w_up)
        if self.config.activation == "silu":
            return matmul(silu(gate) * up, self.w_down)
        b, c = self.config.situ_beta, self.config.situ_linear_beta
        return matmul(b * np.tanh(gate / b) * sigmoid(gate) * c * np.tanh(up / c), self.w_down)
