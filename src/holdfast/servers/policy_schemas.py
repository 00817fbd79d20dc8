"""What do policies that are tried on past calls look like as JSON Schema?"""

from holdfast.policy.replay import Change, Left
from holdfast.servers.schemas import COUNT, COUNTS, FLAG, SECONDS, TEXT, TIME, Schema, many, record, ref

TRIED: dict[str, Schema] = {
    "Candidate": record(
        {},
        {
            "version": {**TEXT, "description": "of policies that were promoted once; or give `files`"},
            "name": TEXT,
            "description": TEXT,
            "files": {"type": "object", "additionalProperties": TEXT, "minProperties": 1},
            "since_s": SECONDS,
            "tool": {**TEXT, "description": "a pattern, such as `shop.*`"},
            "principal": {**TEXT, "description": "a pattern, such as `ana/*`"},
            "tenant": TEXT,
            "against": {"type": "string", "enum": ["then", "active"]},
            "examples": {"type": "integer", "minimum": 1},
            "accept": {**FLAG, "description": "record that it was looked at, for a promotion that asks"},
            "note": TEXT,
        },
        "Policies that are to be tried; nothing is put in force.",
    ),
    "Ruling": record(
        {"allow": FLAG, "version": TEXT},
        {
            "need": COUNTS,
            "redact": many(TEXT),
            "verify": many(TEXT),
            "policies": many(TEXT),
            "reasons": many(TEXT),
            "places": many(TEXT),
        },
    ),
    "Flip": record(
        {"call_id": TEXT, "at": TIME, "before": ref("Ruling"), "after": ref("Ruling")},
        {"decision_id": TEXT, "code": TEXT, "limits": TEXT},
    ),
    "Flips": record(
        {
            "tool": TEXT,
            "principal": TEXT,
            "change": {"type": "string", "enum": [change.value for change in Change]},
            "count": COUNT,
            "stopped_by_limits": COUNT,
            "examples": many(ref("Flip")),
        }
    ),
    "Diff": record(
        {
            "version": TEXT,
            "against": {**TEXT, "description": "`then`, or the version in force"},
            "since": TIME,
            "until": TIME,
            "decisions": COUNT,
            "flips": COUNT,
            "groups": many(ref("Flips")),
            "not_judged": many(
                record(
                    {
                        "reason": {"type": "string", "enum": [why.value for why in Left]},
                        "tool": TEXT,
                        "count": COUNT,
                    }
                )
            ),
            "accepted": FLAG,
        }
    ),
}
