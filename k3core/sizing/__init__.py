"""How many bytes, which block size, how many requests: the arithmetic of a hybrid model's cache.

size(model, settings) answers everything at once, with its derivation; the parts can be called alone.
"""

from .answer import size
from .bytes import (ELEMENT_BYTES, KV_DTYPES, RECOVER_RECORD, REPLAY_RECORD, STATE_DTYPES, attention_row_bytes,
                    compressed_row_bytes, conv_state_bytes, index_row_bytes, latent_row_bytes, record_bytes,
                    recurrent_state_bytes)
from .capacity import mapping_efficiency, reported_tokens, reported_tokens_before
from .groups import Group, blocks_per_request, choose_group_size, share_out, state_slots
from .layout import Layout, make_layout, slot_bytes, unified_block
from .pools import STATE_SLOTS, running_limit, speculative_scratch, two_pool_ratio
from .settings import GROUPINGS, MODES, Settings, resolve

__all__ = ["ELEMENT_BYTES", "GROUPINGS", "Group", "KV_DTYPES", "Layout", "MODES", "RECOVER_RECORD", "REPLAY_RECORD",
           "STATE_DTYPES", "STATE_SLOTS", "Settings", "attention_row_bytes", "blocks_per_request", "choose_group_size",
           "compressed_row_bytes", "conv_state_bytes", "index_row_bytes", "latent_row_bytes", "make_layout",
           "mapping_efficiency", "record_bytes", "recurrent_state_bytes", "reported_tokens", "reported_tokens_before",
           "resolve", "running_limit", "share_out", "size", "slot_bytes", "speculative_scratch", 
           "state_slots", "two_pool_ratio", "unified_block"]
