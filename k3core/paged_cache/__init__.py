"""One pool of pages for two kinds of cache: attention rows per token, and one recurrent state per request."""

from .blocks import NULL, BlockPool, PoolExhausted
from .pages import PageStorage, RowPage, StatePage
from .relayout import Move, apply_moves, relayout
from .tables import PageTables
