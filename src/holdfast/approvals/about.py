"""How are people asked about something that is no call: a plan, an elevation, or a rule that is to stand?

With the same question as about a call. It names an operation that never runs, whose key is the name of what
is asked about.
"""

import math
from typing import Any

from holdfast.model.access import ELEVATION
from holdfast.model.call import Call, Decision, Principal, Proposal
from holdfast.model.canonical import digest
from holdfast.model.contract import Affordance, Contract, Identity, Transactional
from holdfast.model.standing import PLAN, RULE
from holdfast.model.tool import Tool
from holdfast.model.vocabulary import Effect
from holdfast.ports import Ports


def _tool(name: str, text: str) -> Tool:
    namespace, _, short = name.partition(".")
    return Tool.compile(
        Contract(
            identity=Identity(namespace=namespace, name=short, version="1.0.0", owner="holdfast"),
            affordance=Affordance(description=text, input_schema={"type": "object"}),
            transactional=Transactional(effect=Effect.READ_ONLY),
        )
    )


_TOOLS = {
    PLAN: _tool(PLAN, "Approve the calls of a plan as a whole."),
    ELEVATION: _tool(ELEVATION, "Approve that somebody holds a scope for a while."),
    RULE: _tool(RULE, "Approve calls of one kind for a while."),
}


def about(tool: str, name: str, asker: Principal, said: Any, ports: Ports, task: str | None = None) -> Call:
    """The operation that is asked about; `said` is all that people agree to."""
    call = Call(
        proposal=Proposal(tool=tool, arguments={}, principal=asker, key=name, task=task),
        id=ports.ids.call(),
        trace_id=ports.ids.trace(),
        nonce=ports.ids.nonce(),
        queued_at=ports.clock.now(),
        started=ports.clock.monotonic(),
        deadline=math.inf,
    )
    call.tool, call.upstream, call.key = _TOOLS[tool], "holdfast", name
    call.arguments, call.fingerprint = {}, digest(said)
    call.decision = Decision(id="", allow=True, version=ports.policy.version)
    return call
