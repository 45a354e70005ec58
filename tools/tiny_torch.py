"""The tiny hybrid model in PyTorch, for training. Development only.

The shape is K3's in small: three KDA layers to one MLA layer, lower-bound gate, short convolutions, output
gates, no positional encoding, SiTU. Parameters carry the published names, so that a checkpoint is read by
`k3core.decode` as it is.
"""

import torch
import torch.nn.functional as F
from torch import nn

CHUNK = 16  # 16 tokens at the gate's lower bound of -5: pairwise decays stay within exp(+-40) of the middle
CONFIG = {
    "architectures": ["KimiLinearForCausalLM"],
    "vocab_size": 128,
    "hidden_size": 128,
    "intermediate_size": 416,
    "num_hidden_layers": 4,
    "hidden_act": "situ",
    "activation_situ_beta": 4.0,
    "activation_situ_linear_beta": 25.0,
    "rms_norm_eps": 1e-5,
    "num_attention_heads": 4,
    "q_lora_rank": None,
    "kv_lora_rank": 48,
    "qk_nope_head_dim": 24,
    "qk_rope_head_dim": 8,
    "v_head_dim": 32,
    "mla_use_nope": True,
    "mla_use_output_gate": True,
    "linear_attn_config": {
        "full_attn_layers": [4],
        "kda_layers": [1, 2, 3],
        "num_heads": 4,
        "head_dim": 32,
        "short_conv_kernel_size": 4,
        "gate_lower_bound": -5.0,
        "use_full_rank_gate": True,
    },
}


LOW = torch.float32  # bfloat16 where the processor multiplies it faster; the kernels stay in float32


def linear(x, *weights):
    """x times the matrices [out, in], joined along out."""
    return F.linear(x.to(LOW), torch.cat(weights).to(LOW)).float()


def norm(x, weight, eps):
    return F.rms_norm(x, (x.shape[-1],), weight, eps)


def kda(q, k, v, g, beta):
    """Chunkwise KDA: q, k, g [B, T, H, dk], v [B, T, H, dv], beta [B, T, H] -> o [B, T, H, dv].

    q and k are normalised, T is a multiple of CHUNK. Inside a chunk the corrected values solve a unit lower
    triangular system; between chunks the state goes S <- M S + L. Source: Kimi Linear section 3, FLA
    fla/ops/kda/naive.py.
    """
    B, T, H, dk = q.shape
    q, k, v, g, beta = (
        x.reshape(B, T // CHUNK, CHUNK, H, -1).transpose(2, 3).transpose(1, 2) for x in (q, k, v, g, beta[..., None])
    )  # [B, H, N, C, .]
    G = g.cumsum(3)
    middle, end = G[..., CHUNK // 2 : CHUNK // 2 + 1, :], G[..., -1:, :]
    down, up = torch.exp(G - middle), torch.exp(middle - G)
    from_start, to_end, fade = torch.exp(middle), torch.exp(end - middle), torch.exp(end)
    rows, cols = k * down, k * up
    queries = q * (down * dk**-0.5)
    lower = torch.tril(rows @ cols.mT, -1) * beta
    reads = torch.tril(queries @ cols.mT)
    right = torch.cat([rows * from_start, v], -1) * beta
    solved = torch.linalg.solve_triangular(lower, right, upper=False, unitriangular=True)
    W, U = solved[..., :dk], solved[..., dk:]
    step = (cols * to_end).mT @ solved
    M, L = torch.diag_embed(fade.squeeze(3)) - step[..., :dk], step[..., dk:]
    N = T // CHUNK
    M, L = M.flatten(0, 1).unbind(1), L.flatten(0, 1).unbind(1)
    S = torch.zeros_like(L[0])
    states = [S]
    for n in range(N - 1):
        S = torch.baddbmm(L[n], M[n], S)
        states.append(S)
    S = torch.stack(states, 1).unflatten(0, (B, H))
    o = (queries * from_start) @ S + reads @ (U - W @ S)
    return o.transpose(1, 2).transpose(2, 3).reshape(B, T, H, -1)


class Linear(nn.Module):
    def __init__(self, out, inner, zero=False):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(out, inner) if zero else torch.randn(out, inner) * inner**-0.5)


class Vector(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))


class Conv(nn.Module):
    def __init__(self, width, kernel):
        super().__init__()
        self.weight = nn.Parameter((torch.rand(width, 1, kernel) * 2 - 1) * kernel**-0.5)


class KDA(nn.Module):
    def __init__(self, c):
        super().__init__()
        a, d = c["linear_attn_config"], c["hidden_size"]
        self.heads, rank, width = a["num_heads"], a["head_dim"], a["num_heads"] * a["head_dim"]
        self.bound, self.eps, kernel = a["gate_lower_bound"], c["rms_norm_eps"], a["short_conv_kernel_size"]
        self.q_proj, self.k_proj, self.v_proj = (Linear(width, d) for _ in "qkv")
        self.q_conv1d, self.k_conv1d, self.v_conv1d = (Conv(width, kernel) for _ in "qkv")
        self.f_a_proj, self.f_b_proj = Linear(rank, d), Linear(width, rank)
        # Half-lives from one token to some hundreds: -5 sigmoid(-1 .. -7).
        self.dt_bias = nn.Parameter(torch.linspace(-1, -7, rank).repeat(self.heads))
        self.A_log = nn.Parameter(torch.zeros(self.heads))
        self.b_proj, self.g_proj = Linear(self.heads, d), Linear(width, d)
        self.o_norm, self.o_proj = Vector(rank), Linear(d, width, zero=True)

    def forward(self, x):
        B, T, d = x.shape
        parts = (self.q_proj, self.k_proj, self.v_proj, self.g_proj, self.f_a_proj, self.b_proj)
        out = linear(x, *(p.weight for p in parts))
        width = self.q_proj.weight.shape[0]
        qkv, gate, f, b = out.split([3 * width, width, len(self.f_a_proj.weight), self.heads], -1)
        taps = torch.cat([c.weight for c in (self.q_conv1d, self.k_conv1d, self.v_conv1d)])[:, 0].T
        W = len(taps)
        padded = F.pad(qkv, (0, 0, W - 1, 0))
        mixed = F.silu(sum(padded[:, j : j + T] * taps[j] for j in range(W)))
        q, k, v = (y.reshape(B, T, self.heads, -1) for y in mixed.split(width, -1))
        q, k = (y * torch.rsqrt((y * y).sum(-1, keepdim=True) + 1e-6) for y in (q, k))
        z = (linear(f, self.f_b_proj.weight) + self.dt_bias).view(B, T, self.heads, -1)
        g = self.bound * torch.sigmoid(torch.exp(self.A_log)[:, None] * z)
        o = kda(q, k, v, g, torch.sigmoid(b))
        y = norm(o, self.o_norm.weight, self.eps).reshape(B, T, -1) * torch.sigmoid(gate)
        return linear(y, self.o_proj.weight)


class MLA(nn.Module):
    def __init__(self, c):
        super().__init__()
        d, self.heads, self.rank = c["hidden_size"], c["num_attention_heads"], c["kv_lora_rank"]
        self.nope, self.rope, self.v = c["qk_nope_head_dim"], c["qk_rope_head_dim"], c["v_head_dim"]
        self.q_proj = Linear(self.heads * (self.nope + self.rope), d)
        self.kv_a_proj_with_mqa = Linear(self.rank + self.rope, d)
        self.kv_a_layernorm = Vector(self.rank)
        self.kv_b_proj = Linear(self.heads * (self.nope + self.v), self.rank)
        self.g_proj, self.o_proj = Linear(self.heads * self.v, d), Linear(d, self.heads * self.v, zero=True)

    def forward(self, x):
        B, T, d = x.shape
        parts = (self.q_proj, self.g_proj, self.kv_a_proj_with_mqa)
        out = linear(x, *(p.weight for p in parts))
        q, gate, latent, shared = out.split(
            [len(self.q_proj.weight), len(self.g_proj.weight), self.rank, self.rope], -1
        )
        q = q.view(B, T, self.heads, -1)
        built = linear(norm(latent, self.kv_a_layernorm.weight, 1e-6), self.kv_b_proj.weight)
        k, v = built.view(B, T, self.heads, -1).split([self.nope, self.v], -1)
        k = torch.cat([k, shared[:, :, None].expand(-1, -1, self.heads, -1)], -1)
        q, k, v = (y.transpose(1, 2) for y in (q, k, v))
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, -1)
        return linear(o * torch.sigmoid(gate), self.o_proj.weight)


class MLP(nn.Module):
    def __init__(self, c):
        super().__init__()
        d, ff = c["hidden_size"], c["intermediate_size"]
        self.beta, self.linear_beta = c["activation_situ_beta"], c["activation_situ_linear_beta"]
        self.gate_proj, self.up_proj, self.down_proj = Linear(ff, d), Linear(ff, d), Linear(d, ff, zero=True)

    def forward(self, x):
        gate, up = linear(x, self.gate_proj.weight, self.up_proj.weight).chunk(2, -1)
        b, c = self.beta, self.linear_beta
        return linear(b * torch.tanh(gate / b) * torch.sigmoid(gate) * c * torch.tanh(up / c), self.down_proj.weight)


class Layer(nn.Module):
    def __init__(self, c, index):
        super().__init__()
        full = index + 1 in c["linear_attn_config"]["full_attn_layers"]
        self.self_attn, self.mlp, self.eps = (MLA if full else KDA)(c), MLP(c), c["rms_norm_eps"]
        self.input_layernorm, self.post_attention_layernorm = (Vector(c["hidden_size"]) for _ in range(2))

    def forward(self, x):
        x = x + self.self_attn(norm(x, self.input_layernorm.weight, self.eps))
        return x + self.mlp(norm(x, self.post_attention_layernorm.weight, self.eps))


class Model(nn.Module):
    """ids [B, T] -> logits [B, T, vocab]; T a multiple of CHUNK."""

    def __init__(self, c):
        super().__init__()
        d = c["hidden_size"]
        self.embed_tokens, self.lm_head = Linear(c["vocab_size"], d), Linear(c["vocab_size"], d)
        self.layers = nn.ModuleList(Layer(c, i) for i in range(c["num_hidden_layers"]))
        self.norm, self.eps = Vector(d), c["rms_norm_eps"]

    def forward(self, ids):
        x = F.embedding(ids, self.embed_tokens.weight)
        for layer in self.layers:
            x = layer(x)
        return linear(norm(x, self.norm.weight, self.eps), self.lm_head.weight)


def published(model):
    """{published name: float32 array} as a checkpoint has them."""
    return {f"model.{name}": p.detach().numpy().copy() for name, p in model.state_dict().items()}
