"""Is an imported tool governed conservatively until somebody states the truth?"""

from typing import Any

import pytest

from holdfast.catalog.catalog import MemoryCatalog
from holdfast.catalog.imports.contract import provisional
from holdfast.catalog.lint import lint
from holdfast.model.vocabulary import ToolStatus
from tests.catalog.imports.descriptors import SERVERS, offered, real, take, tool
from tests.requirements import requirement


@requirement("CON-8")
def test_what_nobody_classified_is_dangerous_until_proven_otherwise() -> None:
    contract = provisional("files", tool(), "1.0.0", trust_annotations=False)
    assert contract.tool == "files.read_file"
    assert contract.identity.status is ToolStatus.PROVISIONAL
    assert contract.identity.upstream_name is None
    assert contract.effect == "HIGH_RISK_EXTERNAL"
    assert contract.transactional.undo == "none"
    assert contract.security.approval_floor == "operator"
    assert contract.security.required_scopes == ("files:read_file",)
    [entry] = contract.transactional.manifest
    assert (entry.resource, entry.operation, entry.scope) == ("files", "UPDATE", "unknown")
    assert contract.transactional.preview is not None
    assert contract.transactional.preview.read is None  # it shows arguments only, and says so
    assert (contract.runtime.reach, contract.runtime.timeout_class) == ("network", "long_running")
    assert not contract.honours_key


@requirement("CON-8")
def test_annotations_are_believed_only_where_the_operator_says_so() -> None:
    reads = tool(annotations={"readOnlyHint": True})
    doubted = provisional("files", reads, "1.0.0", trust_annotations=False)
    assert (doubted.effect, doubted.security.approval_floor) == ("HIGH_RISK_EXTERNAL", "operator")
    trusted = provisional("files", reads, "1.0.0", trust_annotations=True)
    assert (trusted.effect, trusted.security.approval_floor) == ("READ_ONLY", "none")
    assert trusted.transactional.manifest == ()


@requirement("CON-8")
@pytest.mark.parametrize(
    "hints",
    [
        {},
        {"readOnlyHint": False},
        {"destructiveHint": False},
        {"idempotentHint": True},
        {"readOnlyHint": True, "destructiveHint": True},
    ],
)
def test_no_other_annotation_lowers_anything(hints: dict[str, bool]) -> None:
    contract = provisional("files", tool(annotations=hints), "1.0.0", trust_annotations=True)
    assert (contract.effect, contract.security.approval_floor) == ("HIGH_RISK_EXTERNAL", "operator")


@requirement("CON-8", "NAM-5")
def test_the_upstreams_own_name_is_kept_where_it_is_another() -> None:
    contract = provisional("files", tool("admin.read"), "1.0.0", trust_annotations=False)
    assert contract.identity.upstream_name == "admin.read"
    assert contract.identity.name.startswith("admin-read-x")
    assert contract.security.required_scopes == (f"files:{contract.identity.name}",)


@requirement("CON-8", "NAM-5")
@pytest.mark.parametrize("server", SERVERS)
def test_a_real_servers_descriptors_are_shown_as_they_came(server: str) -> None:
    taken = take(*real(server))
    assert [offer.native for offer in taken.offers] == real(server)
    assert all(offer.verbatim for offer in taken.offers)
    assert taken.reports == ()


@requirement("CON-8")
@pytest.mark.parametrize("trust", [True, False])
@pytest.mark.parametrize("server", SERVERS)
def test_a_real_server_is_registered_whole(server: str, trust: bool) -> None:
    taken = take(*real(server), trust=trust)
    listed = MemoryCatalog().replace("files", taken.offers, taken.statuses)
    assert {listing.status for listing in listed} == {ToolStatus.PROVISIONAL}
    reading = {
        each["name"]
        for each in real(server)
        if trust and each.get("annotations", {}).get("readOnlyHint") is True
    }
    contracts = [listing.tool.contract for listing in listed]
    assert {one.identity.name for one in contracts if not one.effect.writes} == reading


@requirement("CON-8")
def test_a_description_beyond_the_contracts_limit_is_cut_there_and_nowhere_else() -> None:
    long = tool(description="word " * 2_000)
    [offer] = take(long).offers
    assert len(offer.contract.affordance.description) <= 4096
    assert offer.native == long


def test_bounds_of_64_bits_and_big_constants_are_no_obstacle() -> None:
    big: dict[str, Any] = {"type": "integer", "maximum": 2**63 - 1, "minimum": -(2**63), "default": 2**60}
    wide = tool(inputSchema={"type": "object", "properties": {"n": big, "m": {"enum": [2**70]}}})
    [contract] = offered(take(wide))
    assert contract.digest


@requirement("CON-4")
def test_the_lint_reads_imported_tools_too() -> None:
    vague = tool("do_stuff", inputSchema={"type": "object", "properties": {"sql": {"type": "string"}}})
    [contract] = offered(take(vague), "do_stuff")
    assert {"vague-name"} <= {finding.rule for finding in lint(contract)}
