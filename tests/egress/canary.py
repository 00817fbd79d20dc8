"""A server on this machine that nobody may reach, and counts who does: connections, not requests."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

ANSWER = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
SOON_S = 20.0


class Canary:
    """Listens on 127.0.0.1 and, where this machine has it, on ::1 at the same port."""

    def __init__(self) -> None:
        self._listeners = [socket.create_server(("127.0.0.1", 0), backlog=1000)]
        self.port = int(self._listeners[0].getsockname()[1])
        self.version_6 = _has_version_6()
        if self.version_6:
            here = ("::1", self.port)
            self._listeners.append(socket.create_server(here, family=socket.AF_INET6, backlog=1000))
        self._counted = 0
        self._marks = 0
        self._changed = threading.Condition()
        self._closing = False
        self._threads = [threading.Thread(target=self._serve, args=(one,)) for one in self._listeners]
        for thread in self._threads:
            thread.start()

    def reached(self) -> int:
        """How many connections came. The kernel hands them over in turn: one of our own marks the end."""
        for listener in self._listeners:
            with socket.create_connection(listener.getsockname()[:2], SOON_S) as mark:
                mark.sendall(b"MARK")
                mark.shutdown(socket.SHUT_WR)
                while mark.recv(4096):
                    pass
        with self._changed:
            return self._counted - self._marks

    def close(self) -> None:
        self._closing = True
        for listener in self._listeners:
            socket.create_connection(listener.getsockname()[:2], SOON_S).close()
        for thread in self._threads:
            thread.join()
        for listener in self._listeners:
            listener.close()

    def _serve(self, listener: socket.socket) -> None:
        while True:
            visitor, _ = listener.accept()
            with visitor:
                if self._closing:
                    return
                with self._changed:
                    self._counted += 1
                self._answer(visitor)

    def _answer(self, visitor: socket.socket) -> None:
        visitor.settimeout(SOON_S)
        try:
            said = visitor.recv(65536)
            if said == b"MARK":
                with self._changed:
                    self._marks += 1
            visitor.sendall(ANSWER)
        except OSError:
            pass


def _has_version_6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@contextmanager
def canary() -> Iterator[Canary]:
    one = Canary()
    try:
        yield one
    finally:
        one.close()
