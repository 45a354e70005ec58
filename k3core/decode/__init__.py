"""A hybrid decoder (KDA and MLA layers) with decoding, greedy or sampled, plain or speculative."""

from .config import DecoderConfig, parameter_shapes, read_config
from .decoder import DecoderState, HybridDecoder, KDAMemory
from .packed import pack_weights, unpack_weights
from .sampling import Greedy, Gumbel, margin
from .speculative import NoisyOracle, PromptLookup, Round, Speculation, acceptance_by_position
from .tiny import START, MissingWeights, decode, encode, tiny_model
from .weights import random_weights, read_weights

__all__ = [
    "DecoderConfig",
    "DecoderState",
    "Greedy",
    "Gumbel",
    "HybridDecoder",
    "KDAMemory",
    "MissingWeights",
    "NoisyOracle",
    "PromptLookup",
    "Round",
    "START",
    "Speculation",
    "acceptance_by_position",
    "decode",
    "encode",
    "margin",
    "pack_weights",
    "parameter_shapes",
    "random_weights",
    "read_config",
    "read_weights",
    "tiny_model",
    "unpack_weights",
]
