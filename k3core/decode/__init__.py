"""A hybrid decoder (KDA and MLA layers) with greedy decoding, plain and speculative."""

from .config import DecoderConfig, parameter_shapes, read_config
from .decoder import DecoderState, HybridDecoder, KDAMemory
from .speculative import NoisyOracle, PromptLookup, Round, Speculation
from .weights import random_weights, read_weights

__all__ = [
    "DecoderConfig",
    "DecoderState",
    "HybridDecoder",
    "KDAMemory",
    "NoisyOracle",
    "PromptLookup",
    "Round",
    "Speculation",
    "parameter_shapes",
    "random_weights",
    "read_config",
    "read_weights",
]
