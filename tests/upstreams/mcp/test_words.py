"""The words of the protocol are written out here, and stay those of the SDK."""

import shutil
import subprocess
import sys
from pathlib import Path

import mcp_types
import mcp_types.version
import pytest
from mcp.shared.inbound import NAME_BEARING_METHODS
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY

from holdfast.upstreams.mcp import protocol
from tests.requirements import requirement

DEMO = Path(__file__).parents[3] / "examples" / "demo"
"""One of its upstreams is an MCP server, whose tools are in the lock file."""
CALL = """
import sys
from holdfast.cli import main
try:
    main(["call", "desk.list_tickets"])
except SystemExit as ended:
    assert not ended.code, ended.code
"""
SERVE = """
import asyncio, sys
from holdfast.gateway import Gateway
from holdfast.servers.app import build

async def serve():
    async with Gateway.open("holdfast.yaml") as gateway, build(gateway).state.mcp.running():
        assert (await gateway.ready())["ready"]

asyncio.run(serve())
"""
LOOK = """
found = sorted(name for name in sys.modules if name.partition(".")[0] in ("mcp", "mcp_types"))
sys.exit(", ".join(found) or 0)
"""


@requirement("PRO-1")
def test_the_words_are_those_of_the_sdk() -> None:
    keys = [name for name in vars(protocol) if name.endswith("_META_KEY")]
    ours = {name: getattr(protocol, name) for name in keys}
    theirs = {name: getattr(mcp_types, name, SUBSCRIPTION_ID_META_KEY) for name in keys}
    assert len(ours) == 6
    assert ours == theirs
    for name in (
        "HANDSHAKE_PROTOCOL_VERSIONS",
        "MODERN_PROTOCOL_VERSIONS",
        "LATEST_HANDSHAKE_VERSION",
        "LATEST_MODERN_VERSION",
    ):
        assert getattr(protocol, name) == getattr(mcp_types.version, name)
    assert protocol.NAME_BEARING_METHODS == NAME_BEARING_METHODS


@pytest.mark.parametrize("work", [CALL, SERVE], ids=["a call", "a server"])
@requirement("PPL-1")
def test_nothing_waits_for_the_sdk_to_be_imported_before_a_client_of_ours_speaks_mcp(
    tmp_path: Path, work: str
) -> None:
    place = shutil.copytree(DEMO, tmp_path / "demo", ignore=shutil.ignore_patterns("*.db*"))
    asked = [sys.executable, "-c", work + LOOK]
    seen = subprocess.run(asked, cwd=place, capture_output=True, text=True, timeout=60, check=False)
    assert seen.returncode == 0, seen.stderr
