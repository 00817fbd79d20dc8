"""What does a person want to know about a call or an approval?"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from holdfast.cli.invoked import command
from holdfast.cli.screen import data, show, text
from holdfast.model.approval import Approval
from holdfast.model.observation import Observation, Status

STYLES: dict[Status, str] = {
    Status.DONE: "bold green",
    Status.PREVIEW: "bold cyan",
    Status.PARTIAL: "bold yellow",
    Status.HELD: "bold yellow",
    Status.REFUSED: "bold red",
    Status.FAILED: "bold red",
    Status.UNKNOWN: "bold magenta",
}


def show_observation(seen: Observation, approvers: Sequence[str] = (), config: str = "") -> None:
    name = f"{seen.tool}@{seen.version}" if seen.version else seen.tool
    aside = [f"{seen.latency_ms:.0f} ms"]
    if seen.outcome is not None:
        aside.append(f"{seen.outcome.rung.value}, {seen.outcome.strength.value}")
    if seen.replayed:
        aside.append("replayed: it did not run again")
    code = (f"  {seen.code.value}", "red") if seen.code and seen.status is not Status.HELD else ""
    show(text((seen.status.value, STYLES[seen.status]), f"  {name}", code, ("  " + " · ".join(aside), "dim")))
    if seen.message:
        show(text(f"  {seen.message}"))
    for line in _fallback(seen):
        show(text(("  fallback: ", "dim"), line))
    for error in seen.field_errors:
        show(text((f"  {error.path or '/'}", "cyan"), f"  {error.message}"))
    for warning in seen.warnings:
        show(text(("  warning: ", "yellow"), warning))
    if seen.data is not None:
        show(data(seen.data))
    if seen.preview is not None:
        show(data(seen.preview))
    for line in _next(seen, approvers, config):
        show(text(("  next: ", "dim"), line))


def _fallback(seen: Observation) -> list[str]:
    """What was tried before, and who answered in the end; nothing where the first tool did."""
    said = seen.fallback
    if said is None:
        return []
    tried = [f"{one['tool']}: {one.get('code', 'passed over')}, {one['message']}" for one in said["tried"]]
    if seen.status is Status.HELD and any(one["tool"] == seen.tool for one in said["tried"]):
        return [*tried, f"no tool of {said['capability']!r} could answer, so a person is asked"]
    fresh = "" if seen.provenance is None else f", {seen.provenance.freshness}"
    return [*tried, f"level {said['level']} of {said['capability']!r} answers{fresh}"]


def _next(seen: Observation, approvers: Sequence[str], config: str) -> list[str]:
    """What can be done now; nothing where it is done."""
    match seen.status:
        case Status.DONE | Status.PREVIEW:
            return []
        case Status.HELD if seen.approval is not None:
            again = f"call again with --key {seen.key}" if seen.key else "call again with the same key"
            yes = f"{command()} approve {seen.approval.id}"
            return [*(f"{yes}{who}{config}" for who in approvers or [" --as NAME"]), f"then {again}"]
        case Status.PARTIAL if seen.pending is not None:
            return [f"look how far it is: {command()} show {seen.call_id}{config}"]
        case Status.UNKNOWN:
            settle = f"{command()} settle {seen.call_id} committed|no-effect --note WHY{config}"
            return ["find out whether it happened; do not call again with another key", settle]
        case _:
            words = seen.remedy.next_action.replace("_", " ")
            wait = seen.remedy.retry_after_ms
            return [words + (f" (after {wait} ms)" if wait else "")]


def show_approval(asked: Approval) -> None:
    packet = asked.packet
    show(
        text(
            (asked.id, "bold"),
            f"  {packet.get('action', asked.ref.tool)}",
            ("  asked by ", "dim"),
            asked.ref.principal,
        ),
    )
    for label, value in _packet(packet):
        show(text((f"  {label:<12}", "dim"), value))
    missing = ", ".join(f"{count} x {role}" for role, count in asked.missing.items()) or "nobody"
    show(text(("  waits for   ", "dim"), missing, ("  until ", "dim"), moment(asked.expires_at)))
    show(data(packet.get("arguments", {})))


def _packet(packet: Any) -> list[tuple[str, str]]:
    effects = "; ".join(f"{e['operation']} {e['resource']} ({e['scope']})" for e in packet.get("effects", ()))
    said = {
        "what": packet.get("consequence"),
        "effects": effects,
        "risk": packet.get("risk_class"),
        "undo": packet.get("undo"),
        "rollback": (packet.get("rollback") or {}).get("plan"),
        "why asked": "; ".join(packet.get("why", ())),
    }
    return [(label, str(value)) for label, value in said.items() if value]


def moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
