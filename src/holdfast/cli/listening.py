"""Which socket is listened on? Taken before anything is opened: a port in use is known at once."""

import contextlib
import socket
from collections.abc import Iterator

from holdfast.model.errors import HoldfastError

BACKLOG = 2048
"""Connections that wait to be accepted: nobody is turned away while one process takes another's place."""


@contextlib.contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
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


def address(host: str, bound: socket.socket) -> str:
    """How clients on this machine write it."""
    port = bound.getsockname()[1]
    return f"http://[{host.strip('[]')}]:{port}" if ":" in host else f"http://{host}:{port}"
