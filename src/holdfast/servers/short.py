"""How do plain calls over HTTP and JSON-RPC go to the gateway and back?

Only one call that is right in every member gets this far, asked for in the body alone or in headers that
agree with it. Whatever is wrong, or is no call, is for `rest` and `jsonrpc`, which say what.
"""

from typing import Any

import orjson
from starlette.datastructures import Headers

from holdfast.gateway import Gateway
from holdfast.model.call import Proposal
from holdfast.model.observation import Observation
from holdfast.model.strict_json import ParseError, parse
from holdfast.servers.answers import ALWAYS, JSON, observed
from holdfast.servers.front import Plain
from holdfast.servers.headers import SAME_AS, completed, disagreements, trace
from holdfast.servers.jsonrpc import GOOD, broken, failed, is_id, observed_error, succeeded
from holdfast.servers.members import CALL, fits, given
from holdfast.servers.offers import WHOLE
from holdfast.servers.visit import body_limits

SPEAKING = frozenset(name.lower().encode() for name in (*SAME_AS, "traceparent"))
"""Headers that say something about a call."""
REQUEST = frozenset({"jsonrpc", "method", "params", "id"})
ALWAYS_RAW = [(name.lower().encode(), value.encode()) for name, value in ALWAYS.items()]
_JSON = (b"content-type", JSON.encode())
_LINES = b"".join(b"%b: %b\r\n" % one for one in (*ALWAYS_RAW, _JSON))


class Short:
    def __init__(self, gateway: Gateway) -> None:
        self._gateway, self._limits = gateway, body_limits(gateway)

    async def rest(self, plain: Plain) -> bool:
        """POST /v1/calls"""
        proposal = self._proposal(plain, self._read(plain))
        if proposal is None:
            return False
        seen = await self._gateway.propose(proposal)
        if seen.replayed or seen.remedy.retry_after_ms is not None:  # which headers tell too
            plain.begun = True
            await observed(seen)(plain.scope, plain.receive, plain.send)
        else:
            await _sent(plain, seen.to_json(), seen.http_status)
        return True

    async def rpc(self, plain: Plain) -> bool:
        """POST /rpc, with one request for `tools.call` that wants an answer"""
        body = self._read(plain)
        if type(body) is not dict or body.keys() != REQUEST or body["method"] != "tools.call":
            return False
        if body["jsonrpc"] != "2.0" or not is_id(body["id"]):
            return False
        proposal = self._proposal(plain, body["params"])
        if proposal is None:
            return False
        try:
            reply = _reply(body["id"], await self._gateway.propose(proposal))
        except Exception as error:
            reply = failed(body["id"], broken(error, "tools.call"))
        await _sent(plain, orjson.dumps(reply), 200)
        return True

    def _read(self, plain: Plain) -> Any:
        try:
            return parse(plain.body, self._limits)
        except ParseError:
            return None

    def _proposal(self, plain: Plain, body: Any) -> Proposal | None:
        if not fits(body, CALL):
            return None
        members, told = given(body), None
        if not plain.headers.keys().isdisjoint(SPEAKING):
            headers = Headers(raw=plain.scope["headers"])
            if disagreements(members, headers):
                return None
            members, told = completed(members, headers), trace(headers)
        return Proposal(
            principal=plain.principal,
            environment=self._gateway.config.environment,
            trace_id=None if told is None else told[0],
            parent=None if told is None else told[1],
            **members,
        )


def _reply(request_id: Any, seen: Observation) -> dict[str, Any]:
    if seen.status in GOOD:
        return succeeded(request_id, orjson.Fragment(seen.to_json()))
    return failed(request_id, observed_error(seen))


async def _sent(plain: Plain, body: bytes, status: int) -> None:
    plain.begun = True
    whole = (plain.scope.get("extensions") or {}).get(WHOLE)
    if whole is not None and whole(status, _LINES, body):
        return
    headers = [*ALWAYS_RAW, (b"content-length", b"%d" % len(body)), _JSON]
    await plain.send({"type": "http.response.start", "status": status, "headers": headers})
    await plain.send({"type": "http.response.body", "body": body, "more_body": False})
