"""How does a test serve the application on a real socket?"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from holdfast.cli.protocol import Protocol
from holdfast.model import defaults


@dataclass(frozen=True)
class Served:
    port: int
    server: uvicorn.Server

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def until_nobody_is_connected(self) -> None:
        while self.server.server_state.connections:  # noqa: ASYNC110  # the server tells nobody
            await asyncio.sleep(0)


@asynccontextmanager
async def serving(app: ASGIApp, *, like_ours: bool = True) -> AsyncIterator[Served]:
    """A uvicorn server on a free port of this machine, until the block ends; or as anybody might run one."""
    # Named TCP, so that asyncio sends small answers at once instead of 40 ms later.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(1024)  # connections queue here from now on
    http = Protocol if like_ours else HttpToolsProtocol
    config = uvicorn.Config(
        app,
        http=http,
        log_config=None,
        access_log=False,
        ws="none",
        lifespan="off",
        timeout_graceful_shutdown=5,
        timeout_keep_alive=int(defaults.KEEP_ALIVE_S),
    )
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield Served(listener.getsockname()[1], server)
    finally:
        server.should_exit = True
        await running
        listener.close()
