"""Does the time machine say what the past calls would have got, and of every one of them?"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from holdfast import Code, Effect, Gateway, HoldfastError, Principal, Status, Undo, testing, tool
from holdfast.gateway.diff import Diff, Wish
from holdfast.model import defaults
from holdfast.model.errors import ConfigError, Forbidden, NotFound
from holdfast.policy import Bundle
from holdfast.policy.replay import Change, Left
from holdfast.testing import ManualClock
from tests.policy.bank import TOOLS
from tests.policy.case import WEDNESDAY, bank, bundle_of, shipped
from tests.policy.compare import compared
from tests.requirements import requirement

ANA = Principal(user="ana", agent="bot", scopes=frozenset({"**"}), trust=60)
OLGA = Principal(user="olga", agent="local", roles=frozenset({"operator"}))
OPEN = '@id("open") permit (principal, action, resource);\n'
SHUT = (
    OPEN
    + '@id("no-notes") @reason("no notes") forbid (principal, action == Action::"bank.note", resource);\n'
)
ASKS = '@id("asks") @approval("operator") permit (principal, action, resource);\n'
DAY_S = 86_400.0


async def note(gateway: Gateway, key: str, who: Principal = ANA, **said: Any) -> str:
    seen = await gateway.call("bank.note", {"account": "a", "text": "x"}, principal=who, key=key, **said)
    return seen.call_id


def changes(diff: Diff) -> dict[tuple[str, str, str], int]:
    return {(g.tool, g.principal, g.change.value): g.count for g in diff.groups}


@requirement("POL-8")
async def test_over_a_thousand_calls_it_equals_asking_again_one_by_one() -> None:
    told = await compared(1_000, seed=7)
    assert told.decisions > 700
    assert set(told.changes) == {"allow->deny", "deny->allow", "approval"}


@requirement("POL-8")
async def test_every_flip_is_told_by_tool_and_principal_with_its_reason_and_place() -> None:
    async with bank(None) as gateway:
        await gateway.policies.promote(OLGA, bundle_of(OPEN))
        first, second = await note(gateway, "k-1"), await note(gateway, "k-2")
        other = await note(
            gateway, "k-3", Principal(user="ben", agent="bot", scopes=frozenset({"**"}), trust=60)
        )
        await gateway.call("bank.balance", {"account": "a"}, principal=ANA)
        diff = await gateway.history.diff(OLGA, bundle_of(SHUT, "next"), Wish(examples=1))
    assert (diff.decisions, diff.flips) == (4, 3)
    assert changes(diff) == {
        ("bank.note", "ana/bot", "allow->deny"): 2,
        ("bank.note", "ben/bot", "allow->deny"): 1,
    }
    [flip] = diff.groups[0].examples
    assert flip.past.call_id == second != first
    assert (flip.before.policies, flip.after.policies) == (("open",), ("no-notes",))
    assert (flip.after.reasons, flip.after.places) == (("no notes",), ("a.cedar:2:1",))
    assert diff.groups[1].examples[0].past.call_id == other
    said = orjson.loads(orjson.dumps(diff.to_dict()))
    assert said["groups"][0]["examples"][0]["after"]["places"] == ["a.cedar:2:1"]


@requirement("POL-8")
async def test_what_was_refused_and_what_was_held_is_judged_again_too() -> None:
    async with bank(None) as gateway:
        await gateway.policies.promote(OLGA, bundle_of(SHUT))
        await note(gateway, "k-1")
        await gateway.policies.promote(OLGA, bundle_of(ASKS))
        await note(gateway, "k-2")
        diff = await gateway.history.diff(OLGA, bundle_of(OPEN))
    assert changes(diff) == {
        ("bank.note", "ana/bot", "deny->allow"): 1,
        ("bank.note", "ana/bot", "approval"): 1,
    }
    need = next(g for g in diff.groups if g.change is Change.APPROVAL).examples[0]
    assert (dict(need.before.need), dict(need.after.need)) == ({"operator": 1}, {})


@requirement("POL-8")
async def test_a_gateway_without_policies_remembers_enough_to_try_some(tmp_path: Path) -> None:
    async with bank(None, environment="prod") as gateway:
        assert (
            await gateway.call("bank.balance", {"account": "a"}, principal=ANA)
        ).code is Code.POLICY_VIOLATION
        diff = await gateway.history.diff(OLGA, bundle_of(OPEN))
    assert changes(diff) == {("bank.balance", "ana/bot", "deny->allow"): 1}


@requirement("POL-8")
async def test_the_time_of_a_call_is_the_time_it_was_made() -> None:
    late = OPEN + (
        '@id("night") forbid (principal, action, resource) when { context.hour >= 22 || context.hour < 6 };\n'
    )
    clock = ManualClock(WEDNESDAY.timestamp())
    async with testing.gateway(*TOOLS, namespace="bank", clock=clock) as gateway:
        await gateway.policies.promote(OLGA, bundle_of(OPEN))
        await note(gateway, "noon")
        await clock.advance(11 * 3600.0)
        night = await note(gateway, "night")
        await clock.advance(11 * 3600.0)
        diff = await gateway.history.diff(OLGA, bundle_of(late))
    assert [flip.past.call_id for group in diff.groups for flip in group.examples] == [night]


KEEPS = OPEN + (
    '@id("keeps") forbid (principal, action == Action::"bank.note", resource)'
    ' when { context.labels.contains("regulated") };\n'
)


@requirement("POL-8", "OBS-6")
async def test_what_sessions_had_seen_longer_ago_than_labels_are_kept_is_not_guessed() -> None:
    clock = ManualClock(WEDNESDAY.timestamp())
    async with testing.gateway(*TOOLS, namespace="bank", clock=clock) as gateway:
        await gateway.policies.promote(OLGA, bundle_of(OPEN))
        await gateway.call("bank.export", {"table": "a"}, principal=ANA, session="s")
        await clock.advance(1.0)
        await note(gateway, "long-ago", session="s")
        await clock.advance(defaults.LABEL_KEPT_S + 1.0)
        await gateway.labels.forget()
        await note(gateway, "now", session="s")
        wish = Wish(since_s=defaults.LABEL_KEPT_S + DAY_S)
        diff = await gateway.history.diff(OLGA, bundle_of(KEEPS), wish)
        blind = await gateway.history.diff(OLGA, bundle_of(SHUT), wish)
    assert (diff.flips, diff.left) == (0, {Left.LABELS: {"bank.note": 1}})
    assert (blind.flips, blind.left) == (2, {})  # who does not ask is told of every call


@requirement("POL-8", "OBS-6")
async def test_a_candidate_may_ask_what_sessions_had_seen_though_nobody_asked_then() -> None:
    clock = ManualClock(WEDNESDAY.timestamp())
    async with testing.gateway(*TOOLS, namespace="bank", clock=clock) as gateway:
        await gateway.policies.promote(OLGA, bundle_of(OPEN))
        await note(gateway, "before", session="s")
        await clock.advance(1.0)
        await gateway.call("bank.export", {"table": "a"}, principal=ANA, session="s")
        await clock.advance(1.0)
        after = await note(gateway, "after", session="s")
        await note(gateway, "elsewhere", session="z")
        unnamed = await note(gateway, "unnamed")
        await clock.advance(1.0)
        await gateway.labels.lift(OLGA, "s", "regulated", "done with it")
        await clock.advance(1.0)
        await note(gateway, "lifted", session="s")
        diff = await gateway.history.diff(OLGA, bundle_of(KEEPS))
    assert [flip.past.call_id for group in diff.groups for flip in group.examples] == [after, unnamed]


@requirement("POL-8")
async def test_against_active_compares_with_what_is_in_force_and_not_with_what_was() -> None:
    async with bank(None) as gateway:
        await gateway.policies.promote(OLGA, bundle_of(OPEN))
        await note(gateway, "k-1")
        await gateway.policies.promote(OLGA, bundle_of(SHUT))
        then = await gateway.history.diff(OLGA, bundle_of(SHUT))
        active = await gateway.history.diff(OLGA, bundle_of(SHUT), Wish(active=True))
        back = await gateway.history.diff(OLGA, bundle_of(OPEN, "other"), Wish(active=True))
    assert (then.flips, active.flips, back.flips) == (1, 0, 1)
    assert (then.against, active.against) == (None, bundle_of(SHUT).version)


@requirement("POL-8")
async def test_some_calls_can_be_looked_at_alone() -> None:
    ben = Principal(user="ben", agent="cli", scopes=frozenset({"**"}), trust=60)
    clock = ManualClock(WEDNESDAY.timestamp())
    async with testing.gateway(*TOOLS, namespace="bank", clock=clock) as gateway:
        await gateway.policies.promote(OLGA, bundle_of(OPEN))
        await note(gateway, "old")
        await clock.advance(DAY_S)
        await note(gateway, "k-1")
        await note(gateway, "k-2", ben)
        await gateway.call("bank.balance", {"account": "a"}, principal=ben)

        async def flips(**wish: Any) -> tuple[int, int]:
            diff = await gateway.history.diff(OLGA, bundle_of(SHUT), Wish(**wish))
            return diff.decisions, diff.flips

        assert await flips() == (4, 3)
        assert await flips(since_s=3600.0) == (3, 2)
        assert await flips(tool="bank.b*") == (1, 0)
        assert await flips(principal="ben/*") == (2, 1)
        assert await flips(tenant="acme") == (0, 0)


@requirement("POL-8")
async def test_a_tool_that_is_gone_or_has_another_contract_is_named_and_never_dropped(tmp_path: Path) -> None:
    from tests.stored import durable

    @tool(effect=Effect.READ_ONLY, name="note")
    async def other(account: str) -> dict[str, int]:
        """A note of another kind."""
        return {}

    clock = ManualClock(WEDNESDAY.timestamp())

    async def open_with(store: Any, tools: Sequence[Any]) -> Gateway:
        from holdfast.testing import CountingIds
        from holdfast.upstreams.function import FunctionUpstream

        upstreams = {"bank": FunctionUpstream(tools)}
        gateway = Gateway.assemble({}, store, upstreams, clock=clock, ids=CountingIds())
        await gateway.prepare()
        return gateway

    async with durable("sqlite", tmp_path, clock) as store:
        gateway = await open_with(store, TOOLS)
        await note(gateway, "k-1")
        for account in ("a", "b"):
            await gateway.call("bank.balance", {"account": account}, principal=ANA)
        await gateway.close()
        gateway = await open_with(store, [other])
        diff = await gateway.history.diff(OLGA, bundle_of(OPEN))
        await gateway.close()
    assert diff.left == {Left.TOOL: {"bank.balance": 2}, Left.CONTRACT: {"bank.note": 1}}
    assert diff.decisions == 0
    assert {"reason": Left.TOOL.value, "tool": "bank.balance", "count": 2} in diff.to_dict()["not_judged"]


@requirement("POL-8", "AUD-4", "CON-6")
async def test_facts_are_sealed_go_with_the_tenants_key_and_hold_no_marked_field() -> None:
    async with bank(None) as gateway:
        await gateway.policies.promote(OLGA, bundle_of(OPEN))
        said = {"account": "acct-1", "text": "hello", "card": "4111-1111"}
        seen = await gateway.call("bank.note", said, principal=ANA, key="k")
        bodies = [e.record.body for e in await gateway.log.of_call(OLGA, seen.call_id, -1, 10)]
        assert not any("acct-1" in body or "4111" in body for body in bodies)
        facts = (await gateway.log.recall(OLGA, seen.call_id)).facts
        assert facts is not None
        assert facts["arguments"] == {"account": "acct-1", "text": "hello"}
        assert await gateway.log.erase(OLGA, "default")
        diff = await gateway.history.diff(OLGA, bundle_of(SHUT))
    assert diff.left == {Left.FACTS: {"bank.note": 1}}


@requirement("POL-8")
async def test_what_a_limit_had_a_say_in_is_told() -> None:
    limits = {"budgets": [{"per": "principal", "kind": "write", "calls": 1}]}
    async with bank(None, limits=limits) as gateway:
        await gateway.policies.promote(OLGA, bundle_of(OPEN))
        await note(gateway, "k-1")
        stopped = await gateway.call("bank.note", {"account": "a", "text": "x"}, principal=ANA, key="k-2")
        assert stopped.code is Code.BUDGET_EXHAUSTED
        diff = await gateway.history.diff(OLGA, bundle_of(SHUT))
        await gateway.policies.promote(OLGA, bundle_of(SHUT))
        await note(gateway, "k-3")
        back = await gateway.history.diff(OLGA, bundle_of(OPEN))
    [group] = diff.groups
    assert (group.count, group.limited) == (2, 1)
    told = [one.get("limits") for one in diff.to_dict()["groups"][0]["examples"]]
    assert told == [None, "a limit refused it then (BUDGET_EXHAUSTED), and is not asked again"]
    told = [one.get("limits") for one in back.to_dict()["groups"][0]["examples"]]
    assert told == ["no budget or rate was asked then; one may still refuse it"]


@requirement("POL-8")
async def test_the_gateways_own_readings_are_no_decisions_of_any_policy() -> None:
    @tool(effect=Effect.READ_ONLY)
    async def state(item: str) -> dict[str, str]:
        """Look."""
        return {"version": "1"}

    @tool(
        effect=Effect.LOW_RISK_INTERNAL,
        manifest=[("items", "UPDATE", "item")],
        undo=Undo.EXACT,
        idempotency={},
        state={
            "read": {"tool": "test.state", "arguments": {"item": "=args.item"}},
            "version": "state.version",
        },
    )
    async def change(item: str) -> dict[str, str]:
        """Change."""
        return {}

    async with testing.gateway(state, change) as gateway:
        await gateway.policies.promote(OLGA, bundle_of(OPEN))
        done = await gateway.call("test.change", {"item": "a"}, principal=ANA, key="k", if_match="1")
        assert done.status is Status.DONE, done
        diff = await gateway.history.diff(OLGA, bundle_of(OPEN))
    assert diff.decisions == 1
    assert diff.left == {Left.OWN: {"test.state": 1}}


@requirement("POL-8")
async def test_only_an_operator_may_try_and_only_what_could_be_promoted() -> None:
    bad = '@id("bad") permit (principal, action, resource) when { resource.colour == "red" };\n'
    async with bank(None) as gateway:
        with pytest.raises(Forbidden):
            await gateway.history.diff(ANA, bundle_of(OPEN))
        with pytest.raises(ConfigError, match="cannot be put in force"):
            await gateway.history.diff(OLGA, bundle_of(bad))
        with pytest.raises(NotFound, match="no policies 'x/123' were promoted"):
            await gateway.history.find("x/123")


# --- before a promotion -----------------------------------------------------------------------


@requirement("POL-8")
async def test_where_a_review_is_required_only_the_very_bundle_that_was_tried_is_promoted() -> None:
    config = {"policy_review": {"required": True, "days": 7}}
    clock = ManualClock(WEDNESDAY.timestamp())
    async with testing.gateway(*TOOLS, namespace="bank", clock=clock, config=config) as gateway:
        await note(gateway, "k")
        with pytest.raises(HoldfastError, match="may be put in force once its diff over 7 days was accepted"):
            await gateway.policies.promote(OLGA, bundle_of(SHUT))

        async def accept(bundle: Bundle, **wish: Any) -> None:
            diff = await gateway.history.diff(OLGA, bundle, Wish(**wish))
            await gateway.history.accept(OLGA, diff, "as wanted")

        with pytest.raises(HoldfastError, match="asks for a diff over 7 days; look back that far"):
            await accept(bundle_of(SHUT), since_s=6 * DAY_S)
        await accept(bundle_of(ASKS))  # another bundle
        with pytest.raises(HoldfastError, match="policy diff FOLDER --since 7d --accept"):
            await gateway.policies.promote(OLGA, bundle_of(SHUT))
        with pytest.raises(HoldfastError, match="a diff of some calls cannot be accepted"):
            await accept(bundle_of(SHUT), tool="bank.*")
        await accept(bundle_of(SHUT))
        assert await gateway.policies.promote(OLGA, bundle_of(SHUT))
        [review] = [
            json.loads(entry.record.body)
            for entry in await gateway._auditing.since("*", 0.0, -1, 100)
            if bundle_of(SHUT).version in entry.record.body
            and "policy_review" in entry.record.body
            and '"flips":1' in entry.record.body
            and json.loads(entry.record.body)["until"] - json.loads(entry.record.body)["since"] == 7 * DAY_S
        ]
        assert (review["caller"], review["note"]) == ("olga", "as wanted")


@requirement("POL-8")
async def test_an_accepted_diff_is_good_for_a_day() -> None:
    config = {"policy_review": {"required": True, "days": 1}}
    clock = ManualClock(WEDNESDAY.timestamp())
    async with testing.gateway(*TOOLS, namespace="bank", clock=clock, config=config) as gateway:
        diff = await gateway.history.diff(OLGA, shipped(), Wish(since_s=DAY_S))
        await gateway.history.accept(OLGA, diff)
        await clock.advance(DAY_S + 1.0)
        with pytest.raises(HoldfastError, match="was accepted, not more than 24 hours ago"):
            await gateway.policies.promote(OLGA, shipped())


@requirement("POL-8")
async def test_going_back_needs_no_review() -> None:
    config = {"policy_review": {"required": True, "days": 1}}
    async with bank(None, **config) as gateway:
        for text in (OPEN, SHUT):
            diff = await gateway.history.diff(OLGA, bundle_of(text), Wish(since_s=DAY_S))
            await gateway.history.accept(OLGA, diff)
            await gateway.policies.promote(OLGA, bundle_of(text))
        assert (await gateway.policies.rollback(OLGA)).version == bundle_of(OPEN).version


@requirement("POL-8")
async def test_a_call_that_was_held_and_then_ran_flips_once() -> None:
    people = {"olga": {"roles": ["operator"]}, "ana": {"roles": ["user"]}}
    async with bank(None, auth={"people": people}) as gateway:
        await gateway.policies.promote(OLGA, bundle_of(ASKS))
        call_id = await note(gateway, "k")
        [asked] = await gateway.approvals(OLGA)
        await gateway.decide(OLGA, asked.id, True, "fine")
        assert await note(gateway, "k") == call_id
        diff = await gateway.history.diff(OLGA, bundle_of(OPEN))
    assert (diff.decisions, diff.flips) == (2, 1)
