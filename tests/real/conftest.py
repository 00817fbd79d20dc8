"""What do the tests of real servers start with?"""

import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
import yaml

from tests.conformance.started import started
from tests.real.passes import Pass, directly, through
from tests.real.servers import SERVERS, Server
from tests.real.world import build, pages


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One place for both rounds, so that no answer differs by a path."""
    return tmp_path_factory.mktemp("real").resolve() / "world"


@pytest.fixture(scope="session")
def page() -> Iterator[str]:
    with pages() as url:
        yield url


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def direct(folder: Path, page: str) -> AsyncIterator[Pass]:
    build(folder)
    yield await directly(folder, page)


def configured(place: Path, folder: Path, servers: tuple[Server, ...]) -> Path:
    """A configuration with these servers behind one gateway."""
    upstreams = {}
    for server in servers:
        command, *arguments = server.command(folder)
        upstreams[server.name] = {
            "mcp": {
                "command": command,
                "args": arguments,
                "env": dict(server.variables(folder)),
                "cwd": str(folder),
            },
            "contracts": str(server.overlay),
        }
    place.mkdir(parents=True)
    file = place / "holdfast.yaml"
    file.write_text(yaml.safe_dump({"store": f"sqlite:///{place / 'store.db'}", "upstreams": upstreams}))
    return file


@pytest.fixture(scope="session")
def gateway(direct: Pass, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One gateway before all of them, on a world as it was before the direct calls."""
    build(folder)
    place = tmp_path_factory.mktemp("gateway") / "all"
    config = configured(place, folder, SERVERS)
    command = (sys.executable, "-m", "holdfast", "serve", "--config", str(config), "--port", "0")
    with started(command, r"(http://127\.0\.0\.1:\d+)", place / "log") as url:
        yield f"{url}/mcp"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def governed(gateway: str, folder: Path, page: str) -> AsyncIterator[Pass]:
    yield await through(gateway, folder, page)
