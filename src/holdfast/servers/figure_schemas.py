"""What do health, alerts and costs look like as JSON Schema?"""

from holdfast.gateway.alarms import KINDS
from holdfast.gateway.costs import GROUPS
from holdfast.model.costs import OF_TASKS, PARTS
from holdfast.servers.schemas import COUNT, FREE, TEXT, TIME, Schema, many, or_null, record, ref

NUMBER: Schema = {"type": "number"}
MONEY: Schema = {"type": "number", "minimum": 0}

FIGURES: dict[str, Schema] = {
    "ToolHealth": record(
        {
            "name": TEXT,
            "health": {"type": "number", "minimum": 0, "maximum": 1},
            "calls": COUNT,
            "errors": COUNT,
            "timeouts": COUNT,
            "p99_ms": or_null(NUMBER),
            "baseline_ms": or_null(NUMBER),
        },
        about="1 - (0.5 error + 0.3 latency + 0.2 timeout), over the window.",
    ),
    "Healths": record(
        {"window_s": NUMBER, "tools": many(ref("ToolHealth")), "upstreams": many(ref("ToolHealth"))}
    ),
    "Alert": record(
        {
            "id": TEXT,
            "kind": {"type": "string", "enum": list(KINDS)},
            "subject": {**TEXT, "description": "a tool, a role, a caller and tool, what costs, or a run"},
            "text": {**TEXT, "description": "what is wrong, and what to do"},
            "facts": {**FREE, "description": "the figures it rests on, as when it was last true"},
            "at": TIME,
            "seen_at": TIME,
            "ended_at": or_null(TIME),
        },
        about="Something is not as it should be, or was.",
    ),
    "Alerts": record({"alerts": many(ref("Alert"))}),
    "CostSum": record(
        {
            "name": TEXT,
            "currency": TEXT,
            "calls": COUNT,
            "amount": MONEY,
            "parts": {
                "type": "object",
                "propertyNames": {"enum": [*PARTS, *OF_TASKS]},
                "additionalProperties": MONEY,
            },
        }
    ),
    "Costs": record(
        {
            "by": {"type": "string", "enum": list(GROUPS)},
            "since": TIME,
            "costs": many(ref("CostSum")),
        }
    ),
    "CostReport": record(
        {"task": TEXT, "part": {"type": "string", "enum": list(OF_TASKS)}, "amount": MONEY},
        {"currency": {**TEXT, "default": "USD"}},
        "What a task cost beside its calls.",
    ),
}
