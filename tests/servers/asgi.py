"""How does a test speak to the application without a socket?"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import orjson
from starlette.types import ASGIApp, Message

LOOPBACK = ("127.0.0.1", 50000)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes
    every: tuple[tuple[str, str], ...] = ()
    """The headers as they came; one may come several times."""

    def all(self, name: str) -> list[str]:
        return [value for one, value in self.every if one == name]

    def json(self) -> Any:
        return orjson.loads(self.body)


@dataclass(frozen=True)
class Client:
    """Sends requests straight into an ASGI application, one message after the other."""

    app: ASGIApp
    headers: Mapping[str, str]
    address: tuple[str, int] | None = LOOPBACK

    async def get(self, path: str, **headers: str) -> Answer:
        return await self.send("GET", path, headers=headers)

    async def post(self, path: str, body: Any, headers: Mapping[str, str] | None = None) -> Answer:
        return await self.send("POST", path, [orjson.dumps(body)], headers)

    async def send(
        self,
        method: str,
        path: str,
        pieces: Iterable[bytes] = (),
        headers: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
    ) -> Answer:
        more = headers.items() if isinstance(headers, Mapping) else headers or ()
        incoming, sent = _messages(pieces), list[Message]()

        async def receive() -> Message:
            return next(incoming)

        async def keep(message: Message) -> None:
            sent.append(message)

        await self.app(self._scope(method, path, [*self.headers.items(), *more]), receive, keep)
        assert sent, "the application did not answer"
        start, *rest = sent
        every = tuple((name.decode().lower(), value.decode()) for name, value in start["headers"])
        body = b"".join(message.get("body", b"") for message in rest)
        return Answer(start["status"], dict(every), body, every)

    def _scope(self, method: str, path: str, headers: list[tuple[str, str]]) -> dict[str, Any]:
        raw, _, query = path.partition("?")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(raw),
            "raw_path": raw.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers],
            "client": self.address,
            "server": ("127.0.0.1", 8080),
        }


def _messages(pieces: Iterable[bytes]) -> Iterator[Message]:
    for piece in pieces:
        yield {"type": "http.request", "body": piece, "more_body": True}
    yield {"type": "http.request", "body": b"", "more_body": False}
    while True:
        yield {"type": "http.disconnect"}
