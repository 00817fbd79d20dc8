"""Over ten thousand recorded calls, does the time machine equal asking again one by one?"""

import pytest

from tests.policy.compare import compared
from tests.requirements import requirement

pytestmark = pytest.mark.soak


@requirement("POL-8")
@pytest.mark.parametrize("seed", [1, 2])
async def test_over_ten_thousand_calls_it_equals_asking_again_one_by_one(seed: int) -> None:
    told = await compared(10_000, seed)
    assert told.decisions > 7_000
    assert set(told.changes) == {"allow->deny", "deny->allow", "approval"}
