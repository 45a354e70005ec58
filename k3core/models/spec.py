"""What a model keeps in a serving cache: one cache specification per layer."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Recurrent:
    """A linear-attention or state-space layer: a fixed state and a short-convolution window per sequence.

    State `[heads, dk, dv]`; convolution over `channels` inputs, of which the last `conv_kernel - 1` are kept.
    kind: "kda", "gdn" (gated delta net) or "mamba2" (key_heads = groups, dk = state size, dv = head size).
    chunk: tokens the prefill kernel takes at once; states at every block must fall on its multiples.
    """

    kind: str
    heads: int
    key_heads: int
    dk: int
    dv: int
    conv_kernel: int
    chunk: int = 64

    @property
    def channels(self) -> int:
        """Convolved channels: q and k of every key head, v of every head."""
        return 2 * self.key_heads * self.dk + self.heads * self.dv


@dataclass(frozen=True)
class Latent:
    """Multi-head latent attention: one row per token, shared by all heads and so not split over TP ranks.

    index_dim: width of the sparse-attention indexer's key kept beside each row, 0 without indexer.
    """

    kv_lora_rank: int
    rope_dim: int
    index_dim: int = 0
    kind: str = "mla"

    @property
    def row_elements(self) -> int:
        return self.kv_lora_rank + self.rope_dim


@dataclass(frozen=True)
class Attention:
    """Grouped-query attention: K and V per token and KV head.

    window: tokens a sliding-window layer looks back, None for a layer that sees all.
    """

    kv_heads: int
    head_dim: int
    window: int | None = None

    @property
    def kind(self) -> str:
        return "full" if self.window is None else "sliding"


@dataclass(frozen=True)
class Compressed:
    """Compressed attention of DeepSeek V4: a window of plain rows, and one compressed row per `ratio` tokens.

    ratio 0: the window only. A row is K and V at once. index_dim: width of the indexer's key kept with each
    compressed row, 0 without indexer.
    """

    head_dim: int
    rope_dim: int
    ratio: int
    window: int
    index_dim: int = 0
    kind: str = "compressed"


Cache = Recurrent | Latent | Attention | Compressed


@dataclass(frozen=True)
class Policy:
    """A vision-language-action policy: a prefix computed once, a suffix run `flow_steps` times against it."""

    prefix_tokens: int | None
    suffix_tokens: int
    flow_steps: int | None


@dataclass(frozen=True)
class Field:
    """One value of a preset and where it comes from."""

    name: str
    value: object
    source: str


@dataclass(frozen=True)
class Model:
    """A model as a cache sees it. layers: one entry per layer, None for a layer that caches nothing.

    state_dtype_from: "file" where the model's file names state_dtype, else the kind of layer whose default it is;
    "" without a recurrent layer.
    """

    name: str
    title: str
    layers: tuple[Cache | None, ...]
    max_model_len: int | None = None
    state_dtype: str = "fp32"
    state_dtype_from: str = ""
    policy: Policy | None = None
    fields: tuple[Field, ...] = ()
    note: str = ""

    def caches(self, *kinds: str) -> list[Cache]:
        """The cache specifications of the named kinds (all kinds if none is named), in layer order."""
        return [c for c in self.layers if c is not None and (not kinds or c.kind in kinds)]

    @property
    def recurrent(self) -> list[Recurrent]:
        return [c for c in self.layers if isinstance(c, Recurrent)]

    @property
    def attention(self) -> list[Latent | Attention | Compressed]:
        return [c for c in self.layers if c is not None and not isinstance(c, Recurrent)]
