"""When is a denial a security event?"""

from dataclasses import replace
from typing import Any

from holdfast import Code, Effect, Floor, Gateway, Principal, Undo, tool
from holdfast.model.call import Call, Decision
from holdfast.model.defaults import DENIALS, DENIALS_S
from tests.approvals.opening import House
from tests.requirements import requirement

ANA = Principal(user="ana", agent="bot", scopes=frozenset({"notes:*"}))
SENDING: dict[str, Any] = {
    "effect": Effect.HIGH_RISK_EXTERNAL,
    "undo": Undo.EXACT,
    "floor": Floor.USER,
    "manifest": [("notes", "UPDATE", "one")],
    "idempotency": {},
    "probe": {"read": {"tool": "look", "arguments": {}}, "committed": "state == ''"},
}


class Forbid:
    version = "none"

    def decide(self, call: Call) -> Decision:
        return Decision(id="d-1", allow=False, reasons=("no",), version=self.version)


class Notes:
    @tool(effect=Effect.READ_ONLY, scopes=["notes:read"])
    async def look(self) -> str:
        """Look at the notes."""
        return ""

    @tool(effect=Effect.READ_ONLY, scopes=["vault:read"])
    async def vault(self) -> str:
        """Look at the vault."""
        return ""

    @tool(scopes=["notes:send"], **SENDING)
    async def send(self) -> str:
        """Send them to everybody."""
        return ""


async def denied(gateway: Gateway, name: str, by: Principal = ANA, times: int = 1) -> None:
    for _ in range(times):
        seen = await gateway.call(f"test.{name}", {}, principal=by)
        assert seen.code in (Code.POLICY_VIOLATION, Code.TOOL_NOT_FOUND, Code.KEY_REQUIRED), seen


def events(house: House) -> list[str]:
    return [record.body for record in house.alarms()]


@requirement("AUT-4")
async def test_denials_of_one_caller_in_a_short_time_are_one_event(house: House) -> None:
    async with house.gateway(Notes(), policy=Forbid()) as gateway:
        await denied(gateway, "look", times=DENIALS - 1)
        assert events(house) == []
        await denied(gateway, "look")
        assert [f"{DENIALS} denials of ana/bot" in event for event in events(house)] == [True]
        await denied(gateway, "look", times=2 * DENIALS)
        assert len(events(house)) == 1
        await house.clock.advance(DENIALS_S)
        await denied(gateway, "look", times=DENIALS)
        assert len(events(house)) == 2


@requirement("AUT-4")
async def test_what_is_hidden_from_a_caller_counts_and_what_is_not_there_does_not(house: House) -> None:
    async with house.gateway(Notes(), policy=Forbid()) as gateway:
        await denied(gateway, "unheard_of", times=2 * DENIALS)
        assert events(house) == []
        await denied(gateway, "vault", times=DENIALS)
        assert len(events(house)) == 1


@requirement("AUT-4")
async def test_denials_long_apart_or_of_several_callers_are_none(house: House) -> None:
    async with house.gateway(Notes(), policy=Forbid()) as gateway:
        for number in range(2 * DENIALS):
            await denied(gateway, "look", replace(ANA, agent=f"bot-{number}"))
        for _ in range(2 * DENIALS):
            await denied(gateway, "look")
            await house.clock.advance(DENIALS_S / (DENIALS - 1))
    assert events(house) == []


@requirement("AUT-4")
async def test_one_denial_of_a_high_risk_tool_is_an_event(house: House) -> None:
    async with house.gateway(Notes(), policy=Forbid()) as gateway:
        seen = await gateway.call("test.send", {}, principal=ANA, key="k-1")
        assert seen.code is Code.POLICY_VIOLATION
        [event] = events(house)
        assert "a high-risk tool was denied: test.send" in event
        assert house.alarms()[0].call_id == seen.call_id


@requirement("AUT-4", "POL-7")
async def test_asking_why_not_is_no_event(house: House) -> None:
    async with house.gateway(Notes(), policy=Forbid()) as gateway:
        for _ in range(2 * DENIALS):
            assert not (await gateway.why(ANA, "test.send", {})).allowed
    assert events(house) == []
