"""Block pool: operations per second in batches, and whether a larger pool makes them slower."""

import time
from collections import deque

from k3core.paged_cache import BlockPool

SIZES = (1_000, 10_000, 100_000, 1_000_000)
BATCHES = (1, 16, 64)
OPERATIONS = 1_000_000


def operations_per_second(num_blocks: int, batch: int) -> float:
    """Blocks allocated, touched and freed per second, on a pool kept half full, half of it findable."""
    pool = BlockPool(num_blocks)
    live = deque(pool.allocate(batch) for _ in range(num_blocks // (2 * batch)))
    rounds = OPERATIONS // (4 * batch)
    start = time.perf_counter()
    for i in range(rounds):
        pool.free(live.popleft()[::-1])
        blocks = pool.allocate(batch)
        if i % 2:
            pool.register(blocks)
        pool.touch(blocks)
        pool.free(blocks)
        live.append(blocks)
    return 4 * batch * rounds / (time.perf_counter() - start)


def main() -> None:
    """Print a table: pool size by batch size, millions of block operations per second."""
    print("Block pool, million block operations per second (allocate, touch, free, free)")
    print(f"{'blocks':>10}" + "".join(f"{f'batch {batch}':>12}" for batch in BATCHES))
    for num_blocks in SIZES:
        speeds = (operations_per_second(num_blocks, batch) / 1e6 for batch in BATCHES)
        print(f"{num_blocks:>10,}" + "".join(f"{speed:>12.2f}" for speed in speeds))


if __name__ == "__main__":
    main()
