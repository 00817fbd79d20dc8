"""What do the records say of an alert? The same in every store."""

from holdfast.model.people import Alert
from holdfast.records.body import act_body

BY = "holdfast"


def raised_body(alert: Alert) -> str:
    return act_body(
        alert.at,
        "alert",
        BY,
        alert=alert.id,
        kind=alert.kind,
        subject=alert.subject,
        text=alert.text,
        facts=dict(alert.facts),
    )


def ended_body(alert: Alert, now: float) -> str:
    return act_body(now, "alert_ended", BY, alert=alert.id, kind=alert.kind, subject=alert.subject)
