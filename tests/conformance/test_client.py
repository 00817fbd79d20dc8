"""Does Holdfast speak to MCP servers as the official suite wants it, in both eras?"""

import asyncio
import json
import shlex
import sys
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.conformance.conftest import HERE
from tests.conformance.driver import Asked, drive
from tests.conformance.runner import required, run, told
from tests.requirements import requirement

REVISIONS = {"2025-11-25": 18, "2026-07-28": 32}
each_revision = pytest.mark.parametrize("revision", REVISIONS)
CANNOT_APPLY: dict[str, str] = {}
"""Scenarios that a gateway cannot meet, each with the reason; there are none."""
GIVES_UP = {
    "auth/scope-retry-limit",  # no token is ever enough
    "auth/resource-mismatch",  # the metadata speak of another server
    "auth/metadata-issuer-mismatch",  # and here of another issuer
    "auth/iss-supported-missing",  # whoever answered does not say who it is, though it always would
    "auth/iss-wrong-issuer",  # or is somebody else
    "auth/iss-unexpected",
    "auth/iss-normalized",
}
"""Where refusing to go on is the right thing; everywhere else the calls succeed."""


@asynccontextmanager
async def driving() -> AsyncIterator[tuple[int, dict[str, str]]]:
    """Takes one scenario per connection, and keeps what went wrong in it."""
    troubles: dict[str, str] = {}

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = Asked(**json.loads(await reader.readline()))
        try:
            await drive(asked)
        except Exception as error:
            troubles[asked.scenario] = "".join(traceback.format_exception(error))
        writer.write(json.dumps(troubles.get(asked.scenario, "")).encode() + b"\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(one, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], troubles


@each_revision
def test_the_suite_asks_as_much_as_it_did_when_it_was_chosen(revision: str) -> None:
    assert len(required(revision, "client")) == REVISIONS[revision]
    assert GIVES_UP | set(CANNOT_APPLY) <= {name for each in REVISIONS for name in required(each, "client")}


@requirement("PRO-1")
@each_revision
async def test_holdfast_before_the_suites_servers_meets_every_requirement(
    revision: str, tmp_path: Path
) -> None:
    async with driving() as (port, troubles):
        command = shlex.join([sys.executable, "-I", "-S", str(HERE / "client.py"), str(port)])
        report = await run("client", "--command", command, revision=revision, results=tmp_path)
    unmet = {name: why for name, why in report.unmet(revision, "client").items() if name not in CANNOT_APPLY}
    assert not unmet, told(unmet)
    wanted = set(required(revision, "client"))
    failed = {name: why for name, why in troubles.items() if name in wanted - GIVES_UP}
    assert not failed, told(failed)
    assert wanted & GIVES_UP <= troubles.keys()
