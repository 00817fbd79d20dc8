"""`holdfast policy diff`: try policies on the calls of the past, before they are put in force."""

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.options import DEFAULT_CONFIG, As, ConfigFile, Json, Note
from holdfast.cli.screen import show, show_json, table, text
from holdfast.cli.session import decider, with_gateway
from holdfast.model.errors import ConfigError

if TYPE_CHECKING:
    from rich.text import Text

    from holdfast.gateway import Gateway
    from holdfast.gateway.diff import Diff, Wish
    from holdfast.policy import Bundle
    from holdfast.policy.replay import Flip, Group, Ruling

UNITS = {"m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
SINCE = re.compile(r"(\d+(?:\.\d+)?)([mhdw])")


def diff(
    candidate: Annotated[
        str | None,
        typer.Argument(
            metavar="FOLDER|VERSION",
            help="A folder of .cedar files, or a promoted version; the configured folder when left out.",
            show_default=False,
        ),
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="7d", help="How far to look back: 30m, 12h, 7d, 4w.")
    ] = None,
    tool: Annotated[str | None, typer.Option(help="Only tools like this, such as 'shop.*'.")] = None,
    principal: Annotated[str | None, typer.Option(help="Only callers like this, such as 'ana/*'.")] = None,
    tenant: Annotated[str | None, typer.Option(help="Only this tenant's calls.")] = None,
    against: Annotated[
        str,
        typer.Option(metavar="then|active", help="Compare with what was decided, or with what is in force."),
    ] = "then",
    examples: Annotated[int, typer.Option(min=0, help="Calls shown of each group.")] = 3,
    accept: Annotated[
        bool, typer.Option("--accept", help="Record that this was looked at, for a promotion that asks.")
    ] = False,
    note: Note = "",
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Print every past call that these policies would decide otherwise; nothing is put in force."""
    if against not in ("then", "active"):
        raise typer.BadParameter("it is 'then' or 'active'", param_hint="--against")

    async def found(gateway: "Gateway") -> "Diff":
        from holdfast.gateway.diff import Wish

        by = decider(gateway, as_)
        wish = Wish(
            since_s=span(since, gateway),
            tool=tool,
            principal=principal,
            tenant=tenant,
            active=against == "active",
            examples=examples,
        )
        made = await gateway.history.diff(by, await _bundle(gateway, candidate), wish)
        if accept:
            await gateway.history.accept(by, made, note)
        return made

    made = with_gateway(config, found)
    if as_json:
        show_json({**made.to_dict(), "accepted": accept})
        return
    show_diff(made)
    if accept:
        show(text(("accepted", "bold green"), f"  {made.version}"))


def span(text: str | None, gateway: "Gateway") -> float:
    """Seconds, from `7d`; as far as a promotion asks for when nothing is said."""
    if text is None:
        return gateway.config.policy_review.days * UNITS["d"]
    said = SINCE.fullmatch(text)
    if said is None:
        raise ConfigError(f"{text!r} is no time to look back; write it as '30m', '12h', '7d' or '4w'")
    return min(float(said[1]) * UNITS[said[2]], time.time())  # nothing is older than the epoch


async def _bundle(gateway: "Gateway", candidate: str | None) -> "Bundle":
    from holdfast.gateway.policies import folder, read

    path = None if candidate is None else Path(candidate)
    if path is None or path.is_dir() or not re.fullmatch(r"[a-z0-9-]+/[0-9a-f]{12}", str(candidate)):
        return read(folder(gateway.config, path))
    return await gateway.history.find(str(candidate))


def review(gateway: "Gateway") -> "Wish":
    """What a promotion asks to be looked at."""
    from holdfast.gateway.diff import Wish

    return Wish(since_s=span(None, gateway))


def show_diff(made: "Diff") -> None:
    from holdfast.cli.shown import moment

    than = "what was decided" if made.against is None else made.against
    show(
        text(
            (f"{made.flips} of {made.decisions} decisions flip", "bold"), f"  {made.version} against {than}"
        ),
        text((f"from {moment(made.since)} to {moment(made.until)}", "dim")),
    )
    if made.groups:
        rows = [
            ((group.change.value, _style(group)), (group.tool, "bold"), group.principal, str(group.count))
            for group in made.groups
        ]
        show(text(""), table(("change", "tool", "principal", "calls"), rows))
    for group in made.groups:
        if group.examples:
            show(text(""), text((f"{group.tool}  {group.principal}", "bold")))
        for flip in group.examples:
            show(*_example(flip))
    for why, tools in made.left.items():
        for tool, count in tools.items():
            show(text(("not judged", "bold yellow"), f"  {count} of {tool}: {why.value}"))


def _style(group: "Group") -> str:
    return {"allow->deny": "bold red", "deny->allow": "bold green"}.get(group.change.value, "bold yellow")


def _example(flip: "Flip") -> "list[Text]":
    from holdfast.cli.shown import moment
    from holdfast.gateway.diff import limits_note

    after = flip.after
    by = ", ".join(f"{id} ({place})" for id, place in zip(after.policies, after.places, strict=True))
    said = "; ".join(after.reasons)
    lines = [
        text((flip.change.value, "dim"), f"  {flip.past.call_id}  {moment(flip.facts['at'])}"),
        text(("  by ", "dim"), f"{by or 'no policy'}: {said}"),
    ]
    if flip.change.value in ("approval", "duties"):
        lines.append(text(("  from ", "dim"), _asks(flip.before), (" to ", "dim"), _asks(after)))
    if (note := limits_note(flip)) is not None:
        lines.append(text(("  limits: ", "dim"), note))
    return lines


def _asks(ruling: "Ruling") -> str:
    need = [f"{count} x {role}" for role, count in ruling.need.items()]
    asked = [*need, *(f"redact {path}" for path in ruling.redact), *(f"verify by {w}" for w in ruling.verify)]
    return ", ".join(asked) or "nothing"
