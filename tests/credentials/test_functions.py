"""Does a function get its secret when it may act, and never before or from anybody else?"""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from holdfast import Effect, Gateway, Principal, Undo, tool
from holdfast.gateway.secrets import Proofs
from holdfast.model.errors import AdmissionError, Code
from holdfast.model.function import FunctionTool
from holdfast.model.observation import Status
from holdfast.policy.deny_all import DenyAll
from holdfast.stores.memory import MemoryStore
from holdfast.testing import CountingIds, ManualClock, gateway
from holdfast.upstreams.function import FunctionUpstream
from tests.requirements import requirement
from tests.upstreams.secrets.kept import Kept, wallet

CANARY = "kanarienvogel-7391"
ANA = Principal(user="ana", agent="bot", scopes=frozenset({"**"}), trust=60)
WRITE: dict[str, Any] = {
    "effect": Effect.LOW_RISK_INTERNAL,
    "undo": Undo.EXACT,
    "manifest": [("things", "UPDATE", "thing")],
    "idempotency": {},
}
TOKEN = {"secret": "crm", "as": "argument", "name": "token"}


def sender(got: list[str], **declared: Any) -> FunctionTool[..., Any]:
    @tool(**{**WRITE, "credentials": [TOKEN], **declared})
    async def send(text: str, token: str) -> dict[str, Any]:
        """Send a text."""
        got.append(token)
        return {"sent": text}

    return send


def config(**said: Any) -> dict[str, Any]:
    return {"secrets": {"crm": {"env": "CRM_TOKEN", **said}}}


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRM_TOKEN", CANARY)


@requirement("AUT-3")
async def test_a_parameter_of_the_contract_is_filled_by_the_gateway_and_shown_to_nobody() -> None:
    got: list[str] = []
    async with gateway(sender(got), config=config()) as gate:
        [listing] = gate.tools(ANA)
        answer = await gate.call("test.send", {"text": "hi"}, key="k-1", principal=ANA)
    assert (answer.status, answer.data, got) == (Status.DONE, {"sent": "hi"}, [CANARY])
    assert "token" not in listing.tool.contract.affordance.model_dump_json()


@requirement("AUT-3", "CON-5")
async def test_a_caller_who_gives_it_is_refused_as_for_any_unknown_field() -> None:
    got: list[str] = []
    async with gateway(sender(got), config=config()) as gate:
        given = {"text": "hi", "token": "mine-instead"}
        answer = await gate.call("test.send", given, key="k-1", principal=ANA)
        unknown = await gate.call("test.send", {"text": "hi", "nonsense": "x"}, key="k-2", principal=ANA)
    assert (answer.status, answer.code) == (Status.REFUSED, Code.STRUCTURAL_VIOLATION)
    assert answer.field_errors[0].message == unknown.field_errors[0].message.replace("nonsense", "token")
    assert got == []


@requirement("AUT-3")
async def test_nothing_is_read_for_a_call_that_is_not_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[str] = []
    monkeypatch.delenv("CRM_TOKEN")  # reading it would fail, and say so
    async with gateway(sender(got), config=config(), policy=DenyAll(CountingIds())) as gate:
        answer = await gate.call("test.send", {"text": "hi"}, key="k-1", principal=ANA)
        preview = await gate.call("test.send", {"text": "hi"}, key="k-2", principal=ANA, preview=True)
    assert {answer.code, preview.code} == {Code.POLICY_VIOLATION}
    assert got == []


@requirement("AUT-8")
async def test_a_secret_is_replaced_without_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[str] = []
    async with gateway(sender(got), config=config()) as gate:
        await gate.call("test.send", {"text": "hi"}, key="k-1", principal=ANA)
        monkeypatch.setenv("CRM_TOKEN", "another-bird-1234")
        await gate.call("test.send", {"text": "hi"}, key="k-2", principal=ANA)
    assert got == [CANARY, "another-bird-1234"]


@requirement("AUT-8", "IDM-5")
async def test_an_expired_one_refuses_before_dispatch_and_leaves_the_key_free() -> None:
    got: list[str] = []
    clock = ManualClock()
    ends = "2027-01-15T08:10:00Z"  # ten minutes after this clock begins
    async with gateway(sender(got), config=config(expires=ends), clock=clock) as gate:
        await clock.advance(600.0)
        answer = await gate.call("test.send", {"text": "hi"}, key="k-1", principal=ANA)
        found = await gate.find(ANA, answer.call_id)
        assert (answer.status, answer.code, answer.attempts) == (Status.FAILED, Code.PERMISSION_DENIED, 0)
        assert "'crm' has expired; ask an operator to issue it anew" in (answer.message or "")
        assert not answer.remedy.retryable
        assert found is not None
        assert got == []
    async with gateway(sender(got), config=config(), clock=clock) as gate:
        again = await gate.call("test.send", {"text": "hi"}, key="k-1", principal=ANA)
    assert (again.status, got) == (Status.DONE, [CANARY])


@requirement("AUT-8")
async def test_once_it_is_issued_anew_the_same_key_goes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[str] = []
    monkeypatch.delenv("CRM_TOKEN")
    async with gateway(sender(got), config=config()) as gate:
        first = await gate.call("test.send", {"text": "hi"}, key="k-1", principal=ANA)
        monkeypatch.setenv("CRM_TOKEN", CANARY)
        again = await gate.call("test.send", {"text": "hi"}, key="k-1", principal=ANA)
    assert (first.code, first.attempts) == (Code.PERMISSION_DENIED, 0)
    assert (again.status, again.replayed, got) == (Status.DONE, False, [CANARY])


@requirement("AUT-6", "AUT-8")
async def test_another_tenants_secret_is_refused_and_each_gets_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GLOBEX_TOKEN", "of-globex-4321")
    got: list[str] = []
    secrets = {
        "secrets": {
            "crm": {"env": "CRM_TOKEN", "tenant": "acme"},
            "crm-globex": {"env": "GLOBEX_TOKEN", "tenant": "globex"},
        }
    }
    both = [TOKEN, {**TOKEN, "secret": "crm-globex"}]
    async with gateway(sender(got, credentials=both), config=secrets) as gate:
        for tenant in ("acme", "globex"):
            who = replace(ANA, tenant=tenant)
            assert (await gate.call("test.send", {"text": "x"}, key="k", principal=who)).status is Status.DONE
        other = await gate.call("test.send", {"text": "x"}, key="k", principal=replace(ANA, tenant="initech"))
    assert got == [CANARY, "of-globex-4321"]
    assert (other.status, other.code, other.attempts) == (Status.FAILED, Code.PERMISSION_DENIED, 0)
    assert "another tenant" in (other.message or "")


@requirement("AUT-3")
async def test_neither_arguments_nor_fingerprint_depend_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    got: list[str] = []
    async with gateway(sender(got), config=config()) as gate:
        first = await gate.call("test.send", {"text": "hi"}, key="k-1", principal=ANA)
        monkeypatch.setenv("CRM_TOKEN", "another-bird-1234")
        again = await gate.call("test.send", {"text": "hi"}, key="k-1", principal=ANA)
    assert (again.replayed, again.input_commitment) == (True, first.input_commitment)
    assert got == [CANARY]


async def test_a_secret_nobody_configured_is_reported_and_its_tool_refused() -> None:
    got: list[str] = []
    async with gateway(sender(got), config={}) as gate:
        answer = await gate.call("test.send", {"text": "hi"}, key="k-1", principal=ANA)
        assert any("names the secret 'crm'" in finding for finding in gate.findings())
    assert (answer.code, got) == (Code.PERMISSION_DENIED, [])


@pytest.mark.parametrize(
    ("credentials", "says"),
    [
        ([{**TOKEN, "as": "header"}], "a function has no header"),
        ([{**TOKEN, "as": "env"}], "a function has no env"),
        ([{**TOKEN, "name": "nobody"}], "does not take 'nobody'"),
        ([{**TOKEN, "name": "count"}], "write 'count: str'"),
        ([{**TOKEN, "secret": "not a name"}], "secret"),
        ([{**TOKEN, "as": "cookie"}], "as"),
        ([{"secret": "crm", "name": "token"}], "as"),
    ],
)
def test_a_contract_that_cannot_be_kept_is_not_admitted(credentials: list[Any], says: str) -> None:
    @tool(**{**WRITE, "credentials": credentials})
    async def send(text: str, token: str, count: int = 1) -> dict[str, Any]:
        """Send a text."""
        return {}

    with pytest.raises(AdmissionError, match=says):
        send.build("test")


@requirement("AUT-3")
async def test_waiting_for_a_secret_ends_at_the_deadline_with_nothing_sent() -> None:
    got: list[str] = []
    clock, kept = ManualClock(), Kept()
    kept.hold = asyncio.Event()
    upstreams = {"test": FunctionUpstream([sender(got)])}
    proofs = Proofs(wallet(clock, crm=kept))
    gate = Gateway.assemble(
        config(), MemoryStore(clock), upstreams, clock=clock, ids=CountingIds(), proofs=proofs
    )
    await gate.prepare()
    calling = asyncio.ensure_future(gate.call("test.send", {"text": "hi"}, key="k-1", principal=ANA))
    await clock.drive(calling)
    answer = await calling
    await gate.close()
    assert (answer.status, answer.code, answer.attempts) == (Status.FAILED, Code.TIMEOUT, 0)
    assert got == []
