"""How many bytes, which block size, how many requests: the arithmetic of a hybrid model's cache.

size(model, settings) answers everything at once, with its derivation; the parts can be called alone.
"""

from .answer import size
from .bytes import (
    ELEMENT_BYTES,
    KV_DTYPES,
    RECOVER_RECORD,
    REPLAY_RECORD,
    STATE_DTYPES,
    attention_row_bytes,
    compressed_row_bytes,
    conv_state_bytes,
    index_row_bytes,
    latent_row_bytes,
    record_bytes,
    recurrent_state_bytes,
)
from .capacity import mapping_efficiency, reported_tokens, reported_tokens_before
from .groups import Group, blocks_per_request, choose_group_size, share_out, state_slots
from .layout import Layout, make_layout, slot_bytes, unified_block
from .log import log_lines
from .pools import STATE_SLOTS, running_limit, speculative_scratch, two_pool_ratio
from .settings import GROUPINGS, LARGEST, MODES, Settings, resolve
