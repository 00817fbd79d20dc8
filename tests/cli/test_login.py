"""Can a person sign in to an upstream from the command line, and out again?"""

import asyncio
import os
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import aiohttp
import pytest

from holdfast.cli.redirect import Redirects
from holdfast.model.errors import HoldfastError
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.system import SystemClock
from holdfast.upstreams.mcp.oauth import OAuthAuthorizer
from tests.requirements import requirement
from tests.upstreams.oauth.world import World, world

ADDRESS = "https://idp.example/authorize?state=right&client_id=x"


def configured(folder: Path, w: World, auth: str = "{type: oauth}") -> Path:
    path = folder / "holdfast.yaml"
    path.write_text(
        f"upstreams:\n  crm: {{mcp: {{url: '{w.url}', auth: {auth}}}}}\n"
        "egress: {allow: ['127.0.0.1']}\n"
        "auth: {people: {alice: {tenant: acme}, bob: {tenant: acme}}}\n"
    )
    return path


@asynccontextmanager
async def holdfast(config: Path, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    left_out = ("HOLDFAST_API_KEY", "HOLDFAST_APPROVER_SECRET", "HOLDFAST_CONFIG", "HOLDFAST_DEBUG")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "holdfast", *arguments, "--config", str(config)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if name not in left_out},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def ended(process: asyncio.subprocess.Process) -> tuple[int, str]:
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, (out + err).decode()


async def address(process: asyncio.subprocess.Process) -> str:
    """Where the command sends the person."""
    assert process.stdout is not None
    while line := (await process.stdout.readline()).decode():
        if line.startswith("http"):
            return line.strip()
    raise AssertionError("no address was printed")


async def browse(w: World, where: str) -> str:
    """A browser: it follows the redirect to the port the command listens on."""
    async with w.http.get(where) as answer:
        return await answer.text()


@requirement("AUT-1", "AUT-8")
async def test_a_person_signs_in_with_a_browser_and_out_again(tmp_path: Path) -> None:
    async with world() as w:
        config = configured(tmp_path, w)
        async with holdfast(config, "login", "crm", "--as", "alice") as process:
            assert "You are signed in" in await browse(w, await address(process))
            code, said = await ended(process)
        assert (code, "signed in  crm  for alice" in said) == (0, True), said
        assert "holdfast login crm --gateway" in said
        assert [secret for secret in w.office.secrets() if secret in said] == []
        async with SqliteStore(tmp_path / "holdfast.db", SystemClock()) as store:
            gateway = OAuthAuthorizer("crm", w.url, store.tokens)
            assert await w.call(gateway, "acme/alice/agent") == (200, "alice")
        for code_then, said_then in ((0, "signed out  crm  for alice"), (3, "there is no such sign-in")):
            async with holdfast(config, "logout", "crm", "--as", "alice") as process:
                code, said = await ended(process)
            assert (code, said_then in said) == (code_then, True), said
    with closing(sqlite3.connect(tmp_path / "holdfast.db")) as database:
        acts = [body for (body,) in database.execute("SELECT body FROM record WHERE kind = 'control'")]
    assert ["sign in" in body or "sign out" in body for body in acts] == [True, True]


async def test_a_second_sign_in_comes_back_to_the_port_that_is_registered(tmp_path: Path) -> None:
    async with world() as w:
        config = configured(tmp_path, w, "{type: oauth, shared: true}")
        for _ in range(2):
            async with holdfast(config, "login", "crm") as process:
                await browse(w, await address(process))
                assert (await ended(process))[0] == 0
        assert w.office.count("/register") == 1


async def test_nobody_is_waited_for_longer_than_said(tmp_path: Path) -> None:
    async with world() as w:
        async with holdfast(
            configured(tmp_path, w), "login", "crm", "--as", "alice", "--wait", "1"
        ) as process:
            code, said = await ended(process)
        assert (code, "nobody signed in within 1 s; run it again" in said) == (1, True), said


@pytest.mark.parametrize(
    ("auth", "name", "told"),
    [
        ("{type: oauth}", "mail", "there is no upstream 'mail'; known: 'crm'"),
        ("{type: client_credentials, client_id: a, client_secret: b}", "crm", "nobody signs in to 'crm'"),
    ],
)
async def test_a_sign_in_that_makes_no_sense_is_told_so(
    tmp_path: Path, auth: str, name: str, told: str
) -> None:
    async with world() as w, holdfast(configured(tmp_path, w, auth), "login", name) as process:
        code, said = await ended(process)
        assert (code, told in said) == (2, True), said


@pytest.mark.parametrize(
    "request_line",
    [
        "GET /callback?code=theirs&state=wrong",
        "GET /callback?code=theirs",
        "GET /?state=right&code=theirs",
        "POST /callback?state=right&code=theirs",
    ],
)
async def test_only_the_redirect_of_this_sign_in_is_listened_to(request_line: str) -> None:
    async with Redirects(0) as redirects, aiohttp.ClientSession() as http:
        waiting = asyncio.create_task(redirects.wait(ADDRESS, 30))
        await asyncio.sleep(0)
        verb, _, target = request_line.partition(" ")
        base = redirects.uri.removesuffix("/callback")
        async with http.request(verb, base + target) as answer:
            assert answer.status == 404
        async with http.get(f"{base}/callback?code=mine&state=right&iss=me") as answer:
            assert (answer.status, "signed in" in await answer.text()) == (200, True)
        assert await waiting == ("mine", "right", "me")


async def test_a_refused_sign_in_says_why_in_one_word() -> None:
    async with Redirects(0) as redirects, aiohttp.ClientSession() as http:
        waiting = asyncio.create_task(redirects.wait(ADDRESS, 30))
        await asyncio.sleep(0)
        async with http.get(f"{redirects.uri}?error=access_denied&state=right") as answer:
            assert "refused" in await answer.text()
        with pytest.raises(HoldfastError, match="the sign-in was refused: access_denied"):
            await waiting


async def test_a_port_in_use_is_told_and_the_next_one_is_taken() -> None:
    async with Redirects(0) as first:
        taken = int(first.uri.rpartition(":")[2].partition("/")[0])
        with pytest.raises(HoldfastError, match=f"port {taken} of this machine is in use"):
            async with Redirects(taken):
                pass
        async with Redirects(taken, 0) as second:
            assert second.uri != first.uri
