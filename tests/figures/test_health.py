"""Is the score what S1 says it is, and does it blame a tool only for what the tool did?"""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model import defaults
from holdfast.model.contract import Affordance, Contract, Identity, Runtime, Sla, Transactional
from holdfast.model.errors import Code
from holdfast.model.signs import Latency
from holdfast.model.view import Traffic, bucket_of, middle_of
from holdfast.model.vocabulary import Effect, TimeoutClass
from holdfast.telemetry.health import FAULTS, Health, latency_term, of_tools, of_upstreams, score
from tests.requirements import requirement

SHARE = st.floats(min_value=0, max_value=1)
ANY_NUMBER = st.floats(allow_nan=False)


def contract(sla_ms: int | None = None, kind: TimeoutClass = TimeoutClass.STANDARD) -> Contract:
    sla = None if sla_ms is None else Sla(p99_ms=sla_ms)
    return Contract(
        identity=Identity(namespace="shop", name="find", version="1.0.0"),
        affordance=Affordance(description="finds", input_schema={"type": "object"}),
        runtime=Runtime(timeout_class=kind, sla=sla),
        transactional=Transactional(effect=Effect.READ_ONLY),
    )


def row(
    calls: int, status: str = "done", code: str = "", ms: float = 10.0, tool: str = "shop.find"
) -> Traffic:
    return Traffic(0, tool, status, code, bucket_of(ms), calls)


def found(*rows: Traffic, before: Sequence[Latency] = (), of: Contract | None = None) -> Health:
    return of_tools(rows, before, {"shop.find": of or contract()})["shop.find"]


@requirement("TEL-4")
@pytest.mark.parametrize(
    ("error", "latency", "timeout", "health"),
    [
        (0, 0, 0, 1.0),
        (1, 0, 0, 0.5),
        (0, 1, 0, 0.7),
        (0, 0, 1, 0.8),
        (1, 1, 1, 0.0),
        (0.5, 0, 0, 0.75),
        (0.1, 0.5, 0.05, 0.79),
        (7, 7, 7, 0.0),
        (-1, -1, -1, 1.0),
    ],
)
def test_the_score_weighs_errors_latency_and_timeouts(
    error: float, latency: float, timeout: float, health: float
) -> None:
    assert score(error, latency, timeout) == pytest.approx(health)


@requirement("TEL-4")
@given(ANY_NUMBER, ANY_NUMBER, ANY_NUMBER)
def test_the_score_stays_between_0_and_1(error: float, latency: float, timeout: float) -> None:
    assert 0 <= score(error, latency, timeout) <= 1


@requirement("TEL-4")
@given(SHARE, SHARE, SHARE, st.tuples(SHARE, SHARE, SHARE))
def test_nothing_that_gets_worse_makes_the_score_better(
    error: float, latency: float, timeout: float, more: tuple[float, float, float]
) -> None:
    worse = score(error + more[0], latency + more[1], timeout + more[2])
    assert worse <= score(error, latency, timeout) + 1e-9


@requirement("TEL-4")
@given(st.integers(0, 500), st.integers(0, 500), st.integers(0, 500))
def test_a_tool_that_fails_more_often_is_not_better_for_it(good: int, failed: int, more: int) -> None:
    def health(failures: int) -> float:
        rows = [row(good + 1), row(failures, "failed", Code.INTERNAL)]
        return found(*[one for one in rows if one.calls]).score

    assert health(failed + more) <= health(failed) + 1e-9


@requirement("TEL-4")
@pytest.mark.parametrize(
    ("p99", "baseline", "limit", "term"),
    [
        (100, 100, 5000, 0.0),
        (50, 100, 5000, 0.0),
        (150, 100, 5000, 0.5),
        (200, 100, 5000, 1.0),
        (900, 100, 5000, 1.0),
        (500, None, 5000, 0.1),
        (5000, None, 5000, 1.0),
        (500, None, None, 0.0),
        (None, 100, 5000, 0.0),
    ],
)
def test_latency_counts_from_its_baseline_to_twice_that(
    p99: float | None, baseline: float | None, limit: float | None, term: float
) -> None:
    assert latency_term(p99, baseline, limit) == pytest.approx(term)


@requirement("TEL-4")
@pytest.mark.parametrize("code", list(Code))
def test_only_what_a_tool_did_itself_counts_against_it(code: Code) -> None:
    own = {
        *(Code.TOOL_UNAVAILABLE, Code.TOOL_QUARANTINED, Code.DEPENDENCY_UNAVAILABLE, Code.INTERNAL),
        *(Code.TIMEOUT, Code.OUTCOME_UNKNOWN, Code.OUTPUT_INVALID, Code.EFFECT_MISMATCH),
        *(Code.COMPENSATION_REQUIRED, Code.COMPENSATION_FAILED, Code.RESOURCE_EXHAUSTED),
    }
    assert (code in FAULTS) == (code in own)
    assert found(row(9), row(1, "failed", code)).errors == (code in own)


@requirement("TEL-4")
@pytest.mark.parametrize("status", ["refused", "held", "preview", "replayed", "running"])
def test_what_never_reached_the_tool_says_nothing_about_it(status: str) -> None:
    health = found(row(10), row(90, status, Code.DEPENDENCY_UNAVAILABLE, ms=9_000))
    assert (health.calls, health.errors) == (10, 0)
    assert health.score > 0.99
    assert of_tools([row(5, status)], (), {}) == {}


@requirement("TEL-4")
def test_a_timeout_is_an_error_as_well_and_so_is_a_write_stopped_at_its_deadline() -> None:
    health = found(
        row(90),
        row(4, "failed", Code.TIMEOUT, ms=5_000),
        row(3, "unknown", Code.OUTCOME_UNKNOWN, ms=5_200),
        row(3, "unknown", Code.OUTCOME_UNKNOWN, ms=20),
    )
    assert (health.calls, health.errors, health.timeouts) == (100, 10, 7)


@requirement("TEL-4")
def test_the_baseline_is_what_was_usual_and_else_what_is_promised() -> None:
    usual = [Latency("shop.find", bucket_of(10), defaults.LEAST_LATENCIES)]
    few = [Latency("shop.find", bucket_of(10), defaults.LEAST_LATENCIES - 1)]
    slow = row(200, ms=100)
    assert found(slow, before=usual, of=contract(sla_ms=90)).baseline_ms == middle_of(bucket_of(10))
    assert found(slow, before=usual).latency == 1.0
    assert found(slow, before=few, of=contract(sla_ms=90)).baseline_ms == 90
    assert found(slow, before=few).baseline_ms is None
    assert found(slow, before=few).latency == pytest.approx(found(slow).p99_ms / 5000)  # type: ignore[operator]


@requirement("TEL-4")
def test_an_upstream_is_as_well_as_its_tools_together() -> None:
    rows = [row(80), row(20, "failed", Code.INTERNAL, tool="shop.sell"), row(7, tool="mail.send")]
    both = of_upstreams(of_tools(rows, (), {}))
    assert (both["shop"].calls, both["shop"].errors) == (100, 20)
    assert both["shop"].score == pytest.approx(0.9)
    assert both["mail"].score == 1.0


@requirement("TEL-4")
def test_what_was_not_called_is_well() -> None:
    assert Health(subject="shop.find").score == 1.0
