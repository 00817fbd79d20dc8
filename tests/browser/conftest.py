"""What does a test in a browser start with? One browser and one gateway for all tests of a process.

Tests share them, so each makes the calls it looks at. They all run in one event loop, since neither a browser
nor a server moves to another.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright

from tests.browser.chromium import chromium
from tests.browser.filling import fill
from tests.browser.signing_in import sign_in
from tests.browser.visitor import Visitor, visitor
from tests.browser.world import World, config, served, with_keys

Visit = Callable[..., Awaitable[Page]]
Come = Callable[..., Awaitable[Visitor]]


class Filled(NamedTuple):
    world: World
    made: Mapping[str, str]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        opened = await playwright.chromium.launch(executable_path=chromium())
        yield opened
        await opened.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """As the demo."""
    async with served(config(tmp_path_factory.mktemp("shop"))) as one:
        yield one


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def empty(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """Nobody ever called anything."""
    async with served(config(tmp_path_factory.mktemp("empty"))) as one:
        yield one


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def keyed(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """Where people show who they are."""
    async with served(with_keys(tmp_path_factory.mktemp("keyed"))) as one:
        yield one


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def filled(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Filled]:
    """Something of everything has happened; nobody changes it."""
    async with served(config(tmp_path_factory.mktemp("filled"))) as one:
        yield Filled(one, await fill(one))


@pytest_asyncio.fixture(loop_scope="session")
async def visitors(browser: Browser) -> AsyncIterator[Come]:
    """Makes people with browsers; at the end nothing may have gone wrong in any of them."""
    came: list[Visitor] = []

    async def come(url: str, **screen: Any) -> Visitor:
        came.append(await visitor(browser, url, **screen))
        return came[-1]

    yield come
    for one in came:
        await one.context.close()
    assert [fault for one in came for fault in one.faults] == []


@pytest.fixture(scope="session")
def signed_in() -> dict[tuple[str, str], Any]:
    """Cookies of people who signed in before: they need not do it for every test."""
    return {}


@pytest.fixture
def visit(world: World, visitors: Come, signed_in: dict[tuple[str, str], Any]) -> Visit:
    """A page of the console, as somebody who is signed in; of the demo's, unless a world is named."""

    async def visiting(person: str, path: str = "/", *, at: World = world, **screen: Any) -> Page:
        known = signed_in.get((at.url, person))
        came = await visitors(at.url, storage_state=known, **screen)
        page = await came.page("/sign-in" if known is None else path)
        if known is None:
            await sign_in(page, person)
            signed_in[at.url, person] = await came.context.storage_state()
            await page.goto(at.url + path)
        return page

    return visiting
