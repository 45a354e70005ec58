"""The hybrid decoder: KDA and MLA layers, each with its own kind of memory, and plain decoding."""

from dataclasses import dataclass
from itertools import islice

import numpy as np

from ..kda import kda_chunk, kda_recurrent
from ..mla import LatentCache
from ..ops import project, rms_norm
from .config import DecoderConfig, read_config
from .layers import MLP, KDALayer, MLALayer, matrix
from .packed import unpack_weights
from .sampling import Greedy
from .weights import random_weights, read_weights


class KDAMemory:
    """What a KDA layer keeps of all it has read: state [HV, dk, dv], convolution window [kernel - 1, D]; both float32
    or both float64.

    The stores of `k3core.replayssm` stand in for it while drafts are being verified.
    """

    def __init__(self, state, conv, exact):
        self.state, self.conv, self.exact = state, conv, exact

    def advance(self, tokens):
        """Take in T tokens (KDATokens) -> o [T, HV, dv]."""
        kernel = kda_recurrent if self.exact or len(tokens.v) == 1 else kda_chunk
        o, self.state = kernel(*tokens[:5], self.state)
        self.conv = np.concatenate([self.conv, tokens.conv_inputs])[len(tokens.v) :]
        return o

    def copy(self):
        """An independent memory with the same content."""
        return KDAMemory(self.state.copy(), self.conv.copy(), self.exact)


@dataclass
class DecoderState:
    """All the decoder remembers: the number of tokens, and a KDAMemory or LatentCache per layer."""

    length: int
    memories: list

    def copy(self):
        """An independent state with the same content."""
        return DecoderState(self.length, [memory.copy() for memory in self.memories])

    def arrays(self):
        """All it remembers, from the input up: of a KDA layer its state and convolution window, of an MLA layer its
        rows. Whatever stands in for a memory (a store, pages) serves."""
        return [array for memory in self.memories
                for array in ((memory.rows,) if hasattr(memory, "rows") else (memory.state, memory.conv))]


class HybridDecoder:
    """A decoder-only model of KDA and MLA layers, in float32 or float64.

    exact=True: projections through `ops.project`, KDA token by token, attention row by row; a token's bits
    are the same however the tokens before it were grouped. exact=False: BLAS, `kda_chunk`, MLA's prefill
    form; equal within rounding.
    """

    def __init__(self, config: DecoderConfig, weights: dict, exact=True):
        self.config, self.exact = config, exact
        self.embedding, self.norm = weights["embed_tokens.weight"], weights["norm.weight"]
        self.w_head = matrix(weights, "lm_head")
        self.layers = []
        for i, kind in enumerate(config.layers):
            own = _under(weights, f"layers.{i}.")
            attention = (KDALayer if kind == "kda" else MLALayer)(config, _under(own, "self_attn."))
            norms = own["input_layernorm.weight"], own["post_attention_layernorm.weight"]
            self.layers.append((*norms, attention, MLP(config, _under(own, "mlp."))))

    @classmethod
    def from_huggingface(cls, weights, config, dtype=np.float32, exact=True):
        """From a checkpoint: weights {parameter name: array} and config (the mapping in config.json).

        Published and transformers-style names and keys; dense MLPs only. Raises ValueError naming what does
        not fit.
        """
        config = read_config(config)
        return cls(config, read_weights(weights, config, dtype), exact)

    @classmethod
    def from_npz(cls, data, exact=True):
        """From the bytes of a packed model (see `packed`), in float32. Raises ValueError naming what does not fit."""
        weights, config = unpack_weights(data)
        return cls.from_huggingface(weights, config, exact=exact)

    @classmethod
    def random_k3(cls, rng, *, layers=4, hidden=32, heads=2, key_dim=16, value_dim=24, vocab=64, dtype=np.float64,
                  exact=True):
        """A tiny K3-shaped model with random weights: 3 KDA : 1 MLA, bounded decay, full-rank output gates.

        rng is a numpy.random.Generator. Without K3's experts and attention residuals, which keep nothing per
        token.
        """
        config = DecoderConfig(
            vocab_size=vocab, hidden_size=hidden, intermediate_size=2 * hidden,
            layers=tuple("mla" if i % 4 == 3 else "kda" for i in range(layers)),
            kda_heads=heads, kda_key_dim=key_dim, kda_value_dim=value_dim, conv_kernel=4, gate_rank=key_dim,
            gate_lower_bound=-5.0, full_rank_gate=True, heads=heads, q_lora_rank=hidden // 2, kv_lora_rank=16,
            qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=16, mla_output_gate=True, activation="situ",
        )  # fmt: skip
        return cls(config, random_weights(config, rng, dtype), exact)

    @property
    def dtype(self):
        """float32 or float64: of weights, states, caches and logits."""
        return self.embedding.dtype

    def new_state(self):
        """The state before the first token."""
        c = self.config
        width = c.kda_heads * (2 * c.kda_key_dim + c.kda_value_dim)
        memories = []
        for kind in c.layers:
            if kind == "kda":
                state = np.zeros((c.kda_heads, c.kda_key_dim, c.kda_value_dim), self.dtype)
                conv = np.zeros((c.conv_kernel - 1, width), self.dtype)
                memories.append(KDAMemory(state, conv, self.exact))
            else:
                memories.append(LatentCache(c.kv_lora_rank + c.qk_rope_head_dim, self.dtype))
        return DecoderState(0, memories)

    def forward(self, ids, state):
        """Read tokens ids [T] after those in `state`, which takes them in -> logits [T, vocab]. Raises ValueError."""
        matmul = project if self.exact else np.matmul
        eps = self.config.rms_norm_eps
        ids = self.check_ids(ids)
        x = self.embedding[ids]
        for (norm_in, norm_mid, attention, mlp), memory in zip(self.layers, state.memories):
            h = rms_norm(x, norm_in, eps)
            if isinstance(attention, MLALayer):
                x = x + attention(h, memory, matmul, self.exact)
            else:
                x = x + attention(h, memory, matmul)
            x = x + mlp(rms_norm(x, norm_mid, eps), matmul)
        state.length += len(ids)
        return matmul(rms_norm(x, self.norm, eps), self.w_head)

    def prefill(self, ids):
        """Read a prompt from the start -> (logits [T, vocab], state)."""
        state = self.new_state()
        return self.forward(ids, state), state

    def step(self, token, state):
        """Read one more token -> logits [vocab]."""
        return self.forward([token], state)[0]

    def logits(self, ids):
        """Next-token logits after every prefix of ids [T] -> [T, vocab]."""
        return self.prefill(ids)[0]

    def generate(self, ids, n, sampler=Greedy()):
        """Continuation of ids, greedy or as `sampler` chooses -> the n new tokens, a list of ints."""
        if n < 0:
            raise ValueError(f"n must not be negative, but is {n}")
        return list(islice(self.stream(ids, sampler=sampler), n))

    def stream(self, ids, state=None, sampler=Greedy()):
        """Continuation of ids, token by token without end: yields ints.

        ids are read after what `state` has read (default: nothing), and `state` takes them in. Each token is
        read when the next one is asked for: after k of them the state has read ids and k - 1 tokens, so that
        `stream([last], state)` goes on with the same text.
        """
        state = self.new_state() if state is None else state
        logits = self.forward(ids, state)[-1]
        while True:
            token = sampler.choose(logits, state.length)
            yield token
            logits = self.step(token, state)

    def check_ids(self, ids):
        """ids as an int64 array [T]; ValueError unless T >= 1 and all are in the vocabulary."""
        ids = np.asarray(ids)
        if ids.ndim != 1 or not len(ids) or ids.dtype.kind not in "iu":
            raise ValueError(f"ids must be a non-empty list of token ids, not {ids.dtype} of shape {ids.shape}")
        if ids.min() < 0 or ids.max() >= self.config.vocab_size:
            last, lowest, highest = self.config.vocab_size - 1, int(ids.min()), int(ids.max())
            raise ValueError(f"ids must be 0 to {last}, not {lowest} to {highest}")
        return ids.astype(np.int64)


def _under(weights, prefix):
    return {name.removeprefix(prefix): array for name, array in weights.items() if name.startswith(prefix)}
