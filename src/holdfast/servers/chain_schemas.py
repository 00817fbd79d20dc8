"""What do chains and their runs look like as JSON Schema?"""

from holdfast.model.run import RunState, StepState
from holdfast.model.vocabulary import Effect
from holdfast.servers.schemas import ANY, COUNT, FLAG, FREE, TEXT, Schema, many, or_null, record, ref, words

_PLACED = many(record({"place": TEXT, "text": TEXT}))
_REPORT: dict[str, Schema] = {
    "chain": TEXT,
    "version": TEXT,
    "ok": {**FLAG, "description": "whether you can run it"},
    "faults": _PLACED,
    "notes": _PLACED,
    "effect": words(Effect),
    "scopes": many(TEXT),
    "latency_ms": {"type": "number"},
    "success": {"type": "number", "description": "how often it comes through"},
    "steps": {**COUNT, "description": "on its longest way"},
}
_UNDOABLE: dict[str, Schema] = {"step": TEXT, "tool": TEXT, "undone_by": TEXT}
_RUN: dict[str, Schema] = {
    "id": TEXT,
    "chain": TEXT,
    "version": TEXT,
    "state": words(RunState),
    "waits_for": or_null(TEXT),
    "why": or_null(TEXT),
    "output": ANY,
    "started_by": TEXT,
    "key": TEXT,
    "call_id": or_null(TEXT),
    "trace_id": {**or_null(TEXT), "description": "the trace that its steps are in"},
    "rounds": {**COUNT, "description": "how often it was taken up"},
}

CHAINED: dict[str, Schema] = {
    "ChainReport": record(_REPORT, about="What a chain is, and what keeps you from running it."),
    "ChainReports": record({"chains": many(ref("ChainReport"))}),
    "Chain": record({**_REPORT, "declared": FREE}, about="A chain as it is declared."),
    "ChainInput": record({"input": FREE}, about="What a chain would be given."),
    "Run": record(_RUN, about="One run of a chain, as it stands."),
    "Runs": record({"runs": many(ref("Run"))}),
    "RunShown": record(
        {
            **_RUN,
            "steps": many(
                record(
                    {
                        "name": TEXT,
                        "state": words(StepState),
                        "tool": TEXT,
                        "call_id": TEXT,
                        "code": or_null(TEXT),
                    }
                )
            ),
            "choices": many(ref("OpenChoice")),
        },
        about="A run, and what became of its steps.",
    ),
    "RunWish": record(
        {"chain": TEXT, "input": FREE, "key": {**TEXT, "description": "started twice, it runs once"}},
        about="A run that is to begin.",
    ),
    "OpenChoice": record(
        {
            "step": TEXT,
            "cases": many(TEXT),
            "said": {**or_null(TEXT), "description": "the case that the tool named"},
            "confidence": or_null({"type": "number"}),
            "threshold": {"type": "number", "description": "so sure it had to be"},
            "call_id": TEXT,
        },
        about="A choice that a run leaves to a person.",
    ),
    "Choice": record({"step": TEXT, "case": TEXT}, about="Which way a run is to go."),
    "ChainProof": record(
        {
            "chain": TEXT,
            "ok": {**FLAG, "description": "whether all of it was shown"},
            "steps": many(
                record({**_UNDOABLE, "found": {"enum": ["shown", "refuted", "nothing"]}, "text": TEXT})
            ),
        },
        about="Whether the undoings of a saga undo.",
    ),
    "ChainAcceptance": record({"note": {**TEXT, "description": "why; it is on record"}}),
    "ChainAccepted": record({"chain": TEXT, "accepted": many(record(_UNDOABLE))}),
    "Abandonment": record({"note": TEXT}),
}
