"""Which headers does a request get that goes through a door?"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from holdfast.upstreams.mcp.door import Door, Heading
from holdfast.upstreams.mcp.errors import Unsent
from holdfast.upstreams.mcp.hidden import Hidden
from holdfast.upstreams.mcp.target import HttpTarget
from tests.requirements import requirement
from tests.upstreams.http.raw import Raw, Visitor


class Opener:
    """An authorizer that has a token for everybody."""

    async def headers(self, principal: str) -> Mapping[str, str]:
        return {"Authorization": f"Bearer of {principal}"}

    async def challenged(self, principal: str, status: int, www_authenticate: str) -> bool:
        return False

    async def close(self) -> None: ...


class Seen:
    """The heads of requests, as they came."""

    def __init__(self) -> None:
        self.heads: list[list[str]] = []

    async def serve(self, visitor: Visitor) -> None:
        while True:
            start = await visitor.reader.readuntil(b"\r\n\r\n")
            self.heads.append(start.decode().split("\r\n")[:-2])
            await visitor.reader.readexactly(2)
            await visitor.answer()

    def values(self, name: str) -> list[str]:
        """Of the last request."""
        return [line.partition(": ")[2] for line in self.heads[-1] if line.startswith(f"{name}: ")]


@asynccontextmanager
async def opened(opener: Opener | None = None, **headers: str) -> AsyncIterator[tuple[Door, Seen]]:
    seen = Seen()
    async with Raw(seen.serve).open() as there:
        target = HttpTarget(f"http://127.0.0.1:{there.port}/mcp", headers, auth=opener)
        door = Door(target, Hidden())
        try:
            yield door, seen
        finally:
            await door.close()


async def test_a_post_has_its_headers_and_those_of_the_target_once_each() -> None:
    async with opened(Accept="text/plain", Team="blue") as (door, seen):
        heading = Heading({"accept": "application/json", "mcp-name": "tool"})
        for _ in range(2):
            await door.post(b"{}", heading)
            assert seen.values("accept") == ["application/json"]
            assert seen.values("team") == ["blue"]
            assert seen.values("mcp-name") == ["tool"]
            assert seen.values("accept-encoding") == ["identity"]


async def test_what_one_post_has_beside_the_others_is_not_sent_with_the_next() -> None:
    async with opened(team="blue") as (door, seen):
        heading = Heading({"mcp-name": "tool"})
        await door.post(b"{}", heading, more={"idempotency-key": "k-1"})
        assert seen.values("idempotency-key") == ["k-1"]
        await door.post(b"{}", heading, more={"team": "red"})
        assert seen.values("team") == ["red"]
        await door.post(b"{}", heading)
        assert seen.values("team") == ["blue"]
        assert seen.values("idempotency-key") == []


@requirement("AUT-6")
async def test_each_principal_is_let_in_with_its_own_token_and_no_configured_one() -> None:
    async with opened(Opener(), authorization="Bearer of everybody") as (door, seen):
        heading = Heading({"mcp-name": "tool"})
        for principal in ("ann", "bob", "ann"):
            await door.post(b"{}", heading, principal, more={"idempotency-key": principal})
            assert seen.values("authorization") == [f"Bearer of {principal}"]
            assert seen.values("idempotency-key") == [principal]


@pytest.mark.parametrize("value", ["a\r\nx: y", "a\nb"])
@requirement("IDM-5")
async def test_a_header_that_would_be_two_is_not_sent_and_nothing_else_is(value: str) -> None:
    async with opened() as (door, seen):
        with pytest.raises(Unsent, match="line end"):
            await door.post(b"{}", Heading({}), more={"idempotency-key": value})
        with pytest.raises(Unsent, match="line end"):
            await door.post(b"{}", Heading({"mcp-name": value}))
        assert seen.heads == []
