"""What is said to a proposal that never became a call?"""

from holdfast.model.call import Call
from holdfast.model.errors import Code, remedy
from holdfast.model.fields import FieldError
from holdfast.model.observation import Observation, Status
from holdfast.ports import Ids


def unparsed(ids: Ids, message: str, errors: tuple[FieldError, ...], *, structural: bool) -> Observation:
    """A body that is no proposal."""
    code = Code.STRUCTURAL_VIOLATION if structural else Code.SYNTACTIC_PARSE_FAIL
    return Observation(
        call_id=ids.call(),
        tool="",
        status=Status.REFUSED,
        code=code,
        message=message,
        field_errors=errors,
        remedy=remedy(code),
        trace_id=ids.trace(),
    )


def too_many(call: Call, wait_ms: int) -> Observation:
    return _refused(call, Code.RATE_LIMITED, f"too many proposals at once; wait {wait_ms} ms", wait_ms)


def closing(call: Call) -> Observation:
    return _refused(call, Code.TOOL_UNAVAILABLE, "the gateway is shutting down", 1_000)


def _refused(call: Call, code: Code, text: str, wait_ms: int) -> Observation:
    return Observation(
        call_id=call.id,
        tool=call.proposal.tool,
        status=Status.REFUSED,
        code=code,
        message=text,
        remedy=remedy(code, wait_ms or 1_000),
        trace_id=call.trace_id,
        key=call.proposal.key,
    )
