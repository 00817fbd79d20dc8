"""How is the SDK's OAuth client run where the protected request is somebody else's to send?

The SDK's client is a generator that wants every request sent, the protected one among them. Here its own
requests are sent, with limits; the protected one is answered with the challenge the upstream gave.
"""

import asyncio
import logging
import re
import ssl
from functools import cache
from urllib.parse import urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError, OAuthTokenError

from holdfast.upstreams.mcp.oauth_grant import Challenge

REQUEST_S = 10.0
"""Longest wait for one answer of an authorization server."""
MOST_BYTES = 1 << 20
"""Metadata and tokens are some kilobytes."""
PASSING = frozenset({408, 425, 429})
"""Answers that say nothing about the next try, as every 5xx."""

_ERROR = re.compile(r"[a-z_]{1,64}")


class Stuck(Exception):
    """The flow did not end with tokens. The text is for whoever runs the gateway: hosts, no secrets."""

    def __init__(self, why: str, *, passing: bool = False) -> None:
        super().__init__(why)
        self.passing = passing
        """It may work later without anybody doing anything."""


class _Quiet(logging.Filter):
    """The SDK logs tracebacks that quote what the authorization server said: tokens, codes, states."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.exc_info = record.exc_text = None
        return True


logging.getLogger("mcp.client.auth.oauth2").addFilter(_Quiet())


class Flow:
    """One run of the SDK's client."""

    def __init__(self, provider: OAuthClientProvider) -> None:
        self._provider = provider
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
            async with httpx2.AsyncClient(timeout=REQUEST_S, verify=_trusted()) as http:
                await self._drive(http, challenge)
        except (OAuthTokenError, OAuthRegistrationError) as error:  # their texts quote whole answers
            what = "registering" if isinstance(error, OAuthRegistrationError) else "asking for a token"
            raise self._stuck(f"{what} failed") from None
        except OAuthFlowError as error:
            text = str(error)
            raise self._stuck("the state came back changed" if text.startswith("State") else text) from None
        except (httpx2.HTTPError, TimeoutError, OSError) as error:
            why = f"the authorization server does not answer ({type(error).__name__})"
            raise Stuck(why, passing=True) from None
        except ValueError:
            raise self._stuck("the authorization server's answer makes no sense") from None

    async def _drive(self, http: httpx2.AsyncClient, challenge: httpx2.Response | None) -> None:
        protected = httpx2.Request("POST", self._server_url)
        flow = self._provider.async_auth_flow(protected)
        try:
            wanted = await anext(flow)
            while wanted is not protected or challenge is not None:
                if wanted is protected and challenge is not None:
                    answer, challenge = challenge, None
                else:
                    answer = await self._send(http, wanted)
                wanted = await flow.asend(answer)
        except StopAsyncIteration:
            pass
        finally:
            await flow.aclose()

    async def _send(self, http: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
        if request.url.scheme != "https" and urlsplit(self._server_url).scheme == "https":
            raise OAuthFlowError(f"'{_place(request.url)}' is not https, and the upstream is")
        async with asyncio.timeout(REQUEST_S):
            received = await http.send(request, stream=True, follow_redirects=False)
            try:
                answer = await _read(received)
            finally:
                await received.aclose()
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


@cache
def _trusted() -> ssl.SSLContext:
    """Made once: it reads every certificate of the machine."""
    return httpx2.create_ssl_context()


async def _read(received: httpx2.Response) -> httpx2.Response:
    """The answer with its body, which has an end."""
    body = bytearray()
    async for chunk in received.aiter_bytes():
        body += chunk
        if len(body) > MOST_BYTES:
            raise OAuthFlowError(
                f"'{_place(received.request.url)}' answers with more than {MOST_BYTES} bytes"
            )
    kept = [(name, value) for name, value in received.headers.items() if name in ("content-type", "location")]
    answer = httpx2.Response(
        received.status_code, headers=kept, content=bytes(body), request=received.request
    )
    answer.next_request = received.next_request
    return answer


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
