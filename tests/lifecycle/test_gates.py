"""Does every gate ask its one question, in its order, and is the first objection final?"""

from typing import Any

import pytest

from holdfast import Code, Effect, NoEffect, Principal, Status, lifecycle, tool
from holdfast.model.call import Call, Proposal
from holdfast.model.verdict import PASS, Refusal, Verdict
from holdfast.model.vocabulary import SafetyMode
from holdfast.ports import Ports
from tests.lifecycle.conftest import Open
from tests.lifecycle.world import ANA, WRITE, World
from tests.requirements import requirement

ORDER = "resolve authorize arguments semantics policy replay state limits approval claim"


@requirement("LIF-1", "LIF-2")
def test_the_gates_stand_in_the_order_of_the_specification() -> None:
    assert [gate.__name__ for gate in lifecycle.GATES] == ORDER.split()
    assert set(lifecycle.PHASES) == set(ORDER.split())
    assert {"Request", "Validate", "Authorize"} == set(lifecycle.PHASES.values())


@requirement("LIF-1")
async def test_a_call_passes_every_gate_before_it_runs(open_gateway: Open, world: World) -> None:
    async with open_gateway(world) as gateway:
        ports, runtime = gateway._ports, gateway._runtime
        proposal = Proposal(tool="test.touch", arguments={"thing": "a"}, principal=ANA, key="k")
        call = lifecycle.receive(proposal, ports)
        await lifecycle.live(call, ports, runtime)
    assert [name for name, _ in call.verdicts] == ORDER.split()


@requirement("LIF-3")
@pytest.mark.parametrize("broken", range(10))
async def test_a_gate_that_raises_refuses_and_nothing_runs(
    open_gateway: Open, world: World, broken: int
) -> None:
    async def bang(call: Call, ports: Ports) -> Verdict:
        raise RuntimeError("/secret/path")

    gates = (*lifecycle.GATES[:broken], bang, *lifecycle.GATES[broken + 1 :])
    async with open_gateway(world) as gateway:
        ports, runtime = gateway._ports, gateway._runtime
        proposal = Proposal(tool="test.touch", arguments={"thing": "a"}, principal=ANA, key="k")
        answer = await lifecycle.live(lifecycle.receive(proposal, ports), ports, runtime, gates)
    assert (answer.status, answer.code) == (Status.REFUSED, Code.INTERNAL)
    assert b"secret" not in answer.to_json()
    assert world.touched == {}


@requirement("LIF-3")
async def test_the_first_gate_that_objects_decides(open_gateway: Open, world: World) -> None:
    asked: list[str] = []

    def gate(name: str, verdict: Verdict) -> Any:
        async def ask(call: Call, ports: Ports) -> Verdict:
            asked.append(name)
            return verdict

        return ask

    no = Refusal(Code.POLICY_VIOLATION, "no")
    async with open_gateway(world) as gateway:
        ports, runtime = gateway._ports, gateway._runtime
        proposal = Proposal(tool="test.touch", arguments={"thing": "a"}, principal=ANA, preview=True)
        call = lifecycle.receive(proposal, ports)
        answer = await lifecycle.live(call, ports, runtime, (gate("a", PASS), gate("b", no), gate("c", PASS)))
    assert asked == ["a", "b"]
    assert answer.code is Code.POLICY_VIOLATION


@requirement("LIF-2", "VAL-2", "AUT-5")
async def test_a_tool_one_may_not_use_looks_exactly_like_one_that_is_not_there(open_gateway: Open) -> None:
    @tool(effect=Effect.READ_ONLY, scopes=["vault:read"])
    async def peek(thing: str) -> str:
        """Peek into the vault."""
        return thing

    nobody = Principal(user="eve", agent="bot", scopes=frozenset({"shop:**"}))
    async with open_gateway([peek]) as gateway:
        hidden = await gateway.call("test.peek", {"thing": "a"}, principal=nobody)
        absent = await gateway.call("test.none", {"thing": "a"}, principal=nobody)
        wrong = await gateway.call("test.peek", {"nonsense": 1}, version="9.9.9", principal=nobody)
        seen = await gateway.call("test.peek", {"thing": "a"}, principal=ANA)
        assert gateway.tools(nobody) == []
        assert [entry.tool.contract.tool for entry in gateway.tools(ANA)] == ["test.peek"]

    def comparable(observation: Any, name: str) -> Any:
        ignored = ("call_id", "trace_id", "latency_ms")
        text = {k: v for k, v in observation.to_dict().items() if k not in ignored}
        return repr(text).replace(name, "NAME")

    assert seen.status is Status.DONE
    assert hidden.code is Code.TOOL_NOT_FOUND
    assert (
        comparable(hidden, "test.peek") == comparable(absent, "test.none") == comparable(wrong, "test.peek")
    )


@requirement("REG-4", "LIF-2")
@pytest.mark.parametrize("spec", ["2.0.0", "^2.0.0", "not a version"])
async def test_a_version_nobody_has_is_told_to_those_who_may_use_the_tool(
    open_gateway: Open, world: World, spec: str
) -> None:
    async with open_gateway(world) as gateway:
        answer = await gateway.call("test.look", {"thing": "a"}, version=spec, principal=ANA)
        named = await gateway.call("test.look@1.0.0", {"thing": "a"}, principal=ANA)
    assert answer.code is Code.VERSION_INCOMPATIBLE
    assert named.status is Status.DONE


@requirement("LIF-3", "VAL-1", "CON-5")
async def test_all_that_is_wrong_with_the_arguments_is_told_at_once(open_gateway: Open, world: World) -> None:
    async with open_gateway(world) as gateway:
        answer = await gateway.call("test.touch", {"times": "3", "wat": 1}, key="k", principal=ANA)
    assert answer.code is Code.STRUCTURAL_VIOLATION
    assert answer.remedy.repairable
    by_path = {error.path: error for error in answer.field_errors}
    assert by_path["/times"].expected == "integer"
    assert by_path["/times"].actual == '"3"'
    assert any("thing" in error.message for error in answer.field_errors)
    assert any("wat" in error.message for error in answer.field_errors)


@requirement("VAL-4", "VAL-1")
@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ('{"thing": ', Code.SYNTACTIC_PARSE_FAIL),
        ('{"thing": "a", "thing": "b"}', Code.SYNTACTIC_PARSE_FAIL),
        ('{"thing": NaN}', Code.SYNTACTIC_PARSE_FAIL),
        ("[1, 2]", Code.STRUCTURAL_VIOLATION),
        ('{"thing": ' + "[" * 100 + "]" * 100 + "}", Code.OUT_OF_BOUNDS),
        ('{"thing": "' + "x" * 300_000 + '"}', Code.OUT_OF_BOUNDS),
    ],
)
async def test_text_that_is_no_sound_json_is_refused_before_it_is_understood(
    open_gateway: Open, world: World, raw: str, code: Code
) -> None:
    async with open_gateway(world) as gateway:
        answer = await gateway.call("test.look", raw, principal=ANA)
    assert answer.code is code
    assert world.reads == 0


@requirement("IDM-2", "CON-5")
async def test_a_number_too_big_for_everybody_is_refused_with_its_path(
    open_gateway: Open, world: World
) -> None:
    async with open_gateway(world) as gateway:
        answer = await gateway.call("test.touch", {"thing": "a", "times": 2**53}, key="k", principal=ANA)
    assert answer.code is Code.OUT_OF_BOUNDS
    assert answer.field_errors[0].path == "/times"
    assert "string" in answer.field_errors[0].message


@requirement("VAL-3")
async def test_rules_over_arguments_and_over_looked_up_state_must_hold(
    open_gateway: Open, world: World
) -> None:
    def odd(arguments: Any) -> str | None:
        return "times must be odd" if arguments["times"] % 2 == 0 else None

    @tool(
        **WRITE,
        semantics=[
            {"holds": "args.times < 10", "message": "at most nine times", "path": "/times"},
            {"holds": "now.touched == 0", "message": "it was touched before"},
        ],
        lookups={"now": {"tool": "test.look", "arguments": {"thing": "=args.thing"}}},
        checks=(odd,),
    )
    async def paint(thing: str, times: int) -> str:
        """Paint a thing."""
        return thing

    world.touched["a"] = 1
    async with open_gateway(world, [paint]) as gateway:
        bad = await gateway.call("test.paint", {"thing": "a", "times": 12}, key="k", principal=ANA)
        seen = await gateway.call("test.paint", {"thing": "a", "times": 3}, key="k", principal=ANA)
        good = await gateway.call("test.paint", {"thing": "b", "times": 3}, key="k", principal=ANA)
    assert bad.code is Code.SEMANTIC_INVALIDITY
    assert [e.message for e in bad.field_errors] == ["at most nine times", "times must be odd"]
    assert bad.field_errors[0].path == "/times"
    assert (seen.code, seen.message) == (Code.SEMANTIC_INVALIDITY, "it was touched before")
    assert good.status is Status.DONE


@requirement("LIF-2", "VAL-3")
async def test_a_call_that_changed_what_its_rules_look_at_is_replayed_all_the_same(
    open_gateway: Open, world: World
) -> None:
    @tool(
        **WRITE,
        semantics=[{"holds": "now.touched == 0", "message": "it was touched before"}],
        lookups={"now": {"tool": "test.look", "arguments": {"thing": "=args.thing"}}},
    )
    async def once(thing: str) -> str:
        """Touch what was never touched."""
        world.touched[thing] += 1
        return thing

    async with open_gateway(world, [once]) as gateway:
        first = await gateway.call("test.once", {"thing": "a"}, key="k", principal=ANA)
        again = await gateway.call("test.once", {"thing": "a"}, key="k", principal=ANA)
        other = await gateway.call("test.once", {"thing": "a"}, key="k2", principal=ANA)
    assert first.status is Status.DONE
    assert again.replayed
    assert other.code is Code.SEMANTIC_INVALIDITY


@requirement("VAL-5", "DEC-3")
async def test_a_target_that_changed_since_the_plan_is_stale_and_shown_fresh(
    open_gateway: Open, world: World
) -> None:
    @tool(
        **WRITE,
        state={
            "read": {"tool": "test.look", "arguments": {"thing": "=args.thing"}},
            "version": "state.version",
            "rules": [{"holds": "state.touched < 5", "message": "the thing is worn out"}],
        },
    )
    async def polish(thing: str) -> str:
        """Polish a thing."""
        return thing

    world.touched.update({"a": 2, "worn": 9})
    async with open_gateway(world, [polish]) as gateway:
        stale = await gateway.call("test.polish", {"thing": "a"}, key="1", if_match="1", principal=ANA)
        fresh = await gateway.call("test.polish", {"thing": "a"}, key="1", if_match="2", principal=ANA)
        worn = await gateway.call("test.polish", {"thing": "worn"}, key="2", principal=ANA)
        blind = await gateway.call("test.touch", {"thing": "a"}, key="3", if_match="2", principal=ANA)
    assert stale.code is Code.STALE_STATE
    assert stale.data["version"] == "2"
    assert stale.data["state"]["touched"] == 2
    assert fresh.status is Status.DONE
    assert worn.code is Code.STALE_STATE
    assert worn.message == "the thing is worn out"
    assert blind.code is Code.STRUCTURAL_VIOLATION


@requirement("DEC-3")
async def test_a_gate_may_not_read_with_a_tool_that_writes_or_reads_on(
    open_gateway: Open, world: World
) -> None:
    async with open_gateway(world) as gateway:
        reader = gateway._ports.reader
        seen = await reader.read("default", "test.look", {"thing": "a"})
        wrote = await reader.read("default", "test.touch", {"thing": "a"})
    assert seen.status is Status.DONE
    assert wrote.code is Code.TOOL_NOT_FOUND
    assert world.touched == {}


@requirement("POL-2")
@pytest.mark.parametrize("config", [{"environment": "prod"}, {"environment": "staging"}])
async def test_without_a_policy_nothing_is_allowed_and_it_says_so(
    open_gateway: Open, world: World, config: dict[str, str]
) -> None:
    async with open_gateway(world, config=config) as gateway:
        answer = await gateway.call("test.look", {"thing": "a"}, principal=ANA)
    assert answer.code is Code.POLICY_VIOLATION
    assert "no policy is loaded" in (answer.message or "")
    assert answer.policy_decision_id


@requirement("AUT-6")
async def test_a_tenant_named_in_the_arguments_must_be_the_callers(open_gateway: Open) -> None:
    @tool(effect=Effect.READ_ONLY, tenant_argument="tenant")
    async def peek(tenant: str) -> str:
        """Peek at a tenant."""
        return tenant

    async with open_gateway([peek]) as gateway:
        own = await gateway.call("test.peek", {"tenant": "default"}, principal=ANA)
        other = await gateway.call("test.peek", {"tenant": "acme"}, principal=ANA)
    assert own.status is Status.DONE
    assert other.code is Code.PERMISSION_DENIED


@requirement("LIF-4")
async def test_safety_modes_brake_writes(open_gateway: Open, world: World) -> None:
    async with open_gateway(world) as gateway:

        async def under(mode: SafetyMode, name: str) -> Any:
            return await gateway.call(name, {"thing": "a"}, key="k", principal=ANA, safety_mode=mode)

        read_only = await under(SafetyMode.READ_ONLY, "test.touch")
        reading = await under(SafetyMode.READ_ONLY, "test.look")
        dry = await under(SafetyMode.DRY_RUN, "test.touch")
        halted = await under(SafetyMode.HALTED, "test.look")
    assert read_only.code is Code.POLICY_VIOLATION
    assert reading.status is Status.DONE
    assert dry.status is Status.PREVIEW
    assert halted.code is Code.TOOL_UNAVAILABLE
    assert world.touched == {}


@requirement("DEC-5")
async def test_a_preview_needs_no_key_takes_nothing_and_says_what_it_cannot_know(
    open_gateway: Open, world: World
) -> None:
    @tool(**WRITE, preview={"read": {"tool": "test.look", "arguments": {"thing": "=args.thing"}}})
    async def paint(thing: str) -> str:
        """Paint a thing."""
        return thing

    async with open_gateway(world, [paint]) as gateway:
        predicted = await gateway.call("test.paint", {"thing": "a"}, preview=True, principal=ANA)
        generic = await gateway.call("test.touch", {"thing": "a"}, preview=True, principal=ANA)
    assert (predicted.status, generic.status) == (Status.PREVIEW, Status.PREVIEW)
    assert predicted.preview is not None
    assert predicted.preview["impact"]["thing"] == "a"
    assert generic.preview is not None
    assert generic.preview["impact"] is None
    assert "cannot predict" in generic.warnings[0]
    assert world.touched == {}


@requirement("DEC-1", "POL-5")
async def test_a_rate_is_taken_with_the_claim_and_not_by_calls_that_go_no_further(open_gateway: Open) -> None:
    ran: list[str] = []

    @tool(**WRITE, rate_limit={"calls": 2, "per_s": 60})
    async def ring(bell: str) -> str:
        """Ring a bell."""
        ran.append(bell)
        if bell == "locked":
            raise NoEffect("locked")
        return bell

    async with open_gateway([ring]) as gateway:
        for _ in range(5):
            await gateway.call("test.ring", {"bell": 1}, key="bad", principal=ANA)
        first = await gateway.call("test.ring", {"bell": "a"}, key="1", principal=ANA)
        replayed = await gateway.call("test.ring", {"bell": "a"}, key="1", principal=ANA)
        second = await gateway.call("test.ring", {"bell": "b"}, key="2", principal=ANA)
        third = await gateway.call("test.ring", {"bell": "c"}, key="3", principal=ANA)
    assert (first.status, replayed.replayed, second.status) == (Status.DONE, True, Status.DONE)
    assert third.code is Code.RATE_LIMITED
    assert third.remedy.retry_after_ms
    assert ran == ["a", "b"]


@requirement("PPL-4", "EXE-3")
@pytest.mark.parametrize("target", ["all", "test", "test.touch", "ana/bot"])
async def test_a_halt_stops_what_it_names_at_once_and_resume_lets_go(
    open_gateway: Open, world: World, target: str
) -> None:
    boss = Principal(user="root", agent="local", roles=frozenset({"operator"}))
    async with open_gateway(world) as gateway:
        await gateway.halt(boss, target, "incident 7")
        halted = await gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA)
        await gateway.resume(boss, target)
        running = await gateway.call("test.touch", {"thing": "a"}, key="k", principal=ANA)
    assert halted.code is Code.TOOL_UNAVAILABLE
    assert "incident 7" in (halted.message or "")
    assert running.status is Status.DONE
