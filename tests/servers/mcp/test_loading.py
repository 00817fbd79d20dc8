"""Is MCP served as soon as somebody asks, whoever asks first and however they leave?"""

import asyncio

import pytest

from holdfast.gateway import Gateway
from holdfast.servers.answers import TransportError
from holdfast.servers.app import build
from tests.requirements import requirement
from tests.servers.mcp.conftest import ERAS
from tests.servers.mcp.raw import speaking
from tests.servers.serving import serving

COUNT = {"name": "office__count", "arguments": {}}


@ERAS
@requirement("PRO-1")
async def test_nothing_is_loaded_before_the_first_request_which_is_answered_like_any_other(
    gateway: Gateway, era: str
) -> None:
    app = build(gateway)
    async with app.state.mcp.running() as door, serving(app) as served:
        assert door._inside is None
        async with speaking(served, era) as line:
            assert "result" in await line.ask("tools/call", COUNT)
        assert door._inside is not None


async def test_whoever_asked_first_may_leave_while_it_is_loaded(gateway: Gateway) -> None:
    async with build(gateway).state.mcp.running() as door:
        first, second = (asyncio.create_task(door.load()) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        assert await second is await door.load()
        assert first.cancelled()


async def test_a_server_that_ends_while_it_is_loaded_leaves_nothing_behind(gateway: Gateway) -> None:
    before = asyncio.all_tasks()
    async with build(gateway).state.mcp.running() as door:
        asking = asyncio.create_task(door.load())
        await asyncio.sleep(0)
    await asyncio.wait((asking,))
    assert asyncio.all_tasks() <= before
    with pytest.raises(TransportError, match="not served now"):
        await door.load()


async def test_what_could_not_be_loaded_is_tried_again(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast.servers.mcp.inside import Inside

    async def fails(inside: Inside) -> None:
        raise OSError("too many open files")

    async with build(gateway).state.mcp.running() as door:
        with monkeypatch.context() as patch:
            patch.setattr(Inside, "open", fails)
            with pytest.raises(OSError, match="too many"):
                await door.load()
        assert await door.load() is await door.load()
