"""What does a notice say? As JSON: webhooks carry it as it is, mails are written from it.

Somebody outside reads it, so it says less than an approver sees: of arguments nothing that a contract calls
sensitive, and nothing that was read as evidence. Both are on the page that it leads to.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from holdfast.model.approval import Answer, Approval
from holdfast.model.moment import iso
from holdfast.model.people import Alert
from holdfast.model.quoted import visible
from holdfast.ports import Ports

MOST_BYTES = 64 << 10
"""Of a packet; then what is longest is left out."""
LONGEST = 2000
"""Characters of one text of an alert or a note."""
SENT = (
    *("action", "arguments", "task", "step", "agent_written", "hidden_characters", "shortened", "effects"),
    *("why", "floor", "undo", "rollback", "cost", "environment", "if_rejected", "if_unanswered"),
    *("fingerprint", "contract_digest", "policy_decision_id", "policy_version", "trace_id"),
)
"""What goes out of a packet; the rest stays on the page, or is said beside it."""
ELSEWHERE = "on the page of the approval"


def of_approval(event: str, asked: Approval, roles: tuple[str, ...], ports: Ports) -> dict[str, Any]:
    packet = _packet(asked, ports)
    said: dict[str, Any] = {
        "event": f"approval.{event}",
        "tenant": asked.ref.tenant,
        "approval_id": asked.id,
        "call_id": asked.call_id,
        "tool": asked.ref.tool,
        "risk": asked.packet.get("risk"),
        "risk_class": asked.packet.get("risk_class"),
        "consequence": _text(asked.packet.get("consequence", "")),
        "requested_by": asked.packet.get("requested_by", {"user": visible(asked.requester)}),
        "need": dict(asked.need),
        "level": asked.level,
        "roles": list(roles),
        "answer": asked.answer.value,
        "asked_at": iso(asked.created_at),
        "expires_at": iso(asked.expires_at),
        "link": link(ports.base_url, f"approvals/{asked.id}"),
        "packet": packet,
    }
    if asked.answer is not Answer.PENDING:
        said["votes"] = [
            {"person": vote.person, "role": vote.role, "approve": vote.approve, "note": _text(vote.note)}
            for vote in asked.votes
        ]
    return said


def of_alert(alert: Alert, ports: Ports) -> dict[str, Any]:
    return {
        "event": "alert",
        "tenant": alert.tenant,
        "alert_id": alert.id,
        "kind": alert.kind,
        "subject": _text(alert.subject),
        "text": _text(alert.text),
        "facts": bounded(dict(alert.facts)),
        "at": iso(alert.at),
        "ended_at": None if alert.ended_at is None else iso(alert.ended_at),
        "link": link(ports.base_url, ""),
    }


def link(base_url: str, path: str) -> str | None:
    """A page where somebody signs in; None where nobody said where people reach this gateway."""
    return f"{base_url.rstrip('/')}/{path}" if base_url else None


def _packet(asked: Approval, ports: Ports) -> dict[str, Any]:
    said = {name: asked.packet[name] for name in SENT if name in asked.packet}
    if "arguments" in said:
        said["arguments"] = _arguments(asked, ports)
    return bounded(said)


def _arguments(asked: Approval, ports: Ports) -> Any:
    """Without whatever the contract calls sensitive; nothing where that contract is not at hand."""
    version = str(asked.packet.get("action", "")).rpartition("@")[2]
    listing = ports.catalog.find(asked.ref.tool, version) or ports.catalog.find(asked.ref.tool, None)
    if listing is None or listing.tool.contract.digest != asked.contract_digest:
        return ELSEWHERE if asked.packet["arguments"] else {}
    return listing.tool.input.sensitivity.redact(asked.packet["arguments"])


def bounded(said: dict[str, Any]) -> dict[str, Any]:
    sizes = {name: len(orjson.dumps(value, default=str)) for name, value in said.items()}
    left_out: list[str] = []
    while sum(sizes.values()) > MOST_BYTES:
        longest = max(sizes, key=lambda name: sizes[name])
        left_out.append(longest)
        del sizes[longest]
    kept = {name: said[name] for name in said if name in sizes}
    return kept | ({"left_out": left_out} if left_out else {})


def _text(said: object) -> str:
    text = visible(str(said)[:LONGEST])
    return f"{text}…" if len(str(said)) > LONGEST else text


def test_notice(channel: str, base_url: str) -> Mapping[str, Any]:
    text = f"this is a test of the channel {channel!r}; nothing has to be done"
    return {"event": "test", "text": text, "link": link(base_url, "")}
