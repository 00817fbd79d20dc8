"""Does a real OpenID provider take what the gateway says of a caller, and refuse what it does not say?"""

from base64 import urlsafe_b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from holdfast.identity.subject import Subjects
from holdfast.model.egress.rules import Rules
from holdfast.model.errors import Code, NoEffect
from holdfast.system import SystemClock
from holdfast.upstreams.http.guard import Guard
from holdfast.upstreams.http.outgoing import Outgoing
from holdfast.upstreams.mcp.exchanged import Exchanger, Wanted
from tests.conformance.started import started
from tests.credentials.sts import Hand
from tests.npm.installed import NODE, packages
from tests.requirements import requirement
from tests.upstreams.mcp.callers import attempt, upstream
from tests.upstreams.mcp.places import serving
from tests.upstreams.mcp.rogue_http import RogueHttp, Visit

HERE = Path(__file__).parent
NOW = SystemClock().now


class OtherHand(Hand):
    """Another gateway's key."""

    def sign(self, tenant: str, purpose: str, data: bytes) -> str:
        return super().sign(f"other {tenant}", purpose, data)


async def done(visit: Visit) -> None:
    visit.answer(content=[], structuredContent={"text": "done"})


@asynccontextmanager
async def provider(subjects: Subjects, log: Path) -> AsyncIterator[str]:
    """Runs beside the gateway's published keys; gives its token endpoint."""

    async def keys(request: Request) -> Response:
        return JSONResponse(subjects.jwks())

    async with serving(Starlette(routes=[Route("/jwks.json", keys)])) as origin:
        command = (str(NODE), str(HERE / "exchange.mjs"), str(packages()), f"{origin}/jwks.json")
        with started(command, r"^issuer (\S+)$", log) as issuer:
            yield f"{issuer}/token"


def exchanger(token_url: str, subjects: Subjects, audience: str, **wanted: Any) -> Exchanger:
    asked = {"client_id": "gateway", "client_secret": "gateway-secret", "scopes": ("tools",), **wanted}
    said = Wanted(token_url=token_url, resource="https://shop.example/mcp", **asked)
    outgoing = Outgoing(Guard(Rules(written=(token_url,))))
    return Exchanger(
        "shop", said, lambda who: subjects.issue("acme", who or "gateway", "bot", audience), outgoing, NOW
    )


@requirement("AUT-3", "AUT-7")
async def test_a_real_provider_makes_a_token_for_the_upstream_of_what_the_gateway_says(
    tmp_path: Path,
) -> None:
    subjects, rogue = Subjects(Hand(), "https://gateway.example", NOW), RogueHttp(done)
    async with provider(subjects, tmp_path / "log") as token_url, rogue.open() as target:
        signs = exchanger(token_url, subjects, token_url)
        async with upstream(replace(target, auth=signs)) as shop:
            await shop.invoke(attempt("tool", principal="ursula-iguaran/bot"))
    token = rogue.visits[-1].headers["authorization"].removeprefix("Bearer ")
    claims = orjson.loads(urlsafe_b64decode(token.split(".")[1] + "=="))
    assert claims["aud"] == "https://shop.example/mcp"
    assert claims["scope"] == "tools"
    assert claims["act"]["sub"] != claims["on_behalf_of"]
    assert "ursula" not in f"{claims}"


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        ({"hand": OtherHand()}, Code.PERMISSION_DENIED),
        ({"audience": "https://elsewhere.example/token"}, Code.PERMISSION_DENIED),
        ({"client_secret": "mistyped"}, Code.PERMISSION_DENIED),
        ({"past_s": 3600.0}, Code.PERMISSION_DENIED),
    ],
    ids=["key", "audience", "client", "expired"],
)
@requirement("AUT-8")
async def test_what_the_gateway_does_not_say_is_refused_and_nothing_is_sent(
    spoil: dict[str, Any], code: Code, tmp_path: Path
) -> None:
    said = Subjects(Hand(), "https://gateway.example", NOW)
    past_s = spoil.pop("past_s", 0.0)
    subjects = Subjects(spoil.pop("hand", Hand()), "https://gateway.example", lambda: NOW() - past_s)
    async with provider(said, tmp_path / "log") as token_url:
        signs = exchanger(token_url, subjects, spoil.pop("audience", token_url), **spoil)
        with pytest.raises(NoEffect) as told:
            await signs.headers("acme/ada/bot")
        await signs.close()
    assert told.value.code is code
