"""How does a test look at the console? As a browser without scripts would."""

import re
from collections.abc import Mapping, Sequence
from html import unescape
from urllib.parse import urlencode

from starlette.types import ASGIApp

from tests.servers.asgi import LOOPBACK, Answer, Client

HOST = "127.0.0.1:8080"
CSRF = re.compile(r'name="csrf" value="([^"]*)"|data-csrf="([^"]+)"')
Fields = Mapping[str, str | Sequence[str]]


class Visitor:
    """Keeps cookies, sends forms with what the last page put in them, and follows nothing by itself."""

    def __init__(
        self,
        app: ASGIApp,
        headers: Mapping[str, str] | None = None,
        *,
        host: str = HOST,
        address: tuple[str, int] = LOOPBACK,
    ) -> None:
        self.cookies: dict[str, str] = {}
        self.token = ""
        """What the last page of a session had in its forms."""
        self._host = host
        self._client = Client(app, {"host": host, **(headers or {})}, address)

    async def sign_in(self, person: str, secret: str = "") -> Answer:
        """In mode `local`."""
        return await self.shows(person=person, secret=secret)

    async def shows(self, **fields: str) -> Answer:
        """Sign in with these fields; then a page is looked at, for its token."""
        answer = await self.post("/sign-in", fields)
        assert answer.status == 303, text(answer)
        refused = await self.post("/sign-out", {"csrf": "none"})
        assert refused.status == 403, text(refused)
        assert self.token, "no page of the session was seen"
        return answer

    async def get(self, path: str, **headers: str) -> Answer:
        return self._seen(await self._client.send("GET", path, headers={**self._cookie(), **headers}))

    async def post(self, path: str, fields: Fields | None = None, **headers: str) -> Answer:
        """With the token, unless `fields` has another one."""
        said = {"csrf": self.token, **(fields or {})}
        body = urlencode(said, doseq=True).encode()
        kind = {"content-type": "application/x-www-form-urlencoded", "origin": f"http://{self._host}"}
        sent = {**kind, **self._cookie(), **headers}
        return self._seen(await self._client.send("POST", path, [body], sent))

    async def send(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        return self._seen(await self._client.send(method, path, [body], {**self._cookie(), **headers}))

    def _cookie(self) -> dict[str, str]:
        said = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        return {"cookie": said} if said else {}

    def _seen(self, answer: Answer) -> Answer:
        for line in answer.all("set-cookie"):
            name, _, rest = line.partition("=")
            value = rest.partition(";")[0].strip('"')
            if not value or "max-age=0" in line.lower():
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = value
        if found := CSRF.search(answer.body.decode(errors="replace")):
            self.token = unescape(found[1] or found[2] or "") or self.token
        return answer


def text(answer: Answer) -> str:
    """What a person reads of a page."""
    body = answer.body.decode()
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


def fields(answer: Answer, *names: str) -> dict[str, str]:
    """What a page put in the hidden fields of its forms."""
    found = dict(re.findall(r'name="([^"]+)" value="([^"]*)"', answer.body.decode()))
    return {name: unescape(found[name]) for name in names}
