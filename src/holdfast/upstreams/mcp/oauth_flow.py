"""How is the SDK's OAuth client run where the protected request is somebody else's to send?

The SDK's client is a generator that wants every request sent, the protected one among them. Here its own
requests are sent, with limits; the protected one is answered with the challenge the upstream gave.
"""

import logging
import re
from urllib.parse import urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError, OAuthTokenError

from holdfast.upstreams.http.outgoing import NotFetched, Outgoing, Reply
from holdfast.upstreams.mcp.oauth_grant import Challenge

REQUEST_S = 10.0
"""Longest wait for one answer of an authorization server."""
MOST_BYTES = 1 << 20
"""Metadata and tokens are some kilobytes."""
PASSING = frozenset({408, 425, 429})
"""Answers that say nothing about the next try, as every 5xx."""

BARRED = (
    "the egress rules do not let the gateway connect to the authorization server; if it is to be used, "
    "name it as 'auth.issuer' or list it under 'egress.allow'"
)

_ERROR = re.compile(r"[a-z_]{1,64}")
_OURS = frozenset({"host", "content-length", "connection", "accept-encoding", "user-agent"})
"""Headers that are written by whoever sends."""


class Stuck(Exception):
    """The flow did not end with tokens. The text is for whoever runs the gateway: hosts, no secrets."""

    def __init__(self, why: str, *, passing: bool = False, barred: bool = False) -> None:
        super().__init__(why)
        self.passing = passing
        """It may work later without anybody doing anything."""
        self.barred = barred
        """Nobody was asked: the egress rules did not allow it. What is held is as good as before."""


class _Quiet(logging.Filter):
    """The SDK logs tracebacks that quote what the authorization server said: tokens, codes, states."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.exc_info = record.exc_text = None
        return True


logging.getLogger("mcp.client.auth.oauth2").addFilter(_Quiet())


class Flow:
    """One run of the SDK's client."""

    def __init__(self, provider: OAuthClientProvider, outgoing: Outgoing) -> None:
        self._provider, self._outgoing = provider, outgoing
        self._server_url = provider.context.server_url
        self._last: tuple[int, str] | None = None

    async def refresh(self) -> None:
        """Renew what the grant has; `Stuck` where that cannot be done."""
        before = await self._provider.context.storage.get_tokens()
        self._provider.context.token_expiry_time = 1.0  # long ago
        await self._run(None)
        after = self._provider.context.current_tokens
        if after is None or before is None or after.access_token == before.access_token:
            raise self._stuck("the refresh token was not taken")

    async def answer(self, challenge: Challenge) -> None:
        """Obtain what a challenge asks for."""
        await self._run(challenge.response())
        if self._provider.context.current_tokens is None:
            raise self._stuck("no token was given")

    async def _run(self, challenge: httpx2.Response | None) -> None:
        try:
            await self._drive(challenge)
        except (OAuthTokenError, OAuthRegistrationError) as error:  # their texts quote whole answers
            what = "registering" if isinstance(error, OAuthRegistrationError) else "asking for a token"
            raise self._stuck(f"{what} failed") from None
        except OAuthFlowError as error:
            text = str(error)
            raise self._stuck("the state came back changed" if text.startswith("State") else text) from None
        except NotFetched as error:
            if error.barred:
                raise Stuck(BARRED, barred=True) from None
            raise Stuck(f"the authorization server does not answer ({error})", passing=True) from None
        except ValueError:
            raise self._stuck("the authorization server's answer makes no sense") from None

    async def _drive(self, challenge: httpx2.Response | None) -> None:
        protected = httpx2.Request("POST", self._server_url)
        flow = self._provider.async_auth_flow(protected)
        try:
            wanted = await anext(flow)
            while wanted is not protected or challenge is not None:
                if wanted is protected and challenge is not None:
                    answer, challenge = challenge, None
                else:
                    answer = await self._send(wanted)
                wanted = await flow.asend(answer)
        except StopAsyncIteration:
            pass
        finally:
            await flow.aclose()

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.scheme != "https" and urlsplit(self._server_url).scheme == "https":
            raise OAuthFlowError(f"'{_place(request.url)}' is not https, and the upstream is")
        body = await request.aread()
        received = await self._outgoing.ask(
            request.method,
            str(request.url),
            purpose="a sign-in",
            limit_bytes=MOST_BYTES,
            deadline_s=REQUEST_S,
            headers={name: said for name, said in request.headers.items() if name not in _OURS},
            body=body or (b"" if request.method == "POST" else None),
        )
        answer = _answer(received, request)
        self._last = (answer.status_code, _error(answer))
        return answer

    def _stuck(self, why: str) -> Stuck:
        if self._last is None:
            return Stuck(why)
        status, error = self._last
        if status < 400:
            return Stuck(why)
        told = f"{why}: the authorization server answered {status}{f' {error!r}' if error else ''}"
        return Stuck(told, passing=status >= 500 or status in PASSING)


def _answer(received: Reply, request: httpx2.Request) -> httpx2.Response:
    """As the SDK wants it, with nothing in it that the SDK does not read."""
    told = [(name, received.header(name)) for name in ("content-type", "location")]
    kept = [(name, value) for name, value in told if value is not None]
    return httpx2.Response(received.status, headers=kept, content=received.body, request=request)


def _error(answer: httpx2.Response) -> str:
    """RFC 6749's error code; nothing else of an answer is ever told."""
    if answer.status_code < 400:
        return ""
    try:
        said = answer.json()["error"]
    except (ValueError, KeyError, TypeError):
        return ""
    return said if isinstance(said, str) and _ERROR.fullmatch(said) else ""


def _place(url: httpx2.URL) -> str:
    return str(url.copy_with(userinfo=b"", query=None, fragment=None))
