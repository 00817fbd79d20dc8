"""`holdfast policy check|diff|promote|rollback|list|show`: look at policies, and put them in force."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.diff import diff, review, show_diff
from holdfast.cli.exits import Exit
from holdfast.cli.invoked import command, with_config
from holdfast.cli.listed import Listed
from holdfast.cli.options import DEFAULT_CONFIG, As, ConfigFile, Json, Note
from holdfast.cli.screen import show, show_json, table, text
from holdfast.cli.session import decider, with_gateway
from holdfast.model.errors import NotFound

if TYPE_CHECKING:
    from holdfast.gateway import Gateway
    from holdfast.ports import Promoted

Folder = Annotated[
    Path | None,
    typer.Argument(
        metavar="FOLDER",
        help="A folder of .cedar files; the configured one when left out.",
        show_default=False,
    ),
]


def add(app: typer.Typer) -> None:
    group = typer.Typer(cls=Listed, help="Look at policies, and put them in force.", no_args_is_help=True)
    group.command()(check)
    group.command()(promote)
    group.command()(rollback)
    group.command("list")(list_)
    group.command("show")(show_)
    group.command()(diff)
    app.add_typer(group, name="policy")


def check(
    folder: Folder = None,
    strict: Annotated[bool, typer.Option("--strict", help="Fail on warnings too.")] = False,
    pin: Annotated[
        bool, typer.Option("--pin", help="Print what binds each policy to the contracts of today.")
    ] = False,
    config: ConfigFile = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Check policies against the tools that are configured; nothing is put in force."""
    from holdfast.cli.checked import show_checked, show_pins, told
    from holdfast.gateway.inspect import inspect

    seen = inspect(config, folder)
    if as_json:
        show_json(told(seen))
    elif pin and seen.report.ok:
        show_pins(seen)
    else:
        show_checked(seen)
    failed = not seen.report.ok or (strict and seen.examination.warnings)
    raise typer.Exit(Exit.FAILED if failed else Exit.DONE)


def promote(
    folder: Folder = None,
    with_diff: Annotated[
        bool, typer.Option("--with-diff", help="Show first which past calls would flip, and ask.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    note: Note = "",
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Put policies in force, in every process."""
    from holdfast.gateway.policies import folder as chosen
    from holdfast.gateway.policies import read

    async def promoted(gateway: "Gateway") -> tuple[str, bool]:
        bundle, by = read(chosen(gateway.config, folder)), decider(gateway, as_)
        if with_diff:
            seen = await gateway.history.diff(by, bundle, review(gateway))
            show_diff(seen)
            if not yes:
                typer.confirm("put these policies in force?", abort=True, err=True)
            await gateway.history.accept(by, seen, note)
        return bundle.version, await gateway.policies.promote(by, bundle, note)

    version, done = with_gateway(config, promoted)
    if not done:
        show(text(("already in force", "bold"), f"  {version}"))
        return
    back = f"{command()} policy rollback{f' --as {as_}' if as_ else ''}{with_config(config)}"
    show(text(("promoted", "bold green"), f"  {version}"), text(("  undo: ", "dim"), back))


def rollback(note: Note = "", as_: As = None, config: ConfigFile = DEFAULT_CONFIG) -> None:
    """Go back to the policies that were in force before."""
    back = with_gateway(config, lambda gateway: gateway.policies.rollback(decider(gateway, as_), note))
    show(text(("in force again", "bold green"), f"  {back.version}"))


def list_(config: ConfigFile = DEFAULT_CONFIG, as_json: Json = False) -> None:
    """List what was put in force, newest first."""
    found = with_gateway(config, lambda gateway: gateway.policies.promotions())
    active = next((one.number for one in found if one.ended_by is None), None)
    if as_json:
        show_json({"promotions": [_promotion(one, active) for one in found]})
    elif not found:
        show(text("nothing was ever promoted"))
    else:
        rows = [(_state(one, active), one.version, _moment(one.at), one.by, one.note) for one in found]
        show(table(("", "version", "at", "by", "note"), rows))


def show_(
    version: Annotated[
        str | None, typer.Argument(metavar="VERSION", help="A version; the one in force when left out.")
    ] = None,
    config: ConfigFile = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Print the policies of a version, as they were promoted."""
    from holdfast.policy import Bundle

    found = with_gateway(config, lambda gateway: gateway.policies.promotions())
    wanted = [one for one in found if (one.ended_by is None if version is None else one.version == version)]
    if not wanted:
        what = "policies" if version is None else f"policies {version!r}"
        raise NotFound(f"no {what} were promoted; 'holdfast policy list' lists them")
    files = Bundle.stored(wanted[0].content).files
    if as_json:
        show_json({"version": wanted[0].version, "files": dict(files)})
        return
    for name, content in files.items():
        show(text((f"// {wanted[0].version} {name}", "dim")), text(content.rstrip()))


def _promotion(one: "Promoted", active: int | None) -> dict[str, Any]:
    from holdfast.model.moment import iso

    return {
        "version": one.version,
        "by": one.by,
        "at": iso(one.at),
        "note": one.note,
        "in_force": one.number == active,
        "rolled_back_by": one.ended_by,
    }


def _state(one: "Promoted", active: int | None) -> tuple[str, str]:
    if one.number == active:
        return "in force", "bold green"
    return ("rolled back", "dim") if one.ended_by is not None else ("earlier", "dim")


def _moment(at: float) -> str:
    from holdfast.cli.shown import moment

    return moment(at)
