"""How is a refusal told where MCP has no result for it?

A tool's refusal is a result with `isError`. Lists, resources, prompts and completion have no such thing:
there it is an error of the protocol. MCP keeps -32020 and below for itself, so what the code table puts there
travels as -32603, and `data` says which code it really is.
"""

from collections.abc import Mapping
from typing import Any

from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from holdfast.model.errors import (
    TABLE,
    AdmissionError,
    Code,
    ConfigError,
    HoldfastError,
    NotFound,
    StoreError,
)
from holdfast.model.observation import Observation
from holdfast.servers.guard import BROKEN, incident

INVALID_PARAMS = -32602
METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603
MISSING_CAPABILITY = -32021
LEGACY_NOT_FOUND = -32002
"""What clients before 2026-07-28 expect for a resource that is not there; later ones expect -32602."""
_KEPT = range(-32099, -32019)


def wrong(message: str, data: Any = None) -> MCPError:
    """The request cannot be used as it is."""
    return MCPError(INVALID_PARAMS, message, data)


def no_resource(uri: str, *, modern: bool) -> MCPError:
    code = INVALID_PARAMS if modern else LEGACY_NOT_FOUND
    return MCPError(code, f"there is no resource '{uri[:200]}' here, or it is not yours", {"uri": uri[:2000]})


def code_of(code: Code) -> int:
    number = TABLE[code].jsonrpc
    if code is Code.TOOL_NOT_FOUND:  # the method exists; what it names does not
        return INVALID_PARAMS
    return INTERNAL_ERROR if number in _KEPT else number


def refused(observation: Observation, text: str, brief: dict[str, Any]) -> MCPError:
    code = observation.code or Code.INTERNAL
    return MCPError(code_of(code), text, {"code": code.value, "holdfast/observation": brief})


def lacks_capability(native: Mapping[str, Any] | None) -> MCPError | None:
    """An upstream wants its client to declare more: only the client can do something about it."""
    error = None if native is None else native.get("error")
    if error is None or not isinstance(error, Mapping) or error.get("code") != MISSING_CAPABILITY:
        return None
    return MCPError(MISSING_CAPABILITY, str(error.get("message", "")), error.get("data"))


def told(error: Exception, method: str) -> Exception:
    """What the client may know of an error; whatever broke inside is a number to it."""
    match error:
        case MCPError() | ValidationError():
            return error
        case NotFound():
            return wrong(str(error))
        case StoreError():
            return _broken("the store is not available; try again later", method, error)
        case HoldfastError() if not isinstance(error, ConfigError | AdmissionError):
            return MCPError(INTERNAL_ERROR, str(error))
        case _:
            return _broken(f"{BROKEN}; give the operator the incident number", method, error)


def _broken(text: str, method: str, error: Exception) -> MCPError:
    return MCPError(INTERNAL_ERROR, text, {"incident": incident(error, f"/mcp {method}")})
