"""Train the tiny hybrid model that ships with the package. Development only: needs PyTorch.

    python tools/train_tiny.py --library ~/.pyenv/versions/3.13.0/lib/python3.13 --run /tmp/tiny

The run is seeded, and resumes from its newest checkpoint: give other --steps or --decay to stop at another time.
Same seed, same machine, same library: same weights.
"""

import argparse
import hashlib
import json
import math
import pathlib
import time

import numpy as np
import tiny_torch
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

NEWEST = "newest.pt"  # the checkpoint in the folder of a run

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
    tiny_torch.LOW = torch.bfloat16 if a.bfloat16 else torch.float32
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{a.run.resolve()}/meet", rank=rank, world_size=a.processes
    )
    text, held_out, recipe = read_library(a.library)
    data = np.frombuffer(text, np.uint8)
    torch.manual_seed(a.seed)
    model = tiny_torch.Model(tiny_torch.CONFIG)
    tools = optimisers(model, a.lr, a.muon_lr)
    groups = [group for tool in tools for group in tool.param_groups]
    peaks = [group["lr"] for group in groups]
    first, before = restore(a.run / NEWEST, model, tools)
    if not first:
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
            keep(a.run / NEWEST, done, seconds, model, tools)
    dist.destroy_process_group()


def restore(path, model, tools):
    """(steps done, seconds taken) of a checkpoint, which model and optimisers take over; (0, 0.0) without one."""
    if not path.exists():
        return 0, 0.0
    saved = torch.load(path)
    model.load_state_dict(saved["model"])
    for tool, state in zip(tools, saved["tools"]):
        tool.load_state_dict(state)
    return saved["step"], saved["seconds"]


def keep(path, step, seconds, model, tools):
    """Write a checkpoint beside the old one, then in its place."""
    state = {"step": step, "seconds": seconds, "model": model.state_dict()}
    torch.save(state | {"tools": [tool.state_dict() for tool in tools]}, path.with_name("new.pt"))
    path.with_name("new.pt").replace(path)


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
