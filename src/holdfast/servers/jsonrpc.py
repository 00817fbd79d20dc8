"""How do applications call tools over JSON-RPC 2.0?

A call that went through, or waits for a person, is a result; one that was refused, failed or is uncertain
is an error whose `data` is the observation. A batch runs in its order, one request after the other, so that
a client may put a read after the write it depends on.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import orjson
from starlette.responses import Response

from holdfast.model.errors import TABLE, Code, NotFound
from holdfast.model.observation import Observation, Status
from holdfast.model.strict_json import ParseError
from holdfast.servers.answers import ALWAYS, Unacceptable, answer
from holdfast.servers.guard import BROKEN, incident
from holdfast.servers.headers import SAME_AS, said
from holdfast.servers.listing import page
from holdfast.servers.members import FOUND_CALL, faults
from holdfast.servers.rest import known_call
from holdfast.servers.visit import Visit

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
NOT_FOUND: Final = -32001
"""No such call, or not yours. The codes of refused calls are in the code table, from -32010 down."""

LARGEST_BATCH = 50
"""A batch answers when its last request is done: more than this keeps a client waiting too long."""

GOOD = {Status.DONE, Status.PARTIAL, Status.PREVIEW, Status.HELD}


class RpcError(Exception):
    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


async def rpc(visit: Visit) -> Response:
    """POST /rpc"""
    try:
        body = await visit.json()
    except ParseError as error:
        unread = visit.unparsed(error)
        visit.gateway.unproposed(visit.principal, unread)
        return answer(failed(None, observed_error(unread)))
    reply: Any
    if not isinstance(body, list):
        reply = await _reply(visit, body)
    elif fault := _batch_fault(visit, body):
        reply = failed(None, fault)
    else:
        reply = [said for request in body if (said := await _reply(visit, request)) is not None] or None
    # Notifications have no answer, and HTTP says so without a body.
    return Response(status_code=204, headers=ALWAYS) if reply is None else answer(reply)


def _batch_fault(visit: Visit, batch: list[Any]) -> RpcError | None:
    if not batch:
        return RpcError(INVALID_REQUEST, "a batch holds at least one request")
    if len(batch) > LARGEST_BATCH:
        return RpcError(INVALID_REQUEST, f"a batch holds at most {LARGEST_BATCH} requests; send several")
    spoken = said(visit.request.headers)
    if named := [name for name, member in SAME_AS.items() if member in spoken and member != "session"]:
        return RpcError(
            INVALID_REQUEST, f"header '{named[0]}' is unclear for a batch; use params of each request"
        )
    return None


async def _reply(visit: Visit, request: Any) -> dict[str, Any] | None:
    """The response to one request; None to a notification."""
    if fault := _request_fault(request):
        return failed(_known_id(request), fault)
    try:
        reply = succeeded(
            request.get("id"), await _dispatch(visit, request["method"], request.get("params", {}))
        )
    except RpcError as error:
        reply = failed(request.get("id"), error)
    return reply if "id" in request else None


def _request_fault(request: Any) -> RpcError | None:
    if not isinstance(request, dict):
        return RpcError(INVALID_REQUEST, "a request is a JSON object")
    if request.get("jsonrpc") != "2.0":
        return RpcError(INVALID_REQUEST, "member 'jsonrpc' must be '2.0'")
    if not isinstance(request.get("method"), str):
        return RpcError(INVALID_REQUEST, "member 'method' must be a string")
    if not is_id(request.get("id")):
        return RpcError(INVALID_REQUEST, "member 'id' must be a string, a number or null")
    if not isinstance(request.get("params", {}), dict | list):
        return RpcError(INVALID_REQUEST, "member 'params' must be an object")
    if unknown := sorted(request.keys() - {"jsonrpc", "method", "params", "id"}):
        # Left unsaid, a key put beside `params` instead of into it would be lost.
        return RpcError(INVALID_REQUEST, f"unknown member '{unknown[0][:64]}'; put it into 'params'")
    return None


async def _dispatch(visit: Visit, method: str, params: Any) -> Any:
    handler = METHODS.get(method)
    if handler is None:
        known = ", ".join(f"'{name}'" for name in METHODS)
        raise RpcError(METHOD_NOT_FOUND, f"no method '{method[:64]}'; there are {known}")
    if not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "params are given by name, as an object")
    try:
        return await handler(visit, params)
    except Unacceptable as error:
        raise observed_error(error.observation) from None
    except RpcError:
        raise
    except Exception as error:  # the rest of a batch keeps its answers
        raise broken(error, method) from None


def broken(error: Exception, method: str) -> RpcError:
    """What the caller may know of something that is no observation."""
    if isinstance(error, NotFound):
        return RpcError(NOT_FOUND, str(error), {"next": "check the id, and that it is yours"})
    told = {"incident": incident(error, f"/rpc {method}"), "next": "give the operator the incident number"}
    return RpcError(INTERNAL_ERROR, BROKEN, told)


async def tools_list(visit: Visit, params: dict[str, Any]) -> Any:
    return page(visit, params)


async def tools_call(visit: Visit, params: dict[str, Any]) -> Any:
    with visit.proposing():
        visit.refuse(visit.check_call(params))
    observation = await visit.call(params)
    if observation.status in GOOD:
        return _verbatim(observation)
    raise observed_error(observation)


async def calls_get(visit: Visit, params: dict[str, Any]) -> Any:
    """The look-up succeeds whatever became of the call."""
    visit.refuse(faults(params, FOUND_CALL))
    return _verbatim(await known_call(visit, params["call_id"]))


METHODS: Mapping[str, Callable[[Visit, dict[str, Any]], Awaitable[Any]]] = {
    "tools.list": tools_list,
    "tools.call": tools_call,
    "calls.get": calls_get,
}


def _verbatim(observation: Observation) -> orjson.Fragment:
    return orjson.Fragment(observation.to_json())


def observed_error(observation: Observation) -> RpcError:
    entry = TABLE[observation.code or Code.INTERNAL]
    return RpcError(entry.jsonrpc, observation.message or entry.family, _verbatim(observation))


def succeeded(request_id: Any, result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "result": result, "id": request_id}


def failed(request_id: Any, error: RpcError) -> dict[str, Any]:
    said: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        said["data"] = error.data
    return {"jsonrpc": "2.0", "error": said, "id": request_id}


def is_id(value: Any) -> bool:
    return value is None or (isinstance(value, str | int | float) and not isinstance(value, bool))


def _known_id(request: Any) -> Any:
    found = request.get("id") if isinstance(request, dict) else None
    return found if is_id(found) else None
