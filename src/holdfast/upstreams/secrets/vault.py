"""A secret in the KV store, version 2, of HashiCorp Vault or OpenBao.

`GET /v1/<mount>/data/<path>` answers 200 with `data.data` and `data.metadata`, 404 for what is not there
(with `data.metadata` where a version was deleted or destroyed), 403 where the token may not, 503 while it is
sealed. A version that is deleted at a time has that time as its end.
"""

import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

import orjson

from holdfast.model import defaults
from holdfast.model.errors import SecretError
from holdfast.model.secret import Secret
from holdfast.ports import SecretProvider
from holdfast.upstreams.http.outgoing import NotFetched, Outgoing
from holdfast.upstreams.secrets.reading import secret

MOST_BYTES = 1024 * 1024
PASSING = frozenset({408, 412, 429, 472, 473, 500, 502, 503, 504})
"""Sealed, standing by, behind in its replication, overloaded: another answer may come in a moment."""


class VaultSecret:
    def __init__(
        self,
        address: str,
        mount: str,
        path: str,
        field: str,
        token: SecretProvider,
        outgoing: Outgoing,
        *,
        namespace: str | None = None,
        version: int | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`token` opens the vault itself; it is read anew each time, so that it can be renewed beside us."""
        self._now = now
        self._outgoing, self._field, self._token, self._namespace = outgoing, field, token, namespace
        self._url = f"{address.rstrip('/')}/v1/{_path(mount)}/data/{_path(path)}"
        if version is not None:
            self._url += f"?version={version}"
        self._named = f"'{mount.strip('/')}/{path.strip('/')}'"

    async def read(self) -> Secret:
        try:
            reply = await self._outgoing.ask(
                "GET",
                self._url,
                purpose="a secret",
                limit_bytes=MOST_BYTES,
                deadline_s=defaults.SECRET_READ_S,
                headers=await self._headers(),
            )
        except NotFetched as error:
            raise SecretError(f"the vault cannot be asked: {error}", passing=not error.barred) from None
        body = _json(reply.body)
        if reply.status != 200:
            raise self._refused(reply.status, body)
        return self._found(body)

    async def _headers(self) -> dict[str, str]:
        try:
            token = await self._token.read()
        except SecretError as error:
            raise SecretError(f"the vault's token cannot be had: {error}", passing=error.passing) from None
        headers = {"x-vault-token": token.text, "x-vault-request": "true", "accept": "application/json"}
        return headers if self._namespace is None else headers | {"x-vault-namespace": self._namespace}

    def _refused(self, status: int, body: Mapping[str, Any]) -> SecretError:
        match status:
            case 403:
                return SecretError(f"the vault does not let this gateway read {self._named}; see its policy")
            case 404 if (gone := _metadata(body)) is not None:
                how = "destroyed" if gone.get("destroyed") is True else "deleted"
                return SecretError(f"version {gone.get('version')} of {self._named} was {how} in the vault")
            case 404:
                return SecretError(f"the vault has no {self._named}; is there a KV store version 2?")
        text = f"the vault answered {status} for {self._named}"
        return SecretError(text, passing=status in PASSING)

    def _found(self, body: Mapping[str, Any]) -> Secret:
        data, about = _within(body, "data", "data"), _metadata(body) or {}
        if data is None or "version" not in about:
            raise SecretError(f"what the vault answered for {self._named} is no KV store version 2")
        text = data.get(self._field)
        if not isinstance(text, str):
            known = ", ".join(map(repr, sorted(data))) or "none"
            raise SecretError(f"{self._named} has no text field {self._field!r}; known are {known}")
        ends = [_end(about.get("deletion_time")), self._leased(body.get("lease_duration"))]
        end = min((at for at in ends if at is not None), default=None)
        return secret(text, version=str(about["version"]), expires_at=end)

    def _leased(self, seconds: Any) -> float | None:
        """A lease of 0 is none."""
        return self._now() + seconds if isinstance(seconds, int) and seconds > 0 else None

    async def close(self) -> None:
        await self._token.close()


def _path(text: str) -> str:
    """As it goes into a URL: no dots that climb, nothing that ends a path."""
    steps = [step for step in text.split("/") if step not in ("", ".", "..")]
    return "/".join(quote(step, safe="") for step in steps)


def _json(body: bytes) -> Mapping[str, Any]:
    try:
        found = orjson.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _within(body: Mapping[str, Any], *path: str) -> Mapping[str, Any] | None:
    found: Any = body
    for step in path:
        found = found.get(step) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None


def _metadata(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return _within(body, "data", "metadata")


def _end(text: Any) -> float | None:
    """Of RFC 3339, to the nanosecond; empty where no end was set."""
    if not isinstance(text, str) or not text:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise SecretError(f"the vault says that it ends at {text[:40]!r}, which is no time") from None
