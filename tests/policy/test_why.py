"""Does 'why not?' name the gate, the policies and the smallest change, to those who may know?"""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast import Code, Effect, Gateway, Principal, Status, testing, tool
from tests.policy.bank import TOOLS
from tests.policy.case import bank, written
from tests.requirements import requirement

EXPLAINS = frozenset({"**"})
ANA = Principal(user="ana", agent="bot", scopes=EXPLAINS, trust=60)
PEOPLE = {"people": {"olga": {"roles": ["operator"]}}}
"""With an operator, a role is needed where otherwise the person at the terminal would do."""


async def why(gateway: Gateway, tool: str, arguments: Any = None, **said: Any) -> dict[str, Any]:
    return (await gateway.why(replace(ANA, **said), tool, arguments)).to_dict()


TRANSFER = {"amount": 5000, "to": ["acct-1"]}
EXPORT = {"table": "loans", "region": "eu"}


@requirement("POL-7")
@pytest.mark.parametrize(
    ("tool", "arguments", "who", "closest", "failing", "changes"),
    [
        (
            "bank.transfer",
            TRANSFER,
            {},
            "transfers.large",
            ['principal in Role::"treasury"'],
            ["give 'ana' the role 'treasury'", "with 'amount' at most 100", "with 'amount' at most 1000"],
        ),
        (
            "bank.export",
            EXPORT,
            {},
            "exports.analysts",
            ['principal in Role::"analyst"'],
            ["give 'ana' the role 'analyst'"],
        ),
        (
            "bank.export",
            {**EXPORT, "region": "us"},
            {"roles": frozenset({"analyst"})},
            "exports.analysts",
            ['context.args.region == "eu"'],
            ["with 'region' 'eu'"],
        ),
        (
            "bank.close",
            {"account": "a"},
            {},
            "closing",
            ["context.has_task"],
            ["name the task it belongs to"],
        ),
    ],
)
async def test_where_no_policy_permits_the_closest_is_shown_with_what_it_lacks(
    tool: str, arguments: Any, who: dict[str, Any], closest: str, failing: list[str], changes: list[str]
) -> None:
    async with bank() as gateway:
        said = await why(gateway, tool, arguments, **who)
    assert (said["allowed"], said["gate"], said["code"]) == (False, "policy", Code.POLICY_VIOLATION)
    assert (said["closest"]["id"], said["closest"]["failing"]) == (closest, failing)
    assert said.get("changes", ()) == tuple(changes)
    assert said["decision_id"].startswith("pd_")


@requirement("POL-7")
async def test_a_forbid_is_shown_with_its_text_and_place_and_what_would_lift_it(tmp_path: Path) -> None:
    async with bank() as gateway:
        abroad = await why(gateway, "bank.transfer", {"amount": 5, "to": [], "address": {"country": "fr"}})
        little = await why(gateway, "bank.note", {"account": "a", "text": "b"}, trust=3)
    [forbid] = abroad["policies"]
    assert (forbid["id"], forbid["effect"], forbid["place"]) == (
        "transfers.abroad",
        "forbid",
        "writing.cedar:32:1",
    )
    assert 'context.args.address.country != "de"' in forbid["text"]
    assert abroad["changes"] == (
        "give 'ana' the role 'treasury'",
        "leave out the argument 'address'",
        "with 'address.country' 'de'",
    )
    assert "closest" not in abroad
    assert little["changes"][0] == "raise the caller's trust to 50"


@requirement("POL-7")
async def test_every_change_that_is_told_would_really_allow_it(tmp_path: Path) -> None:
    text = """
    @id("staging") permit (principal, action, resource) when { context.environment == "staging" };
    @id("office") permit (principal, action, resource) when { context.weekday == 1 && context.hour == 9 };
    """
    async with bank(written(tmp_path / "rules", text)) as gateway:
        said = await why(gateway, "bank.balance", {"account": "a"})
        assert said["changes"] == ("call it in environment 'staging'", "wait until 2026-03-09 09:00 UTC")
        clock = gateway._ports.clock
        assert isinstance(clock, testing.ManualClock)
        clock.jump(datetime(2026, 3, 9, 9, tzinfo=UTC).timestamp() - clock.now())
        assert (await gateway.call("bank.balance", {"account": "a"}, principal=ANA)).status is Status.DONE


@requirement("POL-7")
async def test_a_tool_that_is_hidden_names_the_missing_scope_and_an_unknown_one_the_nearest() -> None:
    @tool(effect=Effect.READ_ONLY, scopes=["vault:open", "vault:read"])
    async def vault(door: str) -> dict[str, int]:
        """Look into the vault."""
        return {}

    async with testing.gateway(*TOOLS, vault, namespace="bank") as gateway:
        hidden = await why(gateway, "bank.vault", scopes=frozenset({"holdfast:explain", "vault:read"}))
        unknown = await why(gateway, "bank.balanse")
    assert (hidden["gate"], hidden["code"]) == ("authorize", Code.PERMISSION_DENIED)
    assert hidden["changes"] == ("grant 'ana' 'vault:open'",)
    assert (unknown["gate"], unknown["code"]) == ("resolve", Code.TOOL_NOT_FOUND)
    assert unknown["changes"] == ("call 'bank.balance'",)


@requirement("POL-7")
async def test_wrong_arguments_and_halts_are_answers_too() -> None:
    async with bank(None) as gateway:
        wrong = await why(gateway, "bank.balance", {"acount": "a"})
        olga = Principal(user="olga", agent="local", roles=frozenset({"operator"}))
        await gateway.halt(olga, "bank", "flood")
        halted = await why(gateway, "bank.balance", {"account": "a"})
    assert (wrong["allowed"], wrong["gate"]) == (False, "arguments")
    assert (halted["allowed"], halted["code"]) == (False, Code.TOOL_UNAVAILABLE)
    assert "flood" in halted["message"]
    assert halted["changes"] == ("resume 'bank'",)


@requirement("POL-7")
async def test_what_is_allowed_says_so_and_who_would_be_asked() -> None:
    async with bank() as gateway:
        free = await why(gateway, "bank.note", {"account": "a", "text": "b"})
        asked = await why(gateway, "bank.transfer", {"amount": 500, "to": []})
        blind = await why(gateway, "bank.note")
    assert (free["allowed"], free["message"]) == (True, "it is allowed")
    assert [policy["id"] for policy in free["policies"]] == ["notes"]
    assert (asked["allowed"], asked["need"]) == (True, {"operator": 1})
    assert blind["allowed"]


@requirement("POL-7")
async def test_without_arguments_it_says_which_ones_the_policies_look_at() -> None:
    async with bank() as gateway:
        said = await why(gateway, "bank.transfer")
    assert said["changes"] == ("ask with arguments: policies look at 'address', 'amount', 'to'",)


@requirement("POL-7")
async def test_others_learn_whether_it_is_allowed_and_whom_to_ask_and_nothing_else() -> None:
    @tool(effect=Effect.READ_ONLY, scopes=["vault:open"])
    async def vault(door: str) -> dict[str, int]:
        """Look into the vault."""
        return {}

    async with testing.gateway(*TOOLS, vault, namespace="bank", config={"auth": PEOPLE}) as gateway:
        agent = {"scopes": frozenset({"orders:*"})}
        hidden = await why(gateway, "bank.vault", **agent)
        unknown = await why(gateway, "bank.nothing", **agent)
        fine = await why(gateway, "bank.balance", {"account": "a"}, **agent)
    async with bank(auth=PEOPLE) as gateway:
        denied = await why(gateway, "bank.transfer", TRANSFER, **agent)
    assert set(hidden) == set(unknown) == {"tool", "allowed", "call_id", "ask"}
    assert "'operator'" in hidden["ask"]
    assert set(fine) == {"tool", "allowed", "call_id", "decision_id"}
    assert set(denied) == {"tool", "allowed", "call_id", "ask", "decision_id"}


@requirement("POL-7")
async def test_asking_why_does_nothing_and_leaves_a_record_of_a_refusal() -> None:
    async with bank() as gateway:
        said = await why(gateway, "bank.transfer", TRANSFER)
        store = gateway._ports.ledger
        records = store._shelf.records  # type: ignore[attr-defined]  # the one in memory
    [refusal] = [record for record in records if record.kind == "refusal"]
    assert refusal.call_id == said["call_id"]
    assert said["decision_id"] in refusal.body
    assert not any(record.kind == "intent" for record in records)


@requirement("POL-7")
async def test_where_no_policy_is_loaded_that_is_what_is_told() -> None:
    async with bank(None, environment="prod") as gateway:
        said = await why(gateway, "bank.balance", {"account": "a"})
    assert "no policy is loaded" in said["message"]
    assert said["changes"] == ("put policies in force that permit it: 'holdfast policy promote FOLDER'",)
