"""Does the approver see everything that matters, and nothing that may not be seen?"""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.quoted import LONGEST, Marks, quoted, visible
from tests.approvals.bank import ANA, BEN, Bank, config, pay
from tests.approvals.opening import House
from tests.requirements import requirement

S4 = {
    "action name": "action",
    "plain-language consequence": "consequence",
    "concrete arguments": "arguments",
    "before state": "before",
    "after state": "after",
    "idempotency fingerprint": "fingerprint",
    "risk class": "risk_class",
    "why approval is required": "why",
    "approval expiry": "expires_at",
    "rollback / compensation status": "rollback",
    "rejection path": "if_rejected",
    "trace id": "trace_id",
    "cost": "cost",
    "principal chain": "requested_by",
    "environment": "environment",
}
"""The fields of the packet; who approved is beside it, as votes."""

TRICKY = "pay\u202e 001 \u200bto\u2066 me\x1b[2J\U000e0041"


@requirement("APR-1")
async def test_the_packet_has_every_field(house: House) -> None:
    async with house.gateway(Bank(), config=config()) as gateway:
        await pay(gateway, task="t-1", note="for the desk")
        [asked] = await gateway.approvals(BEN)
        await gateway.decide(BEN, asked.id, True, "seen")
        voted = await gateway.approval(BEN, asked.id)
    packet = asked.packet
    assert {said for said, name in S4.items() if not packet.get(name)} == set()
    assert packet["action"] == "test.pay@1.0.0"
    assert packet["consequence"] == "money leaves the bank"
    assert packet["requested_by"] == {"user": "ana", "agent": "bot", "tenant": "default", "trust": 60}
    assert packet["rollback"]["plan"] == "pay back by hand"
    assert packet["cost"]["amount"] == 0.25
    assert packet["need"] == {"operator": 2}
    assert voted is not None
    assert [(v.person, v.role, v.approve, v.note) for v in voted.votes] == [("ben", "operator", True, "seen")]


@requirement("APR-1")
async def test_evidence_is_what_it_was_when_the_question_was_asked(house: House) -> None:
    bank = Bank()
    async with house.gateway(bank, config=config()) as gateway:
        await pay(gateway)
        bank.balance = 7
        await pay(gateway)
        [asked] = await gateway.approvals(BEN)
    for moment in ("before", "after"):
        assert asked.packet[moment]["source"] == "test.books"
        assert asked.packet[moment]["state"]["balance"] == 100


@requirement("CON-6", "APR-1")
async def test_approvers_see_pii_and_never_a_secret_or_a_credential(house: House, tmp_path: Path) -> None:
    async with house.gateway(Bank(), config=config()) as gateway:
        await pay(gateway, to="jon@example.com", password="hunter2-canary")
        [asked] = await gateway.approvals(BEN)
    packet = asked.packet
    assert packet["arguments"]["to"] == "jon@example.com"
    assert packet["arguments"]["password"] == "[secret]"
    assert packet["before"]["state"] == {"balance": 100, "owner": "Mira Sand", "pin": "[credential]"}
    assert "hunter2-canary" not in json.dumps(packet)
    stored = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    for canary in (b"hunter2-canary", b"jon@example.com", b"Mira Sand", b"0815-canary"):
        assert canary not in stored  # sealed


@requirement("CON-6", "APR-1")
async def test_whoever_asked_does_not_get_to_read_the_evidence(house: House) -> None:
    async with house.gateway(Bank(), config=config()) as gateway:
        held = await pay(gateway)
        assert held.approval is not None
        [own] = await gateway.approvals(ANA)
        assert own.packet["arguments"]["order"] == "o-1"
        assert not {"before", "after"} & set(own.packet)
        stranger = await gateway.approval(ANA.__class__(user="eve", agent="bot"), held.approval.id)
    assert stranger is None


@requirement("APR-1")
async def test_what_the_agent_wrote_is_marked_bounded_and_visible(house: House) -> None:
    async with house.gateway(Bank(), config=config()) as gateway:
        await pay(gateway, note=TRICKY + "x" * 3000, task="bad\u202etask")
        [asked] = await gateway.approvals(BEN)
    packet = asked.packet
    assert {"/arguments/order", "/arguments/note", "/task", "/key", "/requested_by/agent"} <= set(
        packet["agent_written"]
    )
    assert packet["hidden_characters"] == ["/arguments/note", "/task"]
    assert packet["shortened"] == ["/arguments/note"]
    note = packet["arguments"]["note"]
    assert len(note) < LONGEST + 200
    assert note.endswith("more characters)")
    for seen in ("⟦U+202E⟧", "⟦U+200B⟧", "⟦U+2066⟧", "⟦U+001B⟧[2J", "⟦U+E0041⟧"):
        assert seen in note
    assert (
        not set(TRICKY)
        & set("\u202e\u200b\u2066\x1b\U000e0041")
        & set(json.dumps(packet, ensure_ascii=False))
    )


@requirement("APR-1")
@given(st.text(max_size=50))
def test_nothing_unseen_is_left_in_any_text(text: str) -> None:
    shown = visible(text)
    assert visible(shown) == shown
    assert all(c.isprintable() or c in "\n\t" for c in shown if not c.isspace())


@pytest.mark.parametrize("value", [{"a\u202eb": ["x", 1, None, True]}, [{"deep": {"k": "v"}}], 7, None])
def test_values_keep_their_shape(value: Any) -> None:
    marks = Marks()
    shown = quoted(value, marks)
    assert type(shown) is type(value)
    if isinstance(value, dict):
        assert list(shown) == ["a⟦U+202E⟧b"]
        assert marks.hidden == [""]
