"""What does a person see before they say yes or no? The same packet whatever the channel.

Everything an agent wrote is in a colour of its own and named as such: no part of it can pass for the
gateway's words.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from holdfast.cli.screen import console, data, show, text, visible
from holdfast.model.approval import Approval

if TYPE_CHECKING:
    from rich.console import RenderableType

WORDS = "yellow"
"""The style of what the agent wrote."""
WIDEST = 110


def show_packet(asked: Approval) -> None:
    show(framed(asked, console().width))


def framed(asked: Approval, width: int) -> "RenderableType":
    from rich.panel import Panel

    return Panel(
        _body(asked),
        title=_title(asked),
        title_align="left",
        border_style="yellow",
        padding=(1, 2),
        width=min(width, WIDEST),
    )


def _title(asked: Approval) -> str:
    return visible(f" {asked.answer.value.lower()}  {asked.id} ").replace("[", "\\[")


def _body(asked: Approval) -> "RenderableType":
    from rich.console import Group

    packet = asked.packet
    parts: list[RenderableType] = [
        text((str(packet.get("action", asked.ref.tool)), "bold")),
        _wrapped(str(packet.get("consequence", "what was asked is no longer kept"))),
        text(""),
        _fields(_facts(asked)),
    ]
    for label, shown in _shown(packet):
        parts += [text(""), text((label, "bold")), data(shown)]
    parts += [text(""), _fields(_particulars(asked))]
    for warning in _warnings(packet):
        parts += [text(""), _wrapped(warning)]
    return Group(*parts)


def _wrapped(words: str | tuple[str, str]) -> "RenderableType":
    """Never cut at the edge of the panel: what cannot be seen is not agreed to."""
    built = text(words)
    built.no_wrap, built.overflow = False, "fold"
    return built


def _facts(asked: Approval) -> Iterator[tuple[str, str]]:
    """What somebody must know, on the first screen of the smallest terminal, with the arguments below."""
    packet = asked.packet
    by, back = packet.get("requested_by") or {}, packet.get("rollback") or {}
    if isinstance(by, Mapping):
        yield "asked by", f"{by.get('agent')} for {by.get('user')} (trust {by.get('trust')})"
    yield "where", f"{packet.get('environment', '?')}, tenant {asked.ref.tenant}"
    yield "changes", "; ".join(_effect(entry) for entry in packet.get("effects", ()))
    yield "risk", " / ".join(dict.fromkeys(str(packet.get(name)) for name in ("risk_class", "risk")))
    yield "way back", ", ".join(str(part) for part in _way_back(back) if part)
    yield "cost", _cost(packet.get("cost") or {})
    yield "task", " / ".join(str(packet[name]) for name in ("task", "step") if packet.get(name))
    if said := packet.get("escalation"):
        yield "tried", "; ".join(f"{one['tool']}: {one.get('code', 'passed over')}" for one in said["tried"])
        yield "urgency", said["urgency"] + (f", wanted by {said['wanted_by']}" if "wanted_by" in said else "")
    yield "votes", "; ".join(_votes(asked)) or "none yet"
    yield "waits for", f"{_counted(asked.missing) or 'nobody'} until {moment(asked.expires_at)}"


def _particulars(asked: Approval) -> Iterator[tuple[str, str]]:
    packet = asked.packet
    yield "why asked", "; ".join(packet.get("why", ()))
    yield "needs", _counted(asked.need)
    yield "if you deny", str(packet.get("if_rejected", ""))
    yield "key", asked.ref.key
    yield "fingerprint", asked.fingerprint
    yield "trace", str(packet.get("trace_id", ""))


def _shown(packet: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "arguments (as the agent wrote them)", packet.get("arguments", {})
    for name, label in (("says", "in words"), ("proof", "past questions it would have answered")):
        if packet.get(name):
            yield label, packet[name]
    for name, label in (("before", "before, as read from"), ("after", "after, as predicted by")):
        if seen := packet.get(name):
            yield f"{label} {seen['source']}", seen["state"]


def _warnings(packet: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if not packet.get("after"):
        yield f"no preview: {packet.get('evidence', 'only its arguments are known')}", "red"
    if hidden := packet.get("hidden_characters"):
        yield f"hidden characters were found in {', '.join(hidden)}; they are shown as ⟦U+....⟧", "bold red"
    if cut := packet.get("shortened"):
        yield f"too long to show in full: {', '.join(cut)}", "red"


def _fields(facts: Iterator[tuple[str, str]]) -> "RenderableType":
    from rich.table import Table

    built = Table.grid(padding=(0, 2, 0, 0))
    built.add_column(style="dim", no_wrap=True)
    built.add_column(overflow="fold")
    for label, value in facts:
        if value:
            built.add_row(label, text((value, WORDS) if label in ("task", "key") else value))
    return built


def _effect(entry: Mapping[str, str]) -> str:
    return f"{entry['operation']} {entry['resource']} ({entry['scope']})"


def _way_back(back: Any) -> Iterator[str | None]:
    if isinstance(back, Mapping):
        yield back.get("status")
        yield back.get("plan")
        yield f"by {back['compensation']}" if back.get("compensation") else None


def _cost(cost: Mapping[str, Any]) -> str:
    return f"{cost['amount']:g} {cost['currency']} per {cost['unit']}" if cost.get("amount") else ""


def _votes(asked: Approval) -> Iterator[str]:
    for vote in asked.votes:
        role = f"{vote.via} for {vote.role}" if vote.via else vote.role
        note = f": {vote.note}" if vote.note else ""
        yield f"{vote.person} ({role}) {'yes' if vote.approve else 'no'}{note}"


def _counted(need: Mapping[str, int]) -> str:
    return ", ".join(f"{count} x {role}" for role, count in need.items())


def moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
