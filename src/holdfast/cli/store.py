"""`holdfast store backup|restore|recover`: a store that is copied, put back, and told what it missed."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.exits import Exit
from holdfast.cli.invoked import command, with_config
from holdfast.cli.listed import Listed
from holdfast.cli.options import DEFAULT_CONFIG, As, ConfigFile, Json, Note
from holdfast.cli.screen import fail, show, show_json, text
from holdfast.cli.session import decider, identity_of, person, with_gateway

if TYPE_CHECKING:
    from holdfast.gateway.recovery import Recovered
    from holdfast.stores.backup.manifest import Manifest
    from holdfast.stores.backup.restore import Restored

File = Annotated[Path, typer.Argument(metavar="FILE", help="The backup.", show_default=False)]


def add(app: typer.Typer) -> None:
    group = typer.Typer(
        cls=Listed, help="Back the store up, put it back, find out what it missed.", no_args_is_help=True
    )
    for function in (backup, restore, recover):
        group.command()(function)
    app.add_typer(group, name="store")


def backup(file: File, as_: As = None, config: ConfigFile = DEFAULT_CONFIG, as_json: Json = False) -> None:
    """Write everything in the store to one file, while calls go on."""
    taken = with_gateway(config, lambda gateway: gateway.back_up(decider(gateway, as_), file.absolute()))
    if as_json:
        show_json({"file": str(file), **_manifest(taken)})
        return
    show(
        text(
            ("backed up", "bold green"),
            f"  {taken.rows} rows, {taken.tree_size} records in the log, to {file}",
        ),
        text(("  not in it: ", "dim"), "the key files; keep them elsewhere, it cannot be read without them"),
    )


def restore(file: File, as_: As = None, config: ConfigFile = DEFAULT_CONFIG, as_json: Json = False) -> None:
    """Put a backup in the place of the store; every write is refused until 'recover'."""
    import asyncio

    from holdfast.config import load
    from holdfast.gateway import backups

    known = load(config)
    identity = identity_of(known)
    by = person(identity, as_)
    taken, restored = asyncio.run(backups.restore(known, file.absolute(), by, identity))
    if as_json:
        show_json({"file": str(file), **_manifest(taken), **_restored(restored)})
        return
    show(
        text(
            ("restored", "bold green"),
            f"  the store as it was at {taken.taken}; this is life {restored.life.number}",
        )
    )
    if restored.unknown:
        show(text(f"  {restored.unknown} calls were running then: their outcome is unknown"))
    if restored.kept is not None:
        show(text(("  kept: ", "dim"), f"what was there before, as {restored.kept}"))
    show(
        text("  writes are refused until it is known what happened since"),
        text(("  next: ", "dim"), f"{command()} store recover{with_config(config)}"),
    )


def recover(
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--from", metavar="SOURCE", help="What is left of the lost store; several may be given."
        ),
    ] = None,
    nothing_left: Annotated[
        bool, typer.Option("--nothing-left", help="Nothing more can be found; what is missing is lost.")
    ] = False,
    note: Note = "",
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Take over what happened since the backup, and let writes through again."""
    from holdfast.gateway.recovery import Undecided, Wish

    wish = Wish(tuple(source or ()), nothing_left, note)
    try:
        done = with_gateway(config, lambda gateway: gateway.recover(decider(gateway, as_), wish))
    except Undecided as undecided:
        fail(str(undecided))
        raise typer.Exit(Exit.REFUSED) from None
    if as_json:
        show_json({**asdict(done), "operations": done.operations, "records": done.records})
    else:
        _show(done, config)


def _show(done: "Recovered", config: Path) -> None:
    for merged in done.merged:
        show(
            text(
                ("merged", "bold green"),
                f"  {merged.source}: {merged.operations} operations, {merged.approvals} approvals,"
                f" {merged.records} records",
            )
        )
        for fault in [merged.log_fault] if merged.log_fault else []:
            show(text(("  log: ", "yellow"), f"not continued to its old end: {fault}"))
        if merged.unreadable:
            show(text(("  not told: ", "yellow"), f"which keys {merged.unreadable} of its calls had"))
        if merged.halts:
            show(text(("  halted again: ", "yellow"), ", ".join(merged.halts)))
        if merged.promotions:
            word = "in force again: " if merged.promoted else "promoted there, not in force here: "
            show(text((f"  policies {word}", "yellow"), ", ".join(merged.promotions)))
    for unread in done.unread:
        show(text(("not read", "bold red"), f"  {unread}"))
    if done.lost is not None:
        show(text(("lost", "bold red"), f"  {done.lost}"))
        show(text("  keys used then and not merged are unknown here, and run again if they are sent again"))
    if done.unprotected:
        show(text("  nothing upstream would notice that for: ", ", ".join(done.unprotected)))
    if done.checkpoints_kept is not None:
        show(
            text(
                ("  kept: ", "dim"),
                f"the checkpoints so far, as {done.checkpoints_kept}; the log starts anew",
            )
        )
    show(
        text(
            ("recovered", "bold green"),
            f"  {done.settled} outcomes settled by probes, {done.unknown} unknown",
        )
    )
    show(text("  writes go on"))


def _manifest(taken: "Manifest") -> dict[str, object]:
    said = asdict(taken)
    return {**said, "tables": {name: member["rows"] for name, member in said["tables"].items()}}


def _restored(restored: "Restored") -> dict[str, object]:
    return {"life": restored.life.number, "unknown": restored.unknown, "kept": restored.kept}
