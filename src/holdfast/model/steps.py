"""What are the steps in the life of a call, and what does each of them ask?

The gates, in the order of `lifecycle.GATES`, then what comes after them. Records name steps by this order.
"""

from typing import NamedTuple


class Step(NamedTuple):
    name: str
    phase: str
    """S1's name for the part of a call's life it belongs to."""
    question: str


STEPS = (
    Step("resolve", "Request", "which tool, which version, under which key"),
    Step("authorize", "Authorize", "may this principal use it at all"),
    Step("arguments", "Validate", "are the arguments well-formed"),
    Step("semantics", "Validate", "do they make sense together"),
    Step("policy", "Authorize", "is this call allowed, and on what condition"),
    Step("replay", "Validate", "has this call already been answered"),
    Step("state", "Validate", "is the world still as the caller believes"),
    Step("limits", "Authorize", "is there budget and rate left"),
    Step("approval", "Authorize", "has a person said yes, where one must"),
    Step("claim", "Authorize", "is the right to act ours"),
    Step("execute", "Execute", "what does the tool do"),
    Step("verify", "Verify", "did it do what its contract says"),
)
ORDER = tuple(step.name for step in STEPS)
GATES = tuple(step for step in STEPS if step.phase not in ("Execute", "Verify"))
