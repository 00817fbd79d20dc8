"""Does what a permit asks for beside approval hold for every answer, and only there?"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from holdfast import Code, Effect, Gateway, Principal, Status, Undo, testing, tool
from holdfast.execution.observe import observe
from holdfast.execution.result import Ran
from holdfast.execution.verify import Judged, verify
from holdfast.model.call import Decision
from holdfast.model.masking import masked
from holdfast.model.vocabulary import Rung, State
from holdfast.policy.obligations import Duties, duties, union
from tests.policy.case import written
from tests.policy.examined import examined
from tests.requirements import requirement
from tests.stores.calls import LOOK, make_call

ANA = Principal(user="ana", agent="bot", scopes=frozenset({"**"}), trust=60)
BOB = Principal(user="bob", agent="bot", scopes=frozenset({"**"}), trust=60)
WRITE: dict[str, Any] = {
    "effect": Effect.LOW_RISK_INTERNAL,
    "undo": Undo.EXACT,
    "manifest": [("orders", "UPDATE", "order")],
    "idempotency": {},
}
ORDER = {
    "id": "o-1",
    "customer": {"name": "Ada", "email": "ada@example.org"},
    "notes": [{"text": "a"}, {"text": "b"}],
}


class Shop:
    """Orders, and what has become of them."""

    def __init__(self) -> None:
        self.sent: set[str] = set()
        self.seen = True
        self.readable = True
        self.reads = 0

    @property
    def tools(self) -> list[Any]:
        look = {"tool": "status", "arguments": {"order": "=args.order"}}
        shown = {
            "read": look,
            "committed": "state.sent",
            "result": "{'email': 'ada@example.org'}",
            "settle_after_s": 60.0,
        }
        after = {"read": look, "holds": "state.sent", "message": "it was not sent"}

        @tool(effect=Effect.READ_ONLY, cache_ttl_s=60.0)
        async def order(id: str) -> dict[str, Any]:
            """Look at an order."""
            self.reads += 1
            return ORDER

        @tool(effect=Effect.READ_ONLY)
        async def status(order: str) -> dict[str, bool]:
            """Whether an order was sent."""
            if not self.readable:
                raise ValueError("away")
            return {"sent": self.seen and order in self.sent}

        @tool(**WRITE)
        async def send(order: str) -> dict[str, str]:
            """Send an order."""
            self.sent.add(order)
            return {"email": "ada@example.org"}

        @tool(**WRITE, probe=shown)
        async def send_seen(order: str) -> dict[str, str]:
            """Send an order, which can be seen."""
            self.sent.add(order)
            return {"email": "ada@example.org"}

        @tool(**WRITE, postconditions=[after])
        async def send_checked(order: str) -> dict[str, str]:
            """Send an order, which is checked."""
            self.sent.add(order)
            return {"email": "ada@example.org"}

        return [order, status, send, send_seen, send_checked]


@asynccontextmanager
async def shop(folder: Path, text: str, own: Shop | None = None) -> AsyncIterator[Gateway]:
    config = {"policies": str(written(folder / "rules", text))}
    async with testing.gateway(*(own or Shop()).tools, namespace="shop", config=config) as gateway:
        yield gateway


ALL = '@id("all") permit (principal, action, resource);\n'


def asking(what: str, who: str = "principal") -> str:
    return f'@id("asks") {what} permit ({who}, action, resource);\n'


def bodies(gateway: Gateway) -> str:
    records = gateway._ports.ledger._shelf.records  # type: ignore[attr-defined]  # the one in memory
    return "\n".join(record.body for record in records)


# --- redaction ------------------------------------------------------------------------------


@requirement("POL-1")
async def test_the_named_parts_of_a_result_are_masked_and_nothing_else(tmp_path: Path) -> None:
    async with shop(tmp_path, asking('@redact("/customer/email, /notes/*/text, /nowhere")')) as gateway:
        seen = await gateway.call("shop.order", {"id": "o-1"}, principal=ANA)
    assert seen.data == {
        "id": "o-1",
        "customer": {"name": "Ada", "email": "[redacted]"},
        "notes": [{"text": "[redacted]"}, {"text": "[redacted]"}],
    }
    assert "ada@example.org" not in seen.to_json().decode()
    assert ORDER["customer"] == {"name": "Ada", "email": "ada@example.org"}  # the value itself is as it was


@requirement("POL-1")
async def test_one_cached_read_is_shown_to_each_caller_as_their_own_decision_says(tmp_path: Path) -> None:
    own = Shop()
    text = '@id("bob") permit (principal in User::"bob", action, resource);\n' + asking(
        '@redact("/customer")', 'principal in User::"ana"'
    )
    async with shop(tmp_path, text, own) as gateway:
        whole = await gateway.call("shop.order", {"id": "o-1"}, principal=BOB)
        less = await gateway.call("shop.order", {"id": "o-1"}, principal=ANA)
        again = await gateway.call("shop.order", {"id": "o-1"}, principal=BOB)
    assert own.reads == 1
    assert whole.data == again.data == ORDER
    assert less.data == {**ORDER, "customer": "[redacted]"}


@requirement("POL-1")
async def test_an_answer_in_the_words_of_its_protocol_does_not_tell_what_is_masked() -> None:
    clock = testing.ManualClock()
    call = make_call(clock, None, tool=LOOK)
    native = {"content": [{"type": "text", "text": '{"email": "ada@example.org"}'}]}
    said = Judged(status=Status.DONE, state=State.COMMITTED, data={"email": "ada@example.org"}, native=native)
    async with testing.gateway(clock=clock) as gateway:
        call.decision = Decision("pd_1", True)
        whole = observe(call, said, gateway._ports)
        call.decision = Decision("pd_1", True, redact=("/email",))
        less = observe(call, said, gateway._ports)
    assert (whole.data, whole.native) == ({"email": "ada@example.org"}, native)
    assert (less.data, less.native) == ({"email": "[redacted]"}, None)


@requirement("POL-1")
async def test_what_several_permits_ask_for_is_all_asked_for(tmp_path: Path) -> None:
    text = ALL + asking('@redact("/id")') + asking('@redact("/notes")').replace('"asks"', '"more"')
    async with shop(tmp_path, text) as gateway:
        seen = await gateway.call("shop.order", {"id": "o-1"}, principal=ANA)
    assert seen.data == {**ORDER, "id": "[redacted]", "notes": "[redacted]"}
    one, two = duties({"approval": "a", "redact": "/x"}), duties({"approval": "a:2,b", "verify": "probe"})
    assert union((one, two)) == Duties({"a": 2, "b": 1}, ("/x",), ("probe",))


@requirement("POL-1", "AUD-3")
async def test_a_replay_a_look_up_and_the_record_show_no_more_than_the_first_answer(tmp_path: Path) -> None:
    async with shop(tmp_path, asking('@redact("/email")')) as gateway:
        first = await gateway.call("shop.send", {"order": "o"}, key="k", principal=ANA)
        again = await gateway.call("shop.send", {"order": "o"}, key="k", principal=ANA)
        found = await gateway.find(ANA, first.call_id)
        kept = bodies(gateway)
    assert found is not None
    assert first.data == again.data == found.data == {"email": "[redacted]"}
    assert (again.replayed, first.status) == (True, Status.DONE)
    assert '"redact":["/email"]' in kept
    assert "ada@example.org" not in kept


@requirement("POL-1")
async def test_a_replay_shows_less_where_policy_shows_less_by_now(tmp_path: Path) -> None:
    from holdfast.policy import load

    async with shop(tmp_path, ALL) as gateway:
        first = await gateway.call("shop.send", {"order": "o"}, key="k", principal=ANA)
        olga = Principal(user="olga", agent="cli", roles=frozenset({"operator"}))
        await gateway.policies.promote(
            olga, load(written(tmp_path / "less", asking('@redact("/email")'))), ""
        )
        again = await gateway.call("shop.send", {"order": "o"}, key="k", principal=ANA)
    assert (first.data, again.data) == ({"email": "ada@example.org"}, {"email": "[redacted]"})


@requirement("POL-1", "VER-1")
async def test_a_fault_of_an_answer_does_not_quote_what_is_masked(tmp_path: Path) -> None:
    @tool(effect=Effect.READ_ONLY)
    async def order(id: str) -> dict[str, int]:
        """Look at an order."""
        return {"email": "ada@example.org"}  # type: ignore[dict-item]  # that is the fault

    config = {"policies": str(written(tmp_path / "rules", asking('@redact("/email")')))}
    async with testing.gateway(order, namespace="shop", config=config) as gateway:
        seen = await gateway.call("shop.order", {"id": "o-1"}, principal=ANA)
    assert (seen.status, seen.code) == (Status.FAILED, Code.OUTPUT_INVALID)
    assert "ada@example.org" not in seen.to_json().decode()


@requirement("POL-1", "VER-1")
async def test_an_error_that_a_tool_answers_with_does_not_tell_what_is_masked() -> None:
    clock = testing.ManualClock()
    call = make_call(clock, None, tool=LOOK)
    call.decision = Decision("pd_1", True, redact=("/email",))
    said = Ran(value={"email": "ada@example.org"}, error="no order of ada@example.org is known")
    async with testing.gateway(clock=clock) as gateway:
        judged = await verify(call, said, gateway._ports)
    assert judged.message == "'bank.look' answered with an error: no order of [redacted] is known"


@requirement("POL-1", "VER-1")
async def test_an_outcome_that_a_probe_finds_later_is_masked_too(tmp_path: Path) -> None:
    own = Shop()
    own.seen = False
    async with shop(tmp_path, asking('@redact("/email") @verify("probe")'), own) as gateway:
        lost = await gateway.call("shop.send_seen", {"order": "o"}, key="k", principal=ANA)
        own.seen = True
        await gateway.tidy()
        found = await gateway.find(ANA, lost.call_id)
    assert found is not None
    assert (lost.status, found.status, found.data) == (Status.UNKNOWN, Status.DONE, {"email": "[redacted]"})


@requirement("POL-1")
@pytest.mark.parametrize(
    ("value", "paths", "seen"),
    [
        ({"a": 1}, ("/a",), {"a": "[redacted]"}),
        ({"a/b": 1, "c~d": 2}, ("/a~1b", "/c~0d"), {"a/b": "[redacted]", "c~d": "[redacted]"}),
        ([{"a": 1}, {"a": 2}], ("/1/a",), [{"a": 1}, {"a": "[redacted]"}]),
        ({"a": {"b": 1}, "c": {"b": 2}}, ("/*/b",), {"a": {"b": "[redacted]"}, "c": {"b": "[redacted]"}}),
        ("text", ("/a",), "text"),
        (None, ("/a/b",), None),
    ],
)
def test_paths_are_json_pointers_with_a_star_for_any(value: Any, paths: tuple[str, ...], seen: Any) -> None:
    before = orjson.dumps(value)
    assert masked(value, paths) == seen
    assert orjson.dumps(value) == before


# --- verification ---------------------------------------------------------------------------


@requirement("POL-1", "VER-6")
async def test_an_effect_that_policy_wants_verified_is_verified_or_unknown(tmp_path: Path) -> None:
    own = Shop()
    async with shop(tmp_path, asking('@verify("postconditions")'), own) as gateway:
        good = await gateway.call("shop.send_checked", {"order": "a"}, key="a", principal=ANA)
        own.readable = False
        dark = await gateway.call("shop.send_checked", {"order": "b"}, key="b", principal=ANA)
    assert good.outcome is not None
    assert (good.status, good.outcome.rung) == (Status.DONE, Rung.VERIFIED)
    assert (dark.status, dark.code) == (Status.UNKNOWN, Code.OUTCOME_UNKNOWN)
    assert "policy wants it verified" in (dark.message or "")


@requirement("POL-1", "VER-6")
async def test_without_the_obligation_the_same_outcome_is_only_a_warning(tmp_path: Path) -> None:
    own = Shop()
    own.readable = False
    async with shop(tmp_path, ALL, own) as gateway:
        seen = await gateway.call("shop.send_checked", {"order": "b"}, key="b", principal=ANA)
    assert seen.outcome is not None
    assert (seen.status, seen.outcome.rung) == (Status.DONE, Rung.ACCEPTED)
    assert any("could not be verified" in warning for warning in seen.warnings)


@requirement("POL-1", "VER-6")
async def test_a_probe_that_is_asked_for_makes_the_outcome_observed(tmp_path: Path) -> None:
    own = Shop()
    async with shop(tmp_path, asking('@verify("probe")'), own) as gateway:
        good = await gateway.call("shop.send_seen", {"order": "a"}, key="a", principal=ANA)
        kept = bodies(gateway)
    assert good.outcome is not None
    assert (good.status, good.outcome.rung) == (Status.DONE, Rung.OBSERVED)
    assert '"verify":["probe"]' in kept


@requirement("POL-1")
async def test_a_tool_that_cannot_show_its_effect_is_refused_and_nothing_runs(tmp_path: Path) -> None:
    own = Shop()
    async with shop(tmp_path, asking('@verify("probe")'), own) as gateway:
        refused = await gateway.call("shop.send", {"order": "a"}, key="a", principal=ANA)
        read = await gateway.call("shop.order", {"id": "a"}, principal=ANA)
    assert (refused.code, own.sent) == (Code.POLICY_VIOLATION, set())
    assert "'asks' wants the effect shown by 'probe', and 'shop.send' declares none" in (
        refused.message or ""
    )
    assert read.status is Status.DONE  # a read has no effect to be shown


@requirement("POL-1")
def test_check_says_which_tools_cannot_do_what_is_asked_of_them() -> None:
    [one] = examined(
        '@id("a") @verify("probe") permit (principal, action == Action::"bank.note", resource);'
    ).findings
    assert (one.kind, one.level) == ("verify", "warning")
    assert str(one) == "a.cedar:1:11: 'a' wants 'probe' and 'bank.note' declares none: calls are refused"
