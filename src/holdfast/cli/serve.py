"""`holdfast serve`: open the gateway and answer over HTTP until told to stop."""

import contextlib
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.exits import Exit
from holdfast.cli.options import DEFAULT_CONFIG, ConfigFile
from holdfast.cli.screen import fail
from holdfast.model.errors import HoldfastError

if TYPE_CHECKING:
    import uvicorn

    from holdfast.config import Config

BACKLOG = 2048
GRACE_S = 10
"""How long connections may take to finish what they asked for."""


def add(app: typer.Typer) -> None:
    app.command()(serve)


def serve(
    config: ConfigFile = DEFAULT_CONFIG,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 8080,
    workers: Annotated[int, typer.Option(min=1, help="Processes; more than one is not built yet.")] = 1,
) -> None:
    """Serve the gateway over HTTP."""

    from holdfast.config import load

    if workers > 1:
        fail("--workers above 1 is not built yet; start 'holdfast serve' again on another port, same store")
        raise typer.Exit(Exit.USAGE)
    loaded = load(config)
    loaded.check_host(host)
    with _listening(host, port) as bound:
        address = f"http://{_authority(host, bound.getsockname()[1])}"
        if loaded.base_url is None:
            loaded = loaded.model_copy(update={"base_url": address})
        _run(_serve(loaded, address, bound))


def _run(serving: Coroutine[None, None, None]) -> None:
    import asyncio

    try:
        import uvloop  # about a third less CPU per call
    except ImportError:  # where it has no wheel
        asyncio.run(serving)
    else:
        uvloop.run(serving)


async def _serve(config: "Config", address: str, bound: socket.socket) -> None:
    import uvicorn

    from holdfast.cli.invoked import command
    from holdfast.cli.welcome import welcome
    from holdfast.gateway import Gateway
    from holdfast.servers.app import build
    from holdfast.telemetry.logs import configure

    configure(sys.stderr, config.telemetry.logs, config.telemetry.level)
    async with Gateway.open(config) as gateway:
        app = build(gateway, command())
        server = _server(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="off",
                timeout_graceful_shutdown=GRACE_S,
            ),
            app.state.mcp.rest,
        )
        async with app.state.mcp.running():
            _stop_on_signals(server)
            await welcome(gateway, address)
            await server.serve(sockets=[bound])


def _server(config: "uvicorn.Config", rest: Callable[[], None]) -> "uvicorn.Server":
    """A server that ends streams which nobody would end before it waits for what is under way."""
    import uvicorn

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            rest()
            await super().shutdown(sockets)

    return Server(config)


def _stop_on_signals(server: "uvicorn.Server") -> None:
    """The server handles signals while it runs and raises them again at its end: there they end here,
    so that the gateway is closed and not torn down."""
    import asyncio

    def stop() -> None:
        server.force_exit = server.should_exit  # the second time, connections are not waited for
        server.should_exit = True

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop)


@contextlib.contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    """The socket, taken before anything is opened: a port in use is known at once."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        raise HoldfastError(f"cannot listen on {host!r}: {error.strerror}; choose another --host") from None
    with bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind(address)
            bound.listen(BACKLOG)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise HoldfastError(
                f"cannot listen on port {port} of {host!r}: {why}; choose another --port"
            ) from None
        yield bound


def _authority(host: str, port: int) -> str:
    return f"[{host.strip('[]')}]:{port}" if ":" in host else f"{host}:{port}"
