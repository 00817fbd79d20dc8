"""How is a refusal told where MCP has no result for it?

A tool's refusal is a result with `isError`. Lists, resources, prompts and completion have no such thing:
there it is an error of the protocol. MCP keeps -32020 and below for itself, so what the code table puts there
travels as -32603, and `data` says which code it really is.
"""

from typing import Any

from mcp.shared.exceptions import MCPError

from holdfast.model.errors import TABLE, Code
from holdfast.model.observation import Observation

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
