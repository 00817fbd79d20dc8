"""How does a sign-in in a browser come back to a command?

To a port of this machine that only this machine can reach (RFC 8252). Whoever does not bring the state that
went out with the address is told to go away, and waiting goes on.
"""

import asyncio
import hmac
import re
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import parse_qs, urlsplit

from holdfast.model.errors import HoldfastError
from holdfast.model.timeout import timeout

PATH = "/callback"
MOST_BYTES = 16 * 1024
READ_S = 5.0
"""How long a connection may take to say what it wants."""

PAGE = """HTTP/1.1 {status}\r
content-type: text/html; charset=utf-8\r
content-security-policy: default-src 'none'\r
cache-control: no-store\r
connection: close\r
\r
<!doctype html><title>Holdfast</title><p>{text}</p>
"""


class Returned(NamedTuple):
    """What the redirect brought back."""

    code: str
    state: str
    iss: str | None


class Redirects:
    """Listens on the first of `ports` that is free."""

    def __init__(self, *ports: int) -> None:
        self._ports = ports
        self._state = ""
        self._query: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}{PATH}"

    async def wait(self, address: str, seconds: float) -> Returned:
        """Until somebody has signed in at `address`."""
        self._state = parse_qs(urlsplit(address).query).get("state", [""])[0]
        try:
            async with timeout(seconds):
                query = await self._query
        except TimeoutError:
            raise HoldfastError(f"nobody signed in within {seconds:g} s; run it again") from None
        if "code" not in query:
            why = query.get("error", "")
            said = f": {why}" if re.fullmatch(r"[a-z_]{1,64}", why) else ""
            raise HoldfastError(f"the sign-in was refused{said}; run it again")
        return Returned(query["code"], query["state"], query.get("iss"))

    async def __aenter__(self) -> Self:
        for port in self._ports:
            try:
                self._server = await asyncio.start_server(self._answer, "127.0.0.1", port, limit=MOST_BYTES)
            except OSError:
                continue
            return self
        raise HoldfastError(f"port {self._ports[-1]} of this machine is in use; free it, or name another")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with timeout(READ_S):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._page(head).encode())
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever that was, the person comes on another connection
        finally:
            writer.close()

    def _page(self, head: bytes) -> str:
        verb, _, rest = head.decode("latin-1").partition(" ")
        target = urlsplit(rest.partition(" ")[0])
        query = {name: values[0] for name, values in parse_qs(target.query).items()}
        known = self._state and hmac.compare_digest(query.get("state", "").encode(), self._state.encode())
        if verb != "GET" or target.path != PATH or not known:
            return PAGE.format(status="404 Not Found", text="Nothing is here.")
        if not self._query.done():
            self._query.set_result(query)
        text = "You are signed in: close this window." if "code" in query else "The sign-in was refused."
        return PAGE.format(status="200 OK", text=text)
