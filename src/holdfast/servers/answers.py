"""How does an observation, or a request that never became a call, look over HTTP?

Two shapes leave this gateway: an observation, whose bytes are sent as they were stored, and a transport
error `{"error": ..., "next": ...}` for what never became a call.
"""

from collections.abc import Mapping
from math import ceil
from typing import Any

import orjson
from starlette.responses import Response

from holdfast.model.errors import Code
from holdfast.model.observation import Observation

# An answer is about one caller's effect: no cache may keep it, no browser may guess its type.
ALWAYS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
JSON = "application/json"


class TransportError(Exception):
    """The request never became a call."""

    def __init__(
        self, status: int, error: str, then: str, *, headers: Mapping[str, str] | None = None, **more: str
    ) -> None:
        super().__init__(error)
        self.status = status
        self.headers = dict(headers or {})
        self.body = {"error": error, "next": then, **more}


class Unacceptable(Exception):
    """The body was read and cannot be a call; the observation says why."""

    def __init__(self, observation: Observation) -> None:
        super().__init__(observation.message)
        self.observation = observation


def answer(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return _response(orjson.dumps(body), status, headers)


def observed(observation: Observation) -> Response:
    """The answer to a proposal: the status follows the code table, the bytes are the observation's own."""
    return _response(observation.to_json(), observation.http_status, _told_in_headers(observation))


def found(observation: Observation) -> Response:
    """The answer to a question about a call: the question succeeded, whatever became of the call."""
    return _response(observation.to_json(), 200, None)


def refused(error: TransportError) -> Response:
    return answer(error.body, error.status, error.headers)


def _response(content: bytes, status: int, headers: Mapping[str, str] | None) -> Response:
    return Response(content, status, {**ALWAYS, **(headers or {})}, JSON)


def _told_in_headers(observation: Observation) -> dict[str, str]:
    headers = {"Idempotent-Replayed": "true"} if observation.replayed else {}
    wait_ms = observation.remedy.retry_after_ms
    # Waiting does not bring a budget back, so NAM-3 wants no Retry-After there.
    if wait_ms is not None and observation.code is not Code.BUDGET_EXHAUSTED:
        headers["Retry-After"] = str(max(1, ceil(wait_ms / 1000)))
    return headers
