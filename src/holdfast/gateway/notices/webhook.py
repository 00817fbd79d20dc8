"""How does a server hear of something? By a signed POST, after Standard Webhooks.

`webhook-id` is the notice's own name, the same however often it is tried: a receiver that has seen it answers
200 and does nothing. The signature covers id, time and body.
"""

import base64
import binascii
import hmac
from collections.abc import Callable, Sequence
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

import orjson

from holdfast.gateway.notices.outcome import Again, Never, Outcome, Sent
from holdfast.gateway.notices.pointed import Pointed
from holdfast.model import defaults
from holdfast.model.errors import NoEffect
from holdfast.model.moment import iso
from holdfast.model.people import Notice

if TYPE_CHECKING:
    from holdfast.upstreams.http.outgoing import Outgoing, Reply

ANSWER_BYTES = 1 << 20
"""Of an answer nobody looks at; a longer one counts as none."""
GONE = 410
PREFIX = "whsec_"


class Webhook:
    def __init__(self, url: str, secret: Pointed, outgoing: "Outgoing", now: Callable[[], float]) -> None:
        self._url, self._secret, self._outgoing, self._now = url, secret, outgoing, now

    async def send(
        self, notice: Notice, others: Sequence[Notice] = (), closed_until: float | None = None
    ) -> Outcome:
        from holdfast.upstreams.http.outgoing import NotFetched

        body = payload(notice)
        try:
            headers = signed(notice.id, self._now(), body, await self._secret.read())
            reply = await self._outgoing.ask(
                "POST",
                self._url,
                purpose="a notice",
                limit_bytes=ANSWER_BYTES,
                deadline_s=defaults.NOTICE_SEND_S,
                headers={"content-type": "application/json", **headers},
                body=body,
            )
        except (NotFetched, NoEffect, ValueError) as error:
            return Again(str(error))
        return self._judged(reply)

    def close(self) -> None:
        """Every request has its own connection."""

    def _judged(self, reply: "Reply") -> Outcome:
        if 200 <= reply.status < 300:
            return Sent()
        said = f"the receiver answered with HTTP status {reply.status}"
        if reply.status == GONE:
            return Never(f"{said}: it wants no more notices")
        if 300 <= reply.status < 400:
            said += "; no redirect is followed: configure where it leads"
        return Again(said, retry_after(reply.header("retry-after"), self._now()))


def payload(notice: Notice) -> bytes:
    kind = notice.body.get("event", notice.event)
    rest = {name: value for name, value in notice.body.items() if name != "event"}
    return orjson.dumps({"type": kind, "timestamp": iso(notice.at), "data": rest}, default=str)


def signed(id: str, now: float, body: bytes, secrets: str) -> dict[str, str]:
    """The headers that prove where a body is from. Several secrets, by spaces: one is being replaced."""
    stamp = str(int(now))
    text = b"%b.%b.%b" % (id.encode(), stamp.encode(), body)
    keys = [_key(one) for one in secrets.split()]
    if not keys:
        raise ValueError("the secret of the webhook is empty")
    signatures = " ".join(f"v1,{base64.b64encode(hmac.digest(key, text, 'sha256')).decode()}" for key in keys)
    return {"webhook-id": id, "webhook-timestamp": stamp, "webhook-signature": signatures}


def _key(secret: str) -> bytes:
    if not secret.startswith(PREFIX):
        return secret.encode()
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        key = b""
    if not key:  # anybody can sign with nothing
        raise ValueError("the secret of the webhook is not 'whsec_' and base64 after it")
    return key


def retry_after(said: str | None, now: float) -> float | None:
    """Seconds, whichever way they were said; None where that makes no sense."""
    if said is None:
        return None
    if said.isascii() and said.isdigit() and len(said) < 10:
        return float(said)
    try:
        at = parsedate_to_datetime(said)
    except (ValueError, OverflowError):
        return None
    return max((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() - now, 0.0)
