"""What do rules that stand, and plans, look like as JSON Schema?"""

from holdfast.model.constraint import WORDS
from holdfast.servers.schemas import COUNT, COUNTS, FLAG, FREE, TEXT, TIME, Schema, many, or_null, record, ref

_WORDS: dict[str, Schema] = {word: {"description": how.expected} for word, how in WORDS.items()}
CONSTRAINT: Schema = {
    "type": "object",
    "properties": _WORDS,
    "minProperties": 1,
    "additionalProperties": False,
    "description": "What an argument may be; all of it must hold.",
}
CONSTRAINTS: Schema = {"type": "object", "additionalProperties": ref("Constraint")}
SAYS: Schema = {"type": "object", "additionalProperties": TEXT, "description": "the constraints in words"}
NUMBER: Schema = {"type": "number"}
PROOF = record({"approved": many(TEXT), "denied": many(TEXT), "unanswered": many(TEXT)})

STANDING: dict[str, Schema] = {
    "Constraint": CONSTRAINT,
    "RuleWish": record(
        {"tool": TEXT, "principals": {**TEXT, "description": "user/agent, '*' for any of them"}},
        {
            "arguments": {**CONSTRAINTS, "description": "an argument left out may not be given"},
            "need": {**COUNTS, "description": "whose approval it stands for"},
            "life_s": NUMBER,
            "most": {"type": "integer", "minimum": 1},
            "note": TEXT,
        },
        "A rule that is to stand.",
    ),
    "Rule": record(
        {
            "id": TEXT,
            "state": {
                "type": "string",
                "enum": ["proposed", "denied", "live", "used up", "expired", "revoked"],
            },
            "tool": TEXT,
            "principals": TEXT,
            "arguments": CONSTRAINTS,
            "says": SAYS,
            "need": COUNTS,
            "approval_id": TEXT,
            "accepted_by": many(TEXT),
            "made_by": TEXT,
            "note": TEXT,
            "made_at": TIME,
            "expires_at": TIME,
            "most": or_null(COUNT),
            "used": COUNT,
            "contract_digest": TEXT,
        },
        {"ended_by": TEXT},
        "An approval that stands for a while.",
    ),
    "Rules": record({"rules": many(ref("Rule"))}),
    "Acceptance": record({}, {"note": TEXT}),
    "RuleProposals": record(
        {
            "proposals": many(
                record(
                    {
                        "tool": TEXT,
                        "principals": TEXT,
                        "arguments": CONSTRAINTS,
                        "says": SAYS,
                        "need": COUNTS,
                        "most": COUNT,
                        "proof": {**PROOF, "description": "questions it would have answered, by name"},
                    }
                )
            ),
            "fatigue": record(
                {
                    "asked": COUNT,
                    "answered": COUNT,
                    "approved": COUNT,
                    "asks_per_person_and_day": NUMBER,
                    "median_answer_s": or_null(NUMBER),
                    "approved_without_note": or_null(NUMBER),
                    "answered_quickly": or_null(NUMBER),
                }
            ),
        },
        about="What past answers suggest.",
    ),
    "PlanWish": record(
        {
            "steps": many(
                record(
                    {
                        "tool": TEXT,
                        "arguments": {
                            **FREE,
                            "description": 'a value not known yet: {"$any": constraint, "like": value}',
                        },
                    },
                    {"version": TEXT},
                )
            )
        },
        {"task": TEXT, "cost": {**NUMBER, "description": "what all steps may cost at most"}},
        "Calls that are to be approved as a whole.",
    ),
    "Planned": record(
        {
            "status": {"type": "string", "enum": ["asked", "unneeded", "refused"]},
            "message": TEXT,
            "steps": many(
                record(
                    {"number": COUNT, "tool": TEXT, "need": COUNTS},
                    {
                        "rule": {**TEXT, "description": "the rule that stands for it"},
                        "code": ref("Code"),
                        "message": TEXT,
                        "field_errors": many(ref("FieldError")),
                    },
                )
            ),
        },
        {"plan": TEXT, "expires_at": TIME, "approval": ref("ApprovalRef")},
        "What came of a plan.",
    ),
    "Plan": record(
        {
            "id": TEXT,
            "state": {
                "type": "string",
                "enum": ["proposed", "denied", "live", "used up", "expired", "revoked"],
            },
            "principal": TEXT,
            "need": COUNTS,
            "approval_id": TEXT,
            "accepted_by": many(TEXT),
            "made_at": TIME,
            "expires_at": TIME,
            "steps": many(
                record(
                    {"number": COUNT, "tool": TEXT, "contract_digest": TEXT, "used": FLAG},
                    {"call_id": TEXT, "says": SAYS},
                )
            ),
        },
        {"ended_by": TEXT},
        "Calls approved as a whole.",
    ),
    "Plans": record({"plans": many(ref("Plan"))}),
}
