"""Does a cost grow with a size: not at all, with its logarithm, or with the size itself?"""

import math
from collections.abc import Sequence

FLAT = 0.15
"""Growth from the smallest to the largest that is no growth: noise of a shared machine."""
Point = tuple[int, float]


def order(points: Sequence[Point]) -> str:
    """Of costs at three sizes or more, smallest first."""
    (_, least), *between, (size, most) = points
    grown = most - least
    if grown <= FLAT * least:
        return "O(1)"
    middle, cost = between[-1]
    before = max(cost - least, FLAT / 10 * least)
    # From the middle on: a logarithm grows by the ratio of logarithms, a line by the ratio of sizes.
    steepness = math.log(grown / before) / math.log(size / middle)
    return "O(n)" if steepness > 0.5 else "O(log n)"
