"""What do channels look like as JSON Schema?"""

from holdfast.servers.schemas import COUNT, TEXT, TIME, Schema, many, or_null, record, ref

CHANNELS: dict[str, Schema] = {
    "Channel": record(
        {
            "name": TEXT,
            "kind": {"type": "string", "enum": ["webhook", "mail"]},
            "events": many(TEXT),
            "roles": {**many(TEXT), "description": "empty: questions to any role"},
            "sent": COUNT,
            "waiting": COUNT,
            "failed": {**COUNT, "description": "given up; kept for a week"},
            "last_sent_at": or_null(TIME),
            "said": {**TEXT, "description": "what went wrong last, of what is not out"},
        },
        about="How people are told.",
    ),
    "Channels": record({"channels": many(ref("Channel"))}),
}
