"""Two decoder states compared to the bit, whatever stands in for their memories."""

import numpy as np


def assert_same_state(mine, reference):
    """As many tokens read, and the same bits in every array."""
    assert mine.length == reference.length
    for ours, theirs in zip(mine.arrays(), reference.arrays(), strict=True):
        np.testing.assert_array_equal(ours, theirs, strict=True)
