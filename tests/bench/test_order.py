"""How is growth told from noise?"""

import pytest

from bench.order import order


@pytest.mark.parametrize(
    ("costs", "expected"),
    [
        ((100.0, 101.0, 99.0), "O(1)"),
        ((100.0, 112.0, 114.0), "O(1)"),
        ((100.0, 150.0, 166.0), "O(log n)"),
        ((100.0, 104.0, 140.0), "O(n)"),
        ((100.0, 100.0, 300.0), "O(n)"),
        ((300.0, 200.0, 100.0), "O(1)"),
    ],
)
def test_the_order_of_a_growth_is_concluded_from_three_sizes(
    costs: tuple[float, float, float], expected: str
) -> None:
    assert order(list(zip((10, 1_000, 10_000), costs, strict=True))) == expected
