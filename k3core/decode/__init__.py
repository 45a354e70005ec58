"""A hybrid decoder (KDA and MLA layers) with greedy decoding, plain and speculative."""

from .config import DecoderConfig, parameter_shapes, read_config
from .decoder import DecoderState, HybridDecoder, KDAMemory
from .packed import pack_weights, unpack_weights
from .speculative import NoisyOracle, PromptLookup, Round, Speculation
from .tiny import START, decode, encode, tiny_model
from .weights import random_weights, read_weights

__all__ = [
    "DecoderConfig",
    "DecoderState",
    "HybridDecoder",
    "KDAMemory",
    "NoisyOracle",
    "PromptLookup",
    "Round",
    "START",
    "Speculation",
    "decode",
    "encode",
    "pack_weights",
    "parameter_shapes",
    "random_weights",
    "read_config",
    "read_weights",
    "tiny_model",
    "unpack_weights",
]
