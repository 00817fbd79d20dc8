"""How does one process serve over HTTP, and how does it stop?

Told to stop, it says so at `/ready` while everything goes on, then takes no more connections and lets what is
under way finish. What is not over in time is answered with what can be said of it, and settled by another
process. Told a second time, it waits for nothing.
"""

import asyncio
import contextlib
import logging
import math
import os
import signal
import socket
import sys
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import uvicorn

from holdfast.cli import garbage
from holdfast.cli.accepting import OneByOne
from holdfast.cli.exits import Exit
from holdfast.cli.heads import Heads
from holdfast.cli.invoked import command
from holdfast.cli.linger import Linger
from holdfast.cli.links import Links, on_end
from holdfast.cli.patience import Patience
from holdfast.cli.protocol import Protocol
from holdfast.cli.welcome import welcome
from holdfast.gateway import Gateway
from holdfast.model import defaults
from holdfast.servers.app import build
from holdfast.telemetry.logs import configure

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from holdfast.config import Config

log = logging.getLogger(__name__)

SEND_S = 2.0
"""How long the last answers have to get out once they are known."""
LATER_S = 3.0
"""After it serves, before it loads what only clients of MCP need: whoever is sooner has it loaded."""


def run(
    config: "Config", address: str, bound: socket.socket, patience: Patience, links: Links | None
) -> None:
    garbage.wait()
    serving = _serve(config, address, bound, patience, links)
    with contextlib.suppress(asyncio.CancelledError):  # not wanted any more before it was there
        try:
            import uvloop  # about a third less CPU per call
        except ImportError:  # where it has no wheel
            asyncio.run(serving)
        else:
            uvloop.run(serving)


async def _serve(
    config: "Config", address: str, bound: socket.socket, patience: Patience, links: Links | None
) -> None:
    configure(sys.stderr, config.telemetry.logs, config.telemetry.level)
    server: Server | None = None
    opening = asyncio.current_task()

    def unwanted() -> None:
        if server is not None:
            server.leave()
        elif opening is not None:
            opening.cancel()

    if links is not None:
        on_end(links.life, unwanted)
    async with Gateway.open(config) as gateway:
        if links is not None and links.first and not links.alone:
            for note in gateway.upstream_sessions.bound_to_a_process():
                log.warning("%s", note)
        app = build(gateway, command(), alone=links is None or links.alone)
        async with app.state.mcp.running():
            server = Server(app, gateway, patience, links)
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, server.stop)
            await gateway.guide.begin()
            if links is None or links.first:
                await welcome(gateway, address)
            garbage.settle()
            beside = [asyncio.create_task(_load(app)), asyncio.create_task(garbage.tend())]
            await server.serve(sockets=[bound])
            for task in beside:
                task.cancel()
    if gateway.unfinished:
        _vanish(gateway.unfinished)


async def _load(app: "Starlette") -> None:
    await asyncio.sleep(LATER_S)
    await app.state.mcp.load()
    garbage.keep()


def _vanish(unfinished: int) -> None:
    """End at once. The gateway is closed; a tool that hangs in a thread would keep the process for ever."""
    log.warning("%d calls were not over in time; another process settles them", unfinished)
    logging.shutdown()
    sys.stdout.flush()
    os._exit(Exit.DONE)


class Server(uvicorn.Server):
    def __init__(
        self,
        app: "Starlette",
        gateway: Gateway,
        patience: Patience,
        links: Links | None = None,
    ) -> None:
        # Of all connections, whoever accepts them.
        self._protocol = partial(Protocol, linger=Linger(), heads=Heads())
        super().__init__(
            uvicorn.Config(
                app,
                http=cast(Any, self._protocol),
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="off",
                timeout_keep_alive=int(defaults.KEEP_ALIVE_S),
                timeout_graceful_shutdown=math.ceil(patience.grace_s + SEND_S),
            )
        )
        self._app, self._gateway, self._patience, self._links = app, gateway, patience, links
        self._doors: list[OneByOne] = []
        self._forced = asyncio.Event()
        self._told = False

    def stop(self) -> None:
        """Somebody wants this process to end; asked twice, at once."""
        if self._told:
            self.should_exit = self.force_exit = True
            self._gateway.answer_waiting()
            self._forced.set()
            return
        self._told = True
        self._gateway.drain()
        asyncio.get_running_loop().call_later(self._patience.notice_s, self.leave)

    def leave(self) -> None:
        """Others accept from this socket, or nobody does any more: nothing is to be noticed first."""
        self._gateway.drain()
        self.should_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """They come to `stop`, also while the gateway closes: it is closed in order, not torn down."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self._links is None or self._links.alone:
            await super().startup(sockets)
        else:
            await super().startup([])
            has, tally = self.server_state.connections.__len__, self._links.tally
            self._doors = [OneByOne(bound, self._connected, has=has, tally=tally) for bound in sockets or ()]
        if self._links is not None:
            self._links.is_ready()

    async def on_tick(self, counter: int) -> bool:
        for door in self._doors:
            door.tell()
        return await super().on_tick(counter)

    def _connected(self) -> asyncio.Protocol:
        return self._protocol(self.config, self.server_state, self.lifespan.state)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for door in self._doors:
            await door.close()
        self._app.state.mcp.rest()  # ends streams that nobody would end
        last = asyncio.get_running_loop().call_later(self._patience.grace_s, self._gateway.answer_waiting)
        ending = asyncio.ensure_future(super().shutdown(sockets))
        forced = asyncio.ensure_future(self._forced.wait())
        await asyncio.wait((ending, forced), return_when=asyncio.FIRST_COMPLETED)
        last.cancel()
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=SEND_S)
        for task in (ending, forced, *self.server_state.tasks):
            task.cancel()
