"""Who sent this request, and what does its body say?

A visit is one authenticated HTTP request. Nothing of its body is looked at before its sender is known, and
nothing is parsed before its size is.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from holdfast.gateway import Gateway
from holdfast.identity import Unauthenticated
from holdfast.identity.credential import WrongSecret
from holdfast.identity.identity import SECRET
from holdfast.identity.tries import TooMany
from holdfast.model.call import Principal
from holdfast.model.fields import FieldError
from holdfast.model.observation import Observation
from holdfast.model.strict_json import Limits, ParseError, parse
from holdfast.servers.answers import TransportError, Unacceptable
from holdfast.servers.headers import completed, disagreements, trace
from holdfast.servers.members import CALL, Members, faults, given
from holdfast.servers.metadata import challenge

WRAPPING = 3
"""Levels around the arguments: a batch, a request, its params. Their gate holds them to the exact limit."""
ENVELOPE = 32
"""Members around the arguments of one call, likewise."""


@dataclass(frozen=True, slots=True)
class Visit:
    gateway: Gateway
    request: Request
    principal: Principal

    async def json(self) -> Any:
        """The body; raises TransportError when it is too large and ParseError when it is not acceptable."""
        limits = body_limits(self.gateway)
        return parse(await read(self.request, limits.max_bytes), limits)

    async def members(self, members: Members) -> dict[str, Any]:
        """The body as exactly these members; raises Unacceptable with every fault."""
        body = await self.acceptable()
        self.refuse(faults(body, members))
        return given(body)

    async def acceptable(self) -> Any:
        try:
            return await self.json()
        except ParseError as error:
            raise Unacceptable(self.unparsed(error)) from None

    def unparsed(self, error: ParseError) -> Observation:
        """What a body gets that is not acceptable as JSON."""
        fault = FieldError(error.path, "JSON within the limits", "something else", error.message)
        text = f"the request cannot be read: {error.message}"
        return self._traced(self.gateway.unparsed(text, (fault,), structural=error.code_hint == "limits"))

    def refuse(self, found: list[FieldError]) -> None:
        if found:
            message = f"the request cannot be used: {found[0].message}"
            raise Unacceptable(self._traced(self.gateway.unparsed(message, tuple(found), structural=True)))

    def _traced(self, observation: Observation) -> Observation:
        """In the caller's own trace, where the request names one."""
        told = trace(self.request.headers)
        return observation if told is None else replace(observation, trace_id=told[0])

    @contextmanager
    def proposing(self) -> Iterator[None]:
        """Whatever cannot be used in here would have been a call, and counts as a proposal."""
        try:
            yield
        except Unacceptable as error:
            self.gateway.unproposed(self.principal, error.observation)
            raise

    def check_call(self, body: Any) -> list[FieldError]:
        """What is wrong with a call as body and headers give it."""
        return faults(body, CALL) or disagreements(given(body), self.request.headers)

    async def call(self, body: dict[str, Any]) -> Observation:
        """Proposes what a checked body asks for."""
        members = completed(given(body), self.request.headers)
        told = trace(self.request.headers)
        return await self.gateway.call(
            members.pop("tool"),
            members.pop("arguments"),
            principal=self.principal,
            trace_id=None if told is None else told[0],
            parent=None if told is None else told[1],
            **members,
        )


Handler = Callable[[Visit], Awaitable[Response]]


async def authenticate(gateway: Gateway, request: Request) -> Principal:
    """Who sent this; raises TransportError."""
    try:
        return await _known(gateway, request)
    except TooMany as error:
        told = {"Retry-After": str(ceil(error.wait_s))}
        raise TransportError(429, "wrong too often", "wait, then try again", headers=told) from None
    except Unauthenticated as error:
        why, _, then = str(error).partition("; ")
        told = {"WWW-Authenticate": challenge(gateway, request)}
        raise TransportError(401, why, then or "send a valid credential", headers=told) from None


async def _known(gateway: Gateway, request: Request) -> Principal:
    try:
        return await _asked(gateway, request)
    except WrongSecret:  # there is nothing to learn; asking again would be trying again
        raise
    except Unauthenticated:
        if not await gateway.identity.learn(request.headers):
            raise
    return await _asked(gateway, request)


async def _asked(gateway: Gateway, request: Request) -> Principal:
    if SECRET in request.headers:  # checked by a hash that is slow on purpose: not on the loop
        return await run_in_threadpool(gateway.identity.authenticate, request.headers)
    return gateway.identity.authenticate(request.headers)


def body_limits(gateway: Gateway) -> Limits:
    most = gateway.config.limits
    return Limits(most.body_bytes, most.depth + WRAPPING, most.string, most.keys + ENVELOPE)


async def read(request: Request, most: int) -> bytes:
    """The whole body, given up as soon as it is known to be too large."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and (len(declared) > 18 or int(declared) > most):  # int() has a limit of its own
        raise _too_large(most)
    read = bytearray()
    async for piece in request.stream():
        read += piece
        if len(read) > most:
            raise _too_large(most)
    return bytes(read)


def _too_large(most: int) -> TransportError:
    # The rest of the body is not read, so the connection cannot be used again.
    return TransportError(
        413,
        f"the request body is larger than {most} bytes",
        "send less, or ask the operator to raise 'limits.body_bytes'",
        headers={"Connection": "close"},
    )
