"""How likely a chain is to come through is the likelihood of its parts."""

from itertools import product
from math import prod

from hypothesis import given
from hypothesis import strategies as st

from holdfast.chains.declared import Join, Parallel, Step
from holdfast.chains.estimate import Known, estimate, shares
from tests.requirements import requirement

CHANCES = st.lists(st.floats(0, 1), min_size=2, max_size=6)


def step(id: str, **said: object) -> Step:
    return Step(id=id, tool=id, **said)  # type: ignore[arg-type]


def beside(chances: list[float], join: Join) -> tuple[float, float]:
    tools = {f"t{n}": Known(float(n + 1), chance, "measured") for n, chance in enumerate(chances)}
    found = estimate([Parallel(branches=tuple((step(name),) for name in tools), join=join)], tools)
    return found.success, found.latency_ms


@requirement("CHN-1")
@given(CHANCES, st.floats(0.01, 1))
def test_a_quorum_is_as_likely_as_all_the_ways_to_reach_it(chances: list[float], share: float) -> None:
    needed = next(k for k in range(1, len(chances) + 1) if k >= share * len(chances) - 1e-9)
    every = sum(
        prod(chance if came else 1 - chance for chance, came in zip(chances, ways, strict=True))
        for ways in product((True, False), repeat=len(chances))
        if sum(ways) >= needed
    )
    success, latency = beside(chances, Join(kind="quorum", quorum=share))
    assert abs(success - every) < 1e-9
    assert latency == needed


@requirement("CHN-1")
@given(CHANCES)
def test_all_first_and_best_are_quorums_of_all_and_of_one(chances: list[float]) -> None:
    assert abs(beside(chances, Join())[0] - prod(chances)) < 1e-9
    one = 1 - prod(1 - chance for chance in chances)
    assert abs(beside(chances, Join(kind="first"))[0] - one) < 1e-9
    assert abs(beside(chances, Join(kind="best", score="1"))[0] - one) < 1e-9


@requirement("CHN-1")
def test_a_retry_and_a_stand_in_are_more_chances() -> None:
    tools = {"a": Known(10, 0.5, "measured"), "b": Known(10, 0.8, "measured")}
    assert estimate([step("a")], tools).success == 0.5
    assert estimate([step("a", retries=2)], tools).success == 1 - 0.5**3
    assert abs(estimate([step("a", fallbacks=("b",))], tools).success - 0.9) < 1e-12
    assert estimate([step("a", failure="continue")], tools).success == 1.0
    assert estimate([step("a"), step("b")], tools).success == 0.4


@requirement("CHN-2")
def test_the_deadline_is_divided_by_how_long_steps_take() -> None:
    tools = {"a": Known(100, 1, "measured"), "b": Known(300, 1, "measured"), "c": Known(50, 1, "measured")}
    assert shares([step("a"), step("b")], tools) == {"a": 0.25, "b": 0.75}
    told = shares([step("a"), step("b"), step("c", share=0.2)], tools)
    assert {name: round(share, 9) for name, share in told.items()} == {"a": 0.2, "b": 0.6, "c": 0.2}
