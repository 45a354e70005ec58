"""Pack a checkpoint of train_tiny.py into k3core/models/tiny.npz and write the test fixture. Needs PyTorch.

    python tools/pack_tiny.py --library ~/.pyenv/versions/3.13.0/lib/python3.13 --run /tmp/tiny [--measure]
"""

import argparse
import pathlib
import sys

import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import tiny_torch  # noqa: E402
import train_tiny  # noqa: E402

from k3core.decode import encode, pack_weights, unpack_weights  # noqa: E402

TEXT = '''class Counter(dict):
    """Count what is added."""

    def add(self, name):
        self[name] = self.get(name, 0) + 1
        return s'''


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", required=True, help="lib/python3.13 of CPython 3.13.0")
    parser.add_argument("--run", type=pathlib.Path, required=True, help="folder with newest.pt")
    parser.add_argument("--measure", action="store_true", help="bits per byte of all held-out files, before and after")
    a = parser.parse_args()
    model = tiny_torch.Model(tiny_torch.CONFIG)
    model.load_state_dict(torch.load(a.run / "newest.pt")["model"])
    data = pack_weights(tiny_torch.published(model), tiny_torch.CONFIG)
    _, held_out, _ = train_tiny.read_library(a.library)
    if a.measure:
        print("held out, float32:", train_tiny.held_out_bits(model, held_out))
    weights, _ = unpack_weights(data)
    model.load_state_dict({name.removeprefix("model."): torch.from_numpy(w) for name, w in weights.items()})
    if a.measure:
        print("held out, int8:", train_tiny.held_out_bits(model, held_out))
    ids = np.array(encode(TEXT))
    padded = np.pad(ids, (0, -len(ids) % tiny_torch.CHUNK))
    with torch.no_grad():
        logits = model(torch.from_numpy(padded)[None])[0, : len(ids)].numpy()
    (ROOT / "k3core/models/tiny.npz").write_bytes(data)
    np.savez(ROOT / "tests/data/tiny_logits.npz", ids=ids.astype(np.uint8), logits=logits)
    print(f"{len(data)} bytes")


if __name__ == "__main__":
    main()
