"""Do the figures in use match the specification?"""

import pytest

from holdfast.model import defaults
from holdfast.model.vocabulary import TimeoutClass
from tests.requirements import requirement

SPECIFIED = {
    "interactive_s": 0.5,
    "standard_s": 5,
    "long_running_s": 5 * 60,
    "breaker_failures": 5,
    "breaker_open_s": 30,
    "breaker_trials": 1,
    "retries": 3,
    "retry_base_s": 0.2,
    "retry_cap_s": 10,
    "retry_jitter": 0.25,
    "connect_s": 5,
    "stdio_read_s": 30,
    "probes_to_unavailable": 3,
    "liveness_s": 30,
    "discovery_ttl_s": 5 * 60,
    "grant_s": 3600,
    "grant_refresh_s": 60,
    "approval_s": 10 * 60,
    "escalation_share": 0.5,
    "dedup_floor_s": 3600,
    "dedup_floor_async_s": 24 * 3600,
    "lease_deadlines": 3,
    "lease_min_s": 15,
    "duplicate_wait_s": 2,
    "health_window_s": 15 * 60,
    "latency_alert": 2,
    "error_alert": 0.05,
    "timeout_alert": 0.02,
    "backlog_alert": 20,
    "backlog_alert_s": 10 * 60,
    "selection_k": 10,
    "min_trust": 0.5,
    "generation_reserve": 4096,
    "repair_attempts": 3,
    "mails_per_recipient_hour": 3,
    "messages_per_channel_hour": 10,
    "gui_settle_s": 5,
    "gui_history": 2048,
    "usage_report_s": 7 * 24 * 3600,
    "removal_quiet_s": 24 * 3600,
    "trust_threshold": 50,
}


@requirement("FIG-1")
@pytest.mark.parametrize("name", SPECIFIED)
def test_a_figure_of_the_specification_is_in_the_table(name: str) -> None:
    assert {figure.name: figure.value for figure in defaults.FIGURES}[name] == SPECIFIED[name]


@requirement("FIG-1")
def test_every_figure_is_named_once_and_says_why() -> None:
    names = [figure.name for figure in defaults.FIGURES]
    assert len(names) == len(set(names))
    for figure in defaults.FIGURES:
        assert getattr(defaults, figure.name.upper()) == figure.value
        assert figure.unit
        assert len(figure.why) > 10


@requirement("FIG-1", "IDM-6")
@pytest.mark.parametrize(
    ("timeout_class", "seconds"),
    [
        (TimeoutClass.INTERACTIVE, 3600),
        (TimeoutClass.STANDARD, 3600),
        (TimeoutClass.LONG_RUNNING, 3600),
        (TimeoutClass.ASYNC, 2 * 24 * 3600),
    ],
)
def test_a_key_is_remembered_twice_its_timeout_and_at_least_the_floor(
    timeout_class: TimeoutClass, seconds: float
) -> None:
    assert defaults.dedup_window(timeout_class) == seconds


def test_every_timeout_class_has_its_seconds() -> None:
    assert set(defaults.TIMEOUT_S) == set(TimeoutClass)


@requirement("FIG-1")
@pytest.mark.parametrize(("deadline", "seconds"), [(0.5, 15), (5, 15), (5.1, 15.3), (300, 900)])
def test_a_lease_is_three_deadlines_and_at_least_fifteen_seconds(deadline: float, seconds: float) -> None:
    assert defaults.lease(deadline) == pytest.approx(seconds)
