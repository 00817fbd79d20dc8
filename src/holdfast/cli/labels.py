"""`holdfast labels show|lift`: what sessions have seen, and how one is let go of it."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.listed import Listed
from holdfast.cli.options import DEFAULT_CONFIG, As, ConfigFile, Json, Note
from holdfast.cli.screen import show, show_json, table, text
from holdfast.cli.session import decider, with_gateway

if TYPE_CHECKING:
    from holdfast.ports import HeldLabel

Holder = Annotated[
    str | None,
    typer.Argument(
        metavar="SESSION", help="A session, or all of 'session:ana/s-1', 'task:ana/t-1', 'principal:ana/bot'."
    ),
]


def add(app: typer.Typer) -> None:
    group = typer.Typer(
        cls=Listed, help="What sessions have seen, for policies that ask.", no_args_is_help=True
    )
    group.command("show")(show_)
    group.command()(lift)
    app.add_typer(group, name="labels")


def show_(
    session: Holder = None, as_: As = None, config: ConfigFile = DEFAULT_CONFIG, as_json: Json = False
) -> None:
    """Show the labels that are held: by everybody, or by one session, task or principal."""
    held = with_gateway(config, lambda gateway: gateway.labels.held(decider(gateway, as_), session))
    if as_json:
        show_json({"labels": [_plain(one) for one in held]})
    elif not held:
        show(text("no labels are held" if session is None else f"{session!r} holds no labels"))
    else:
        rows = [
            ((one.label, "bold"), one.holder, one.principal, one.call_id, _moment(one.at)) for one in held
        ]
        show(table(("label", "held by", "brought by", "call", "since"), rows))


def lift(
    session: Annotated[str, typer.Argument(metavar="SESSION", help="Who holds it, as 'labels show' says.")],
    label: Annotated[str, typer.Argument(metavar="LABEL", help="What to let go of.")],
    note: Note = "",
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Let a session go on as if it had not seen what a label says; this is recorded."""
    holder = with_gateway(
        config, lambda gateway: gateway.labels.lift(decider(gateway, as_), session, label, note)
    )
    show(text(("lifted", "bold green"), f"  {label} from {holder}"))


def _plain(one: "HeldLabel") -> dict[str, Any]:
    from holdfast.model.moment import iso

    return {
        "label": one.label,
        "holder": one.holder,
        "principal": one.principal,
        "call_id": one.call_id,
        "at": iso(one.at),
        "seen_at": iso(one.seen_at),
    }


def _moment(at: float) -> str:
    from holdfast.cli.shown import moment

    return moment(at)
