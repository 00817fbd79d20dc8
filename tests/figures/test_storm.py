"""How much can somebody make of one kind of alert?"""

from holdfast.gateway.alarms import Finding
from holdfast.gateway.alerts import MOST_ALIKE, bounded
from tests.requirements import requirement


def dear(task: str) -> Finding:
    return Finding("cost_anomaly", f"task:{task}", f"task '{task}' cost much; bound it", {})


@requirement("TEL-3")
def test_a_thousand_tasks_are_no_thousand_alerts() -> None:
    many = [dear(f"t-{number}") for number in range(1000)]
    slow = Finding("degraded", "test.find", "'test.find' fails; look at its upstream", {})
    found = bounded([*many, slow], ())
    assert len(found) == MOST_ALIKE + 1
    assert ("degraded", "test.find") in found


@requirement("TEL-3")
def test_no_alert_ends_because_others_came() -> None:
    first = bounded([dear(f"t-{number}") for number in range(500, 600)], ())
    later = bounded([dear(f"t-{number}") for number in range(1000)], first.keys())
    assert later.keys() == first.keys()
