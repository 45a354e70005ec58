"""What the answer depends on besides the model."""

from dataclasses import dataclass, replace

from ..models import Latent, Model
from .bytes import KV_DTYPES, STATE_DTYPES

MODES = ("none", "align", "all")
LARGEST = 2**53  # of any setting: exact in JSON and in a float
GROUPINGS = ("default", "min", "balanced", "memory")


@dataclass(frozen=True)
class Settings:
    """Serving settings; None means the default for the model (see `resolve`).

    mode: when a recurrent state is kept for prefix reuse (vLLM mamba_cache_mode): never, at the end of an
    aligned step, at every block. align: tokens the attention kernel's block must be a multiple of.
    batched_tokens: tokens a scheduler step may process, which a sliding window must hold besides itself.
    """

    tp: int = 1
    kv_dtype: str = "bf16"
    state_dtype: str | None = None
    conv_dtype: str = "bf16"
    drafts: int = 0
    align: int | None = None
    mode: str = "align"
    grouping: str = "default"
    max_model_len: int | None = None
    memory_bytes: int | None = None
    num_blocks: int | None = None
    batched_tokens: int = 8192


def resolve(model: Model, settings: Settings) -> Settings:
    """Fill in the model's defaults and check every value. Raises ValueError naming the setting."""
    known = {
        "kv_dtype": KV_DTYPES,
        "conv_dtype": STATE_DTYPES,
        "mode": MODES,
        "grouping": GROUPINGS,
        "state_dtype": (*STATE_DTYPES, None),
    }
    for name, choices in known.items():
        if getattr(settings, name) not in choices:
            raise ValueError(
                f"{name} is {getattr(settings, name)!r}; choose one of {', '.join(filter(None, choices))}"
            )
    least = {
        "tp": 1,
        "drafts": 0,
        "align": 1,
        "max_model_len": 1,
        "memory_bytes": 1,
        "num_blocks": 1,
        "batched_tokens": 1,
    }
    for name, minimum in least.items():
        value = getattr(settings, name)
        whole = isinstance(value, int) and not isinstance(value, bool)
        if value is not None and not (whole and minimum <= value <= LARGEST):
            raise ValueError(f"{name} is {value!r}; it must be an integer from {minimum} to {LARGEST}")
    if settings.memory_bytes is not None and settings.num_blocks is not None:
        raise ValueError("memory and num_blocks are both given; one follows from the other, so give one")
    has_latent = any(isinstance(layer, Latent) for layer in model.layers)
    return replace(
        settings,
        state_dtype=settings.state_dtype or model.state_dtype,
        align=settings.align or (64 if has_latent else 16),
        max_model_len=settings.max_model_len or model.max_model_len,
    )
