"""How many bytes, which block size, how many requests: the arithmetic of a hybrid model's cache."""

from .bytes import (ELEMENT_BYTES, KV_DTYPES, RECOVER_RECORD, REPLAY_RECORD, STATE_DTYPES, attention_row_bytes,
                    conv_state_bytes, latent_row_bytes, record_bytes, recurrent_state_bytes)

__all__ = ["ELEMENT_BYTES", "KV_DTYPES", "RECOVER_RECORD", "REPLAY_RECORD", "STATE_DTYPES", "attention_row_bytes",
           "conv_state_bytes", "latent_row_bytes", "record_bytes", "recurrent_state_bytes"]
