"""What may a page of the console do in a browser, and which requests act? Over every page that is there."""

import re
from collections.abc import AsyncIterator, Iterator

import pytest

from holdfast.gateway import Gateway
from holdfast.identity.keys import mint
from holdfast.servers.app import build
from holdfast.servers.console.security import POLICY
from holdfast.servers.console.site import DOORS, PAGES
from holdfast.servers.console.writing import asset
from holdfast.testing import ManualClock
from tests.console.conftest import PEOPLE, console
from tests.console.visitor import Visitor, text
from tests.requirements import requirement
from tests.servers.asgi import Answer

FORM = {"content-type": "application/x-www-form-urlencoded", "origin": "http://127.0.0.1:8080"}


def concrete(path: str) -> str:
    """A path of the table with names in the place of its parameters."""
    return re.sub(r"\{[^}]+\}", "none", path)


POSTED = [concrete(path) for path, methods in PAGES.items() if "POST" in methods]
READ = [concrete(path) for path, methods in PAGES.items() if "GET" in methods and "events" not in path]


def forged(token: str) -> Iterator[tuple[str, bytes, dict[str, str]]]:
    """What another site's page, or a careless proxy, could send with somebody's cookie."""
    good = f"csrf={token}".encode()
    yield "no token", b"decision=approve", FORM
    yield "an empty token", b"csrf=&decision=approve", FORM
    yield "somebody else's token", b"csrf=" + b"0" * 64, FORM
    yield (
        "the token in the header of another kind of body",
        b'{"csrf": "' + token.encode() + b'"}',
        {"content-type": "application/json"},
    )
    yield "as text", good, {"content-type": "text/plain"}
    yield "another origin", good, {**FORM, "origin": "https://evil.example"}
    yield "no origin to speak of", good, {**FORM, "origin": "null"}
    yield "another port", good, {**FORM, "origin": "http://127.0.0.1:9999"}
    yield "another site", good, {**FORM, "sec-fetch-site": "cross-site"}
    yield "another host of the site", good, {**FORM, "sec-fetch-site": "same-site"}


@pytest.fixture(params=["local", "api_key"])
async def signed_in(request: pytest.FixtureRequest, clock: ManualClock) -> AsyncIterator[Visitor]:
    """Ana, in a mode where the gateway turns other sites away by itself, and in one where it does not."""
    key, entry = mint("ana")
    mode = {"mode": "api_key", "keys": [entry]} if request.param == "api_key" else {}
    async with console(clock, {"auth": {"people": PEOPLE, **mode}}) as gateway:
        visitor = Visitor(build(gateway))
        await visitor.shows(**({"credential": key} if mode else {"person": "ana"}))
        yield visitor


@requirement("PPL-2")
@pytest.mark.parametrize("path", POSTED)
async def test_nothing_acts_that_was_not_sent_by_our_own_page(signed_in: Visitor, path: str) -> None:
    visitor = signed_in
    for name, body, headers in forged(visitor.token):
        answer = await visitor.send("POST", path, body, **headers)
        assert answer.status in (403, 415), f"{name}: {answer.status} {text(answer)}"
        assert (await visitor.get("/")).status == 200, f"{name}: still signed in"


async def test_the_token_may_come_in_a_header_as_well(visitor: Visitor) -> None:
    await visitor.sign_in("ana")
    answer = await visitor.send("POST", "/sign-out", b"a=b", **FORM, **{"x-csrf": visitor.token})
    assert answer.status == 303


@pytest.mark.parametrize("path", POSTED)
async def test_nothing_acts_by_a_link(visitor: Visitor, path: str) -> None:
    await visitor.sign_in("ana")
    for method in ("GET", "HEAD", "PUT", "DELETE"):
        answer = await visitor.send(method, f"{path}?csrf={visitor.token}&decision=approve")
        assert answer.status in (404, 405) or (method in ("GET", "HEAD") and path in READ), answer.status
        assert (await visitor.get("/")).status == 200


@pytest.mark.parametrize("path", POSTED)
async def test_nobody_acts_who_is_not_signed_in(visitor: Visitor, path: str) -> None:
    answer = await visitor.post(path, {"decision": "approve"})
    place, _, said = answer.headers["location"].partition("?")
    assert (answer.status, place) == (303, "/sign-in")
    assert ("undone=1" in said) == (path != "/sign-out")


async def test_the_token_of_one_session_is_no_good_in_another(visitor: Visitor) -> None:
    await visitor.sign_in("ana")
    anas = visitor.token
    await visitor.post("/sign-out")
    await visitor.sign_in("ben")
    assert visitor.token != anas
    assert (await visitor.post("/sign-out", {"csrf": anas})).status == 403


@pytest.mark.parametrize("headers", [{"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}])
async def test_nobody_is_signed_in_by_another_site(visitor: Visitor, headers: dict[str, str]) -> None:
    answer = await visitor.post("/sign-in", {"person": "ana"}, **headers)
    assert answer.status == 403
    assert visitor.cookies == {}


async def test_what_stands_before_the_gateway_may_call_it_by_another_name(clock: ManualClock) -> None:
    config = {"auth": {"people": PEOPLE, "mode": "api_key"}, "base_url": "https://gateway.example.com/"}
    async with console(clock, config) as gateway:
        visitor = Visitor(build(gateway), host="10.0.0.7:8080")
        origin = {"origin": "https://gateway.example.com"}
        assert (await visitor.post("/sign-in", {"credential": "x"}, **origin)).status == 401
        assert (
            await visitor.post("/sign-in", {"credential": "x"}, origin="https://other.example")
        ).status == 403


def guarded(answer: Answer) -> None:
    """What every page says to a browser."""
    said = answer.headers
    assert said["content-security-policy"] == POLICY
    assert said["cache-control"] == "no-store"
    assert said["x-frame-options"] == "DENY"
    assert "frame-ancestors 'none'" in POLICY
    assert said["x-content-type-options"] == "nosniff"
    assert said["referrer-policy"] == "same-origin"
    assert said["cross-origin-opener-policy"] == "same-origin"


@requirement("PPL-2")
@pytest.mark.parametrize("path", [*READ, *map(concrete, DOORS)])
async def test_every_page_is_kept_by_nobody_and_runs_nothing_but_our_files(
    visitor: Visitor, path: str
) -> None:
    guarded(await visitor.get(path))
    await visitor.sign_in("ana")
    answer = await visitor.get(path)
    guarded(answer)
    page = answer.body.decode()
    assert not re.search(r"<script(?![^>]*\ssrc=)|\sstyle=|\son[a-z]+=|javascript:|hx-on|<style", page, re.I)
    sources = re.findall(r"""<(?:script|link|img)[^>]*(?:src|href)=["']([^"']+)""", page)
    assert all(source.startswith("/assets/") for source in sources), sources


async def test_the_policy_allows_no_inline_script_and_no_other_host() -> None:
    assert "unsafe" not in POLICY
    assert "http" not in POLICY
    assert "*" not in POLICY
    assert POLICY.startswith("default-src 'none'")


async def test_what_is_refused_is_guarded_too(visitor: Visitor) -> None:
    await visitor.sign_in("ana")
    guarded(await visitor.post("/sign-out", {"csrf": "x"}))
    guarded(await visitor.post("/sign-in", {"person": "nobody"}))
    guarded(await visitor.post("/sign-in", {"person": "ana"}, **{"sec-fetch-site": "cross-site"}))
    guarded(await visitor.post("/sign-out"))


async def test_an_asset_is_kept_for_ever_under_its_own_name_only(visitor: Visitor) -> None:
    answer = await visitor.get(asset("console.js"))
    assert answer.status == 200
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    name = asset("console.js").rpartition("/")[2]
    for path in (f"/assets/000000000000/{name}", "/assets/x/../site.py", "/assets/x/%2e%2e/site.py"):
        assert (await visitor.get(path)).status == 404


@pytest.mark.parametrize("path", ["/sign-in", "/sign-out"])
async def test_forms_are_held_to_a_size_and_a_number_of_fields(visitor: Visitor, path: str) -> None:
    await visitor.sign_in("ana")
    huge = f"csrf={visitor.token}&secret=".encode() + b"a" * 200_000
    assert (await visitor.send("POST", path, huge, **FORM)).status == 413
    many = f"csrf={visitor.token}&".encode() + b"&".join(b"a=b" for _ in range(5_000))
    assert (await visitor.send("POST", path, many, **FORM)).status == 400
    for odd in (b"\xff\xfe", b"&&&", b"%ff%fe=\xff"):
        assert (await visitor.send("POST", path, odd, **FORM)).status in (400, 403)
    assert (await visitor.get("/")).status == 200


async def test_where_there_is_no_console_there_is_a_page_that_says_so(clock: ManualClock) -> None:
    async with console(clock, {"console": {"enabled": False}}) as gateway:
        visitor = Visitor(build(gateway))
        home = await visitor.get("/")
        assert home.status == 200
        assert "console.enabled" in text(home)
        for path in [*READ, *POSTED, "/sign-in", asset("console.js")]:
            assert (await visitor.get(path)).status == 404 or path == "/"


async def test_headers_of_a_program_are_not_believed_here(gateway: Gateway, visitor: Visitor) -> None:
    answer = await visitor.get("/", **{"x-holdfast-user": "ana"})
    assert answer.status == 303
    await visitor.sign_in("ben")
    page = await visitor.get("/", **{"x-holdfast-user": "ana", "x-holdfast-agent": "bot"})
    assert '<span class="who"' in page.body.decode()
    assert "ben" in text(page)
