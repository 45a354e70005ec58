"""Train the tiny hybrid model that ships with the package. Development only: needs PyTorch.

    python tools/train_tiny.py --library ~/.pyenv/versions/3.13.0/lib/python3.13 --run /tmp/tiny

The shape is K3's in small: three KDA layers to one MLA layer, lower-bound gate, short convolutions, output
gates, no positional encoding, SiTU. Parameters carry the published names, so that a checkpoint is read by
`k3core.decode` as it is. The run is seeded, and resumes from its newest checkpoint: give other --steps or
--decay to stop at another time. Same seed, same machine, same library: same weights.
"""

import argparse
import hashlib
import json
import math
import pathlib
import time

import numpy as np
import torch
import torch.distributed as dist
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


# --- data ---


def is_held_out(path):
    """One file in 20, by its path."""
    return hashlib.sha256(path.encode()).digest()[0] < 13


def read_library(root):
    """(training bytes, held-out files {path: bytes}, recipe) from a CPython library folder.

    All .py files in the order of their paths, without installed packages, tests and the encodings package
    (tables), and without files that are not pure ASCII. In the training text each file ends with a NUL.
    """
    skipped = {"site-packages", "test", "tests", "idle_test", "encodings"}
    train, held_out = {}, {}
    root = pathlib.Path(root).expanduser()
    for path in sorted(root.rglob("*.py"), key=lambda p: p.relative_to(root).as_posix()):
        name = path.relative_to(root).as_posix()
        text = path.read_bytes()
        if not skipped & set(path.relative_to(root).parts) and text.isascii() and text:
            (held_out if is_held_out(name) else train)[name] = text
    joined = b"".join(text + b"\0" for text in train.values())
    tested = b"".join(text + b"\0" for text in held_out.values())
    if not train or not held_out:
        raise SystemExit(f"{root} holds no Python library")
    recipe = {
        "train_files": len(train), "train_bytes": len(joined), "train_sha256": hashlib.sha256(joined).hexdigest(),
        "held_out_files": len(held_out), "held_out_bytes": len(tested),
        "held_out_sha256": hashlib.sha256(tested).hexdigest(),
    }  # fmt: skip
    return joined, held_out, recipe


# --- model ---


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


# --- optimiser ---


class Muon(torch.optim.Optimizer):
    """Momentum whose matrix is made orthogonal by five Newton-Schulz steps (Keller Jordan's Muon)."""

    def __init__(self, params, lr, momentum=0.95, weight_decay=0.0):
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            by_shape = {}
            for p in group["params"]:
                buffer = self.state[p].setdefault("momentum", torch.zeros_like(p))
                buffer.lerp_(p.grad, 1 - group["momentum"])
                by_shape.setdefault(p.shape, []).append((p, p.grad.lerp(buffer, group["momentum"])))
            for shape, pairs in by_shape.items():
                updates = orthogonal(torch.stack([update for _, update in pairs]))
                rate = group["lr"] * max(1, shape[0] / shape[1]) ** 0.5
                for (p, _), update in zip(pairs, updates):
                    p.mul_(1 - group["lr"] * group["weight_decay"]).add_(update, alpha=-rate)


def orthogonal(x):
    """The nearest orthogonal matrices, roughly; x [n, rows, columns]."""
    tall = x.shape[1] > x.shape[2]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(5):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x.mT if tall else x


def optimisers(model, lr, muon_lr):
    """AdamW for embedding, head, vectors and convolutions, Muon for the matrices of the layers."""
    matrices = [p for n, p in model.named_parameters() if n.startswith("layers.") and p.ndim == 2 and len(p) > 8]
    ids = {id(p) for p in matrices}
    others = [p for p in model.parameters() if id(p) not in ids]
    adam = torch.optim.AdamW(others, lr, betas=(0.9, 0.98), weight_decay=0.0, fused=True)
    return [adam, Muon(matrices, muon_lr, weight_decay=0.05)]


def rate(step, steps, decay, warmup=100):
    """Share of the peak learning rate: warm-up, stable, then straight down to 0 over the last `decay` steps."""
    return min((step + 1) / warmup, 1.0, (steps - step) / decay)


# --- training ---


def mean_gradients(model):
    """The mean over all processes of every gradient, in place."""
    grads = [p.grad for p in model.parameters()]
    flat = torch.cat([g.flatten() for g in grads])
    dist.all_reduce(flat)
    for g, mean in zip(grads, flat.div_(dist.get_world_size()).split([g.numel() for g in grads])):
        g.copy_(mean.view_as(g))


def sample(data, seed, batch, length):
    starts = np.random.default_rng(seed).integers(0, len(data) - length - 1, batch)
    rows = torch.from_numpy(np.stack([data[s : s + length + 1] for s in starts]).astype(np.int64))
    return rows[:, :-1], rows[:, 1:]


@torch.no_grad()
def held_out_bits(model, held_out, length=512, limit=None):
    """Bits per byte of the held-out files, each byte predicted from 256 to 511 bytes before it where there are."""
    half, windows = length // 2, []
    stream = np.frombuffer(b"".join(b"\0" + text for text in held_out.values()), np.uint8)
    for start in range(0, len(stream) - length - 1, half):
        windows.append(stream[start : start + length + 1])
    windows = windows[:: max(1, len(windows) // limit)] if limit else windows
    rows = torch.from_numpy(np.stack(windows).astype(np.int64))
    total = 0.0
    for part in rows.split(32):
        logits, truth = model(part[:, :-1])[:, half:], part[:, 1 + half :]
        total += F.cross_entropy(logits.flatten(0, 1), truth.flatten(), reduction="sum").item()
    return total / (len(rows) * half) / math.log(2)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True, help="lib/python3.13 of CPython 3.13.0")
    parser.add_argument("--run", type=pathlib.Path, required=True, help="folder for checkpoints and the log")
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--decay", type=int, default=1500, help="the last steps, over which the rate falls to 0")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--muon-lr", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--processes", type=int, default=2, help="one thread each")
    parser.add_argument("--bfloat16", action="store_true", help="projections in bfloat16, fast on AMX")
    return parser.parse_args()


def train(rank, a):
    """One of --processes workers with one thread each, which see different samples and mean their gradients."""
    global LOW
    LOW = torch.bfloat16 if a.bfloat16 else torch.float32
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{a.run.resolve()}/meet", rank=rank, world_size=a.processes
    )
    text, held_out, recipe = read_library(a.library)
    data = np.frombuffer(text, np.uint8)
    torch.manual_seed(a.seed)
    model = Model(CONFIG)
    tools = optimisers(model, a.lr, a.muon_lr)
    groups = [group for tool in tools for group in tool.param_groups]
    peaks = [group["lr"] for group in groups]
    first, before = 0, 0.0
    newest = a.run / "newest.pt"
    if newest.exists():
        saved = torch.load(newest)
        first, before = saved["step"], saved["seconds"]
        model.load_state_dict(saved["model"])
        for tool, state in zip(tools, saved["tools"]):
            tool.load_state_dict(state)
    else:
        say(a, rank, f"# {json.dumps(recipe)} parameters {sum(p.numel() for p in model.parameters())}")
        say(a, rank, "step,seconds,rate,train_bits_per_byte,held_out_bits_per_byte")
    dist.barrier()
    run = torch.compile(model) if a.compile else model
    started, losses = time.perf_counter() - before, []
    for step in range(first, a.steps):
        now = rate(step, a.steps, a.decay)
        for group, peak in zip(groups, peaks):
            group["lr"] = peak * now
        x, y = sample(data, [a.seed, step, rank], a.batch // a.processes, a.length)
        loss = F.cross_entropy(run(x).flatten(0, 1), y.flatten())
        loss.backward()
        mean_gradients(model)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for tool in tools:
            tool.step()
            tool.zero_grad()
        losses.append(loss.item() / math.log(2))
        if not math.isfinite(losses[-1]):
            raise SystemExit(f"the loss is not finite at step {step}")
        done, seconds = step + 1, time.perf_counter() - started
        last = done == a.steps
        if done % 20 == 0 or last:
            tested = ""
            if rank == 0 and (done % 500 == 0 or last):
                tested = format(held_out_bits(model, held_out, limit=None if last else 64), ".4f")
            say(a, rank, f"{done},{seconds:.0f},{now:.4f},{np.mean(losses[-20:]):.4f},{tested}")
        if rank == 0 and (done % 250 == 0 or last):
            state = {"step": done, "seconds": seconds, "model": model.state_dict()}
            torch.save(state | {"tools": [tool.state_dict() for tool in tools]}, a.run / "new.pt")
            (a.run / "new.pt").replace(newest)
    dist.destroy_process_group()


def say(a, rank, line):
    if rank == 0:
        print(line, flush=True)
        with open(a.run / "log.csv", "a") as log:
            print(line, file=log)


def main():
    a = parse_arguments()
    a.run.mkdir(parents=True, exist_ok=True)
    (a.run / "meet").unlink(missing_ok=True)
    torch.multiprocessing.spawn(train, (a,), a.processes)


if __name__ == "__main__":
    main()
