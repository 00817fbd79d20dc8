"""`holdfast show`: what happened to one call, gate by gate."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.options import DEFAULT_CONFIG, As, ConfigFile, Json
from holdfast.cli.screen import show, show_json, table, text
from holdfast.cli.session import caller, with_gateway
from holdfast.cli.shown import STYLES, moment
from holdfast.model.observation import Observation, Status

if TYPE_CHECKING:
    from holdfast.model.story import GatePassed, Story


def add(app: typer.Typer) -> None:
    app.command("show")(show_)


def show_(
    call_id: Annotated[str, typer.Argument(metavar="CALL", help="The call's id.", show_default=False)],
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Show what happened to a call: its way through the gates, who answered, what became of it."""
    found = with_gateway(config, lambda gateway: gateway.timeline.of(caller(gateway, as_), call_id))
    if as_json:
        show_json(plain(found))
    else:
        _show(found)


def plain(value: Any) -> Any:
    """As JSON data; an observation as everywhere, and nothing that only its holder may have."""
    if isinstance(value, Observation):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value) if f.repr}
    if isinstance(value, Mapping):
        return {name: plain(said) for name, said in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return plain(value._asdict())
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


def _show(story: "Story") -> None:
    name = f"{story.tool}@{story.version}" if story.version else story.tool
    style = STYLES[Status(story.status)] if story.status in set(Status) else "bold"
    code = (f"  {story.code}", "red") if story.code else ""
    show(text((story.status, style), f"  {name}", code, (f"  {_aside(story)}", "dim")))
    show(text(f"  {story.why}"))
    for label, value in _facts(story):
        show(text((f"  {label:<12}", "dim"), value))
    show(table(("  gate", "verdict", "time", "asks"), [_row(gate) for gate in story.gates]))
    for happened in story.moments:
        about = f"  ({happened.record})" if happened.record else ""
        show(text((f"{moment(happened.at)}  ", "dim"), happened.what, (about, "dim")))


def _aside(story: "Story") -> str:
    who = f"{story.caller} through {story.agent}"
    told = [who, *([] if story.latency_ms is None else [f"{story.latency_ms:.1f} ms"])]
    if story.attempts > 1:
        told.append(f"{story.attempts} attempts")
    if story.outcome is not None:
        told.append(f"{story.outcome.rung.value}, {story.outcome.strength.value}")
    return " · ".join(told)


def _session(story: "Story") -> str:
    """The session at its upstream that it was about, as it was then."""
    about = None if story.observation is None else story.observation.upstream_session
    return "" if about is None else f"{about['id']} ({about['state']})"


def _facts(story: "Story") -> list[tuple[str, str]]:
    said = {
        "decided by": f"gate '{story.decided_by}'" if story.decided_by else "",
        "policies": "; ".join(story.policies),
        "task": story.task,
        "session": _session(story),
        "part of": story.part_of,
        "after": ", ".join(story.after),
        "delegation": story.delegation,
        "approval": story.rests_on or ("" if story.approval is None else story.approval.id),
        "waits for": _waits(story),
        "ledger": _ledger(story),
    }
    return [(label, value) for label, value in said.items() if value]


def _waits(story: "Story") -> str:
    if story.awaited is None:
        return ""
    missing = ", ".join(f"{count} x {role}" for role, count in story.awaited.missing.items())
    people = f" ({', '.join(story.awaited.people)})" if story.awaited.people else ""
    return f"{missing}{people} until {moment(story.awaited.until)}"


def _ledger(story: "Story") -> str:
    if story.ledger is None:
        return ""
    goes_on = story.observation is not None and story.observation.pending is not None
    state = "goes on" if goes_on and story.ledger.state == "unknown" else story.ledger.state
    return f"{state}, key {story.ledger.key} ({story.ledger.key_source})"


def _row(gate: "GatePassed") -> tuple[str, str, str, str]:
    took = "" if gate.micros is None else f"{gate.micros / 1000:.3f} ms"
    return f"  {gate.name}", gate.verdict.value, took, gate.question
