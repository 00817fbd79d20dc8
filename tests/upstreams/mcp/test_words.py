"""The words of the protocol are written out here, and stay those of the SDK."""

import shutil
import subprocess
import sys
from pathlib import Path

import mcp_types
import mcp_types.version
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY

from holdfast.upstreams.mcp import protocol
from tests.requirements import requirement

DEMO = Path(__file__).parents[3] / "examples" / "demo"
"""One of its upstreams is an MCP server, whose tools are in the lock file."""
LOOK = """
import sys
from holdfast.cli import main
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
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


@requirement("PPL-1")
def test_a_command_that_talks_to_no_server_does_not_import_what_talks_to_servers(tmp_path: Path) -> None:
    place = shutil.copytree(DEMO, tmp_path / "demo", ignore=shutil.ignore_patterns("*.db*"))
    asked = [sys.executable, "-c", LOOK, "approvals", "--config", "holdfast.yaml"]
    seen = subprocess.run(asked, cwd=place, capture_output=True, text=True, timeout=60, check=False)
    assert (seen.returncode, seen.stderr) == (0, "")
