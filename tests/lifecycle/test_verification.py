"""Is what really happened told apart from what was merely reported?"""

from typing import Any

from holdfast import Code, Effect, Principal, Status, tool
from holdfast.testing import ManualClock
from tests.lifecycle.conftest import Open
from tests.lifecycle.world import ANA, WRITE, World
from tests.requirements import requirement


@requirement("VER-1")
async def test_a_read_with_an_answer_that_breaks_its_promise_fails(open_gateway: Open) -> None:
    @tool(effect=Effect.READ_ONLY, max_retries=0)
    async def count(thing: str) -> int:
        """Count things."""
        return "three"  # type: ignore[return-value]

    async with open_gateway([count]) as gateway:
        answer = await gateway.call("test.count", {"thing": "a"}, principal=ANA)
    assert (answer.status, answer.code) == (Status.FAILED, Code.OUTPUT_INVALID)
    assert answer.data is None


@requirement("VER-1", "IDM-5")
async def test_a_write_with_an_answer_that_breaks_its_promise_is_unknown(
    open_gateway: Open, world: World
) -> None:
    world.mood = "garbage"
    async with open_gateway(world) as gateway:
        answer = await gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA)
        boss = Principal(user="root", agent="local", roles=frozenset({"operator"}))
        settled = await gateway.settle(boss, answer.call_id, "committed", "seen in the log")
        again = await gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA)
    assert (answer.status, answer.code) == (Status.UNKNOWN, Code.OUTCOME_UNKNOWN)
    assert settled.status is Status.DONE
    assert again.replayed
    assert "seen in the log" in again.warnings[0]
    assert world.touched == {"a": 1}


@requirement("VER-1", "VER-6")
async def test_a_probe_finds_the_effect_of_a_write_whose_answer_was_lost(
    open_gateway: Open, world: World
) -> None:
    world.mood = "raise"
    async with open_gateway(world) as gateway:
        answer = await gateway.call("test.touch_probed", {"thing": "a"}, key="k", principal=ANA)
    assert (answer.status, answer.data) == (Status.DONE, {"thing": "a", "times": 1})
    assert answer.outcome is not None
    assert (answer.outcome.rung, answer.outcome.strength) == ("observed", "probed")
    assert world.touched == {"a": 1}


@requirement("VER-1")
async def test_a_success_that_says_failure_becomes_the_contracts_code(open_gateway: Open) -> None:
    @tool(
        **WRITE,
        in_band="has(result.error) ? result.error : ''",
        errors=[
            {"match": "insufficient_funds", "code": "SEMANTIC_INVALIDITY", "effect": "none"},
            {"match": "closed", "code": "CONFLICT", "effect": "final"},
        ],
    )
    async def pay(account: str) -> dict[str, Any]:
        """Pay."""
        return {"paid": True} if account == "good" else {"error": account}

    async with open_gateway([pay]) as gateway:

        async def paying(account: str) -> Any:
            return await gateway.call("test.pay", {"account": account}, key=account, principal=ANA)

        good, poor, closed, odd = [
            await paying(a) for a in ("good", "insufficient_funds", "closed", "strange")
        ]
        closed_again = await paying("closed")
    assert good.status is Status.DONE
    assert (poor.status, poor.code) == (Status.FAILED, Code.SEMANTIC_INVALIDITY)
    assert (closed.status, closed.code) == (Status.FAILED, Code.CONFLICT)
    assert closed_again.replayed
    assert odd.status is Status.UNKNOWN


@requirement("VER-2")
async def test_sanity_predicates_warn_and_critical_ones_fail(open_gateway: Open) -> None:
    @tool(
        effect=Effect.READ_ONLY,
        max_retries=0,
        sanity=[
            {"holds": "result >= 0", "message": "a price below nothing", "severity": "critical"},
            {"holds": "result < 1000", "message": "an unusually high price"},
        ],
    )
    async def price(thing: int) -> int:
        """The price of a thing."""
        return thing

    async with open_gateway([price]) as gateway:
        low, high, mad = [
            await gateway.call("test.price", {"thing": n}, principal=ANA) for n in (5, 5000, -1)
        ]
    assert (low.status, low.warnings) == (Status.DONE, ())
    assert (high.status, high.warnings) == (Status.DONE, ("an unusually high price",))
    assert (mad.status, mad.code) == (Status.FAILED, Code.OUTPUT_INVALID)


@requirement("VER-4", "VER-6")
async def test_a_postcondition_is_read_back_and_only_then_is_it_verified(
    open_gateway: Open, world: World
) -> None:
    post = {
        "read": {"tool": "test.look", "arguments": {"thing": "=args.thing"}},
        "holds": "state.touched == result.times",
        "message": "the thing was not touched as often as reported",
    }

    @tool(**WRITE, postconditions=[post])
    async def honest(thing: str) -> dict[str, int]:
        """Touch and say so."""
        world.touched[thing] += 1
        return {"times": 1}

    @tool(**WRITE, postconditions=[post])
    async def liar(thing: str) -> dict[str, int]:
        """Say so only."""
        return {"times": 1}

    async with open_gateway(world, [honest, liar]) as gateway:
        true = await gateway.call("test.honest", {"thing": "a"}, key="k", principal=ANA)
        false = await gateway.call("test.liar", {"thing": "b"}, key="k", principal=ANA)
        plain = await gateway.call("test.touch", {"thing": "c"}, key="k", principal=ANA)
    assert true.outcome is not None
    assert plain.outcome is not None
    assert (true.status, true.outcome.rung) == (Status.DONE, "verified")
    assert (false.status, false.code) == (Status.FAILED, Code.EFFECT_MISMATCH)
    assert plain.outcome.rung == "accepted"


@requirement("IDM-5")
async def test_a_person_settles_what_no_probe_can(open_gateway: Open, world: World) -> None:
    world.mood = "raise"
    boss = Principal(user="root", agent="local", roles=frozenset({"operator"}))
    async with open_gateway(world, clock=ManualClock()) as gateway:
        lost = await gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA)
        await gateway.settle(boss, lost.call_id, "no-effect", "the log shows nothing")
        world.mood = "well"
        again = await gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA)
    assert lost.status is Status.UNKNOWN
    assert f"holdfast settle {lost.call_id}" in (lost.message or "")
    assert (again.status, again.replayed, again.call_id) == (Status.DONE, False, lost.call_id)


@requirement("OBS-1", "NAM-4")
async def test_an_observation_carries_what_the_specification_names(open_gateway: Open, world: World) -> None:
    async with open_gateway(world) as gateway:
        seen = await gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA, trace_id="ab" * 16)
    members = seen.to_dict()
    for name in (
        "call_id tool version status field_errors remedy data warnings outcome replayed attempts provenance "
        "policy_decision_id trace_id latency_ms key key_source timing input_commitment citations mutations"
    ).split():
        assert name in members, name
    assert members["trace_id"] == "ab" * 16
    assert members["mutations"] == (
        {"resource": "things", "operation": "UPDATE", "scope": "thing", "observed": False},
    )
