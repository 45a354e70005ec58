"""Real bytes of the tab `page-table`: a page of rows and a page of state in one pool, read back as rows."""

import numpy as np

from k3core.bf16 import from_bf16, to_bf16
from k3core.paged_cache import BlockPool, PageStorage, PageTables, RowPage, StatePage

MLA, KDA = 0, 1  # the two groups of the miniature pool
SHOWN = 18, 36  # rows and columns of a page that the drawing shows
DTYPES = {"fp8": "uint8", "bf16": "uint16"}
LEVELS = (np.arange(-16, 17) / 16).astype(np.float32)  # of the rows' stripes: fp8 and bf16 hold them exactly


def read_back(model, layout, settings, wrong_table: bool, rng: np.random.Generator) -> dict:
    """Write one page of rows, striped so that the eye knows them again, and one of state; read the rows back.

    The pool is a miniature: one tensor, and of each page the share of one KDA head (page bytes grow with heads, so
    nothing else changes). wrong_table: attention looks the block up in the KDA group's table. Returns float32 values,
    `rows` as written and `read` as read [tokens, width] and `state` [dk, dv], and `blocks`, the block of each group.
    """
    kda = model.recurrent[0]
    width = model.attention[0].row_elements
    rows = RowPage(-(-layout.block_size * settings.tp // kda.heads), width, DTYPES[settings.kv_dtype])
    states = StatePage(1, kda.dk, kda.dv, 0, "float32")  # the convolution's window is left out
    storage, tables = PageStorage(1, 3, rows.nbytes), PageTables(BlockPool(3), 2)
    tables.allocate("a", [1, 1])
    table = tables.tables["a"]

    stripes = (np.arange(width)[None, :] + 3 * np.arange(rows.tokens)[:, None]) % len(LEVELS)
    state = random_state(kda.dk, kda.dv, rng)
    storage.write_rows(rows, 0, table[MLA], 0, encode(LEVELS, settings.kv_dtype)[stripes])
    states.view(storage.page(0, table[KDA][0]))[0][0] = state
    looked_up = table[KDA if wrong_table else MLA]
    read = decode(storage.rows(rows, 0, looked_up, rows.tokens), settings.kv_dtype)
    return {"rows": LEVELS[stripes], "read": read, "state": state, "blocks": [table[MLA][0], table[KDA][0]]}


def compare(written: np.ndarray, read: np.ndarray) -> dict:
    """How far off what was read is: values that differ, those that are not finite numbers, the largest difference."""
    finite = np.isfinite(read)
    return {"values": int(written.size), "different": int((read != written).sum()),
            "not_finite": int((~finite).sum()),
            "largest": float(np.abs(np.where(finite, read, written).astype(np.float64) - written).max())}


def random_state(dk: int, dv: int, rng: np.random.Generator) -> np.ndarray:
    """A state as a sum of outer products, without decay: no exponential, so the same bytes everywhere."""
    k, u = (rng.standard_normal((8, d)).astype(np.float32) for d in (dk, dv))
    return np.einsum("tk,tv->kv", k, u)


def e4m3_values() -> np.ndarray:
    """The float32 value of each of the 256 codes of fp8 e4m3 (no infinities; 0x7f and 0xff are NaN)."""
    codes = np.arange(256)
    exponent, mantissa = (codes >> 3) & 15, codes & 7
    size = np.where(exponent == 0, mantissa * 2.0**-9, (8 + mantissa) * 2.0 ** (exponent - 10.0))
    values = np.where(codes & 128, -size, size).astype(np.float32)
    values[[0x7F, 0xFF]] = np.nan
    return values


def encode(x: np.ndarray, dtype: str) -> np.ndarray:
    """Values as they are kept, uint8 or uint16; fp8 takes only values that it holds exactly. Raises ValueError."""
    if dtype == "bf16":
        return to_bf16(x)
    values = e4m3_values()
    order = np.argsort(values[:127], kind="stable")
    place = np.minimum(np.searchsorted(values[:127][order], np.abs(x)), 126)
    if not (values[:127][order][place] == np.abs(x)).all():
        raise ValueError("only values that fp8 e4m3 holds exactly can be written")
    return (order[place] | np.where(x < 0, 128, 0)).astype(np.uint8)


def decode(codes: np.ndarray, dtype: str) -> np.ndarray:
    """The float32 values of what is kept."""
    return from_bf16(codes) if dtype == "bf16" else e4m3_values()[codes]
