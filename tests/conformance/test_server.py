"""Does Holdfast serve MCP as the official suite wants it, in both eras?"""

from pathlib import Path

import pytest
import yaml

from tests.conformance.conftest import HERE
from tests.conformance.fixture.asked import ASKED
from tests.conformance.fixture.changing import EXTRA_TOOL, Changing
from tests.conformance.fixture.plain import PLAIN
from tests.conformance.runner import required, run, told
from tests.requirements import requirement

REVISIONS = {"2025-11-25": 30, "2026-07-28": 37}
each_revision = pytest.mark.parametrize("revision", REVISIONS)


@each_revision
def test_the_suite_asks_as_much_as_it_did_when_it_was_chosen(revision: str) -> None:
    assert len(required(revision, "server")) == REVISIONS[revision]


@each_revision
async def test_the_fixture_alone_meets_every_requirement(
    revision: str, fixture_url: str, tmp_path: Path
) -> None:
    """Otherwise a failure behind the gateway would say nothing about the gateway."""
    report = await run("server", "--url", fixture_url, revision=revision, results=tmp_path)
    assert not (unmet := report.unmet(revision, "server")), told(unmet)


@requirement("PRO-1", "NAM-5")
@each_revision
async def test_holdfast_before_the_fixture_meets_every_requirement(
    revision: str, gateway_url: str, tmp_path: Path
) -> None:
    report = await run("server", "--url", gateway_url, revision=revision, results=tmp_path)
    assert not (unmet := report.unmet(revision, "server")), told(unmet)


def test_the_overlay_classifies_every_tool_of_the_fixture() -> None:
    tools = {tool.name for tool in (*PLAIN, *ASKED, *Changing().changing, EXTRA_TOOL)}
    assert set(yaml.safe_load((HERE / "overlay.yaml").read_text())["tools"]) == tools
