"""Four ways to share one memory between attention rows, which grow, and recurrent states, which do not.

One pool of equal blocks (vLLM, Kimi K3 report section 5.4.1), two static pools (SGLang), contiguous extents by first
fit (engines before paging), and one region grown from both ends with compaction (SGLang --enable-unified-memory).
Nothing is timed: an operation reports how many entries of its bookkeeping it touched and which bytes it moved.
"""

from .common import ROW_BLOCK, STEP_BYTES, Allocator, Extent, Geometry, Refused, Work
from .contiguous import FirstFit
from .paged import TwoPools, UnifiedPool
from .two_ends import TwoEnds
