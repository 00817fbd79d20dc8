"""Is the likely effect of a tool guessed with reasons, and never believed by itself?"""

from typing import Any

import pytest

from holdfast.catalog.imports.infer import infer
from tests.catalog.imports.descriptors import offered, real, take, tool
from tests.requirements import requirement


def guess(name: str, trust: bool = False, **members: Any) -> str:
    made = tool(name, **{"description": "Something.", "inputSchema": {"type": "object"}, **members})
    return infer(made, trust_annotations=trust).effect.value


@requirement("CON-8")
@pytest.mark.parametrize(
    ("name", "effect"),
    [
        ("get_user", "READ_ONLY"),
        ("listUsers", "READ_ONLY"),
        ("read-file", "READ_ONLY"),
        ("search_orders", "READ_ONLY"),
        ("describe", "READ_ONLY"),
        ("fetch", "READ_ONLY"),
        ("createIssue", "MEDIUM_RISK_WRITE"),
        ("write_file", "MEDIUM_RISK_WRITE"),
        ("github_update_issue", "MEDIUM_RISK_WRITE"),
        ("move", "MEDIUM_RISK_WRITE"),
        ("delete_branch", "HIGH_RISK_EXTERNAL"),
        ("send_mail", "HIGH_RISK_EXTERNAL"),
        ("deployService", "HIGH_RISK_EXTERNAL"),
        ("execute_query", "HIGH_RISK_EXTERNAL"),
        ("shell", "HIGH_RISK_EXTERNAL"),
        ("run_sql", "HIGH_RISK_EXTERNAL"),
        ("refund_order", "CRITICAL_MUTATION"),
        ("pay", "CRITICAL_MUTATION"),
        ("drop_table", "CRITICAL_MUTATION"),
        ("get_and_delete", "HIGH_RISK_EXTERNAL"),
        ("list_then_purge", "CRITICAL_MUTATION"),
        ("frobnicate", "HIGH_RISK_EXTERNAL"),
        ("x", "HIGH_RISK_EXTERNAL"),
    ],
)
def test_a_name_tells_the_likely_effect(name: str, effect: str) -> None:
    assert guess(name) == effect


@requirement("CON-8")
def test_every_guess_has_its_reasons() -> None:
    made = infer(tool("delete_file", description="Removes a file"), trust_annotations=False)
    assert made.reasons == ("its name says 'delete'", "its description begins with 'remove'")
    assert not made.trusted
    assert infer(tool("zap", description=""), trust_annotations=False).reasons == (
        "nothing says what it does",
    )


@requirement("CON-8")
def test_the_gravest_of_all_that_is_said_counts() -> None:
    assert guess("get_x", description="Deletes it and returns it") == "HIGH_RISK_EXTERNAL"
    assert guess("get_x", inputSchema={"properties": {"sql": {}}}) == "HIGH_RISK_EXTERNAL"
    assert guess("delete_x", annotations={"readOnlyHint": True}) == "HIGH_RISK_EXTERNAL"
    assert guess("get_x", annotations={"destructiveHint": True}) == "HIGH_RISK_EXTERNAL"
    assert guess("zap", annotations={"readOnlyHint": True}) == "READ_ONLY"


@requirement("CON-8")
@pytest.mark.parametrize(
    ("hints", "effect"),
    [
        ({"readOnlyHint": True}, "READ_ONLY"),
        ({"readOnlyHint": True, "openWorldHint": True}, "READ_ONLY"),
        ({"readOnlyHint": True, "destructiveHint": True}, "HIGH_RISK_EXTERNAL"),
        ({"readOnlyHint": False}, "MEDIUM_RISK_WRITE"),
        ({"destructiveHint": True}, "HIGH_RISK_EXTERNAL"),
        ({"destructiveHint": False}, "MEDIUM_RISK_WRITE"),
        ({"destructiveHint": False, "openWorldHint": False}, "LOW_RISK_INTERNAL"),
        ({"destructiveHint": False, "openWorldHint": True}, "MEDIUM_RISK_WRITE"),
        ({}, "HIGH_RISK_EXTERNAL"),
    ],
)
def test_trusted_annotations_alone_decide(hints: dict[str, bool], effect: str) -> None:
    assert guess("delete_all", trust=True, annotations=hints) == effect


@requirement("CON-8")
@pytest.mark.parametrize(
    ("server", "reads", "writes"),
    [
        ("filesystem", ["read_text_file", "list_directory", "get_file_info"], ["write_file", "move_file"]),
        ("memory", ["read_graph", "search_nodes", "open_nodes"], ["create_entities", "delete_entities"]),
        ("git", ["git_status", "git_diff", "git_log", "git_show"], ["git_commit", "git_reset", "git_add"]),
        ("time", ["get_current_time", "convert_time"], []),
        ("fetch", ["fetch"], []),
    ],
)
def test_real_servers_are_guessed_well(server: str, reads: list[str], writes: list[str]) -> None:
    found = {each["name"]: infer(each, trust_annotations=False).effect for each in real(server)}
    assert {name: found[name].writes for name in (*reads, *writes)} == {
        **dict.fromkeys(reads, False),
        **dict.fromkeys(writes, True),
    }


@requirement("CON-8")
def test_a_guess_lowers_nothing_by_itself() -> None:
    [contract] = offered(take(tool("get_user", annotations={"readOnlyHint": True})), "get_user")
    assert contract.effect == "HIGH_RISK_EXTERNAL"
