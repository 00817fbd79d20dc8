"""What does a failure prove about the effect?

IDM-5: nothing happened if nothing was sent, if HTTP says 4xx (but 408, 409, 425 and 429), or if JSON-RPC says
-32601 or -32602. Everything else leaves it open.

    Unsent        nothing was written                         no effect
    Refused       a JSON-RPC error came back                  no effect for two codes, or under such a status
    Rejected      an HTTP status and nothing to go with it    no effect for most of 4xx
    Lost          it was written, and no answer came          unknown
    Garbage       what came back is no answer                 unknown
    Mismatch      no version of the protocol in common        no effect: it never got further
    Unallowed     the egress rules say no                     no effect, and none if it is tried again
"""

from typing import Any

from holdfast.model.errors import Code, NoEffect

METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
UNSUPPORTED_VERSION = -32022

UNDECIDED = frozenset({408, 409, 425, 429})
"""Client errors after which the server may have acted, or may yet."""

_TO_CODE = {
    401: Code.PERMISSION_DENIED,
    403: Code.PERMISSION_DENIED,
    404: Code.TOOL_UNAVAILABLE,
    405: Code.TOOL_UNAVAILABLE,
    410: Code.TOOL_UNAVAILABLE,
    413: Code.OUT_OF_BOUNDS,
}


class Unsent(Exception):
    """Nothing was written."""


class Unallowed(Unsent):
    """The egress rules do not let the gateway connect there."""


class Mismatch(Unsent):
    """The two sides have no version of the protocol in common."""


class Lost(ConnectionError):
    """The request was written and its answer will not come."""


class Garbage(Exception):
    """What came back is not an answer."""


class Refused(Exception):
    """The server answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None, status: int | None = None) -> None:
        super().__init__(f"the server answered with error {code}: {message}")
        self.code, self.message, self.data, self.status = code, message, data, status


class Rejected(ConnectionError):
    """The server answered with an HTTP status and no JSON-RPC error."""

    def __init__(self, status: int, said: str = "", retry_after_ms: int | None = None) -> None:
        super().__init__(f"the server answered with HTTP status {status}{said}")
        self.status, self.retry_after_ms = status, retry_after_ms


def final(status: int | None) -> bool:
    """Whether a status proves that nothing happened."""
    return status is not None and 300 <= status < 500 and status not in UNDECIDED


def judged(upstream: str, error: Exception) -> Exception:
    """The error as the life of a call wants it: `NoEffect` where nothing happened, else as it is."""
    said = f"upstream {upstream!r}: {error}"
    native = _as_it_came(error) if isinstance(error, Refused) else None
    match error:
        case Mismatch():
            return NoEffect(said, Code.VERSION_INCOMPATIBLE)
        case Unallowed():
            return NoEffect(f"{said}; nothing was sent", Code.POLICY_VIOLATION)
        case Unsent():
            return NoEffect(f"{said}; nothing was sent", Code.DEPENDENCY_UNAVAILABLE)
        case Refused(code=code) if code == INVALID_PARAMS:
            return NoEffect(said, Code.SEMANTIC_INVALIDITY, native)
        case Refused(code=code) if code == METHOD_NOT_FOUND:
            return NoEffect(said, Code.TOOL_UNAVAILABLE, native)
        case Refused(status=status) | Rejected(status=status) if final(status):
            return NoEffect(said, _TO_CODE.get(status or 0, Code.SEMANTIC_INVALIDITY), native)
    return error


def _as_it_came(error: Refused) -> dict[str, Any]:
    told = {"code": error.code, "message": error.message, "data": error.data}
    return {"error": {name: value for name, value in told.items() if value is not None}}
