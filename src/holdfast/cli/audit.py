"""`holdfast audit verify|show|prove|export|erase|key`: what happened, and proof that nobody changed it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.exits import Exit
from holdfast.cli.invoked import command
from holdfast.cli.listed import Listed
from holdfast.cli.options import DEFAULT_CONFIG, As, ConfigFile, Json
from holdfast.cli.screen import fail, show, show_json, text
from holdfast.cli.session import decider, with_gateway
from holdfast.model.errors import ConfigError, NotFound

if TYPE_CHECKING:
    from holdfast.gateway import Gateway
    from holdfast.gateway.recall import Recalled
    from holdfast.model.record import Proof
    from holdfast.records.note import Verifier
    from holdfast.records.report import Report

Key = Annotated[
    str | None, typer.Option("--key", help="The public key, or a file that holds it; yours when left out.")
]
Checkpoints = Annotated[
    Path | None,
    typer.Option("--checkpoints", help="Checkpoints kept outside the database; yours when left out."),
]


def add(app: typer.Typer) -> None:
    group = typer.Typer(
        cls=Listed, help="Verify, show and export the log of everything.", no_args_is_help=True
    )
    for function in (verify, prove, export, erase, key):
        group.command()(function)
    group.command("show")(show_)
    app.add_typer(group, name="audit")


def verify(
    db: Annotated[Path | None, typer.Option("--db", help="Another database than the configured one.")] = None,
    exported: Annotated[Path | None, typer.Option("--export", help="A file that 'export' wrote.")] = None,
    checkpoints: Checkpoints = None,
    key: Key = None,
    config: ConfigFile = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Look for any changed, removed, inserted, reordered or missing record."""
    report = _verified(db, exported, checkpoints, key, config)
    if as_json:
        show_json(report.to_dict())
    else:
        _show_report(report)
    raise typer.Exit(Exit.DONE if report.ok else Exit.FAILED)


def _verified(
    db: Path | None, exported: Path | None, checkpoints: Path | None, key: str | None, config: Path
) -> "Report":
    from holdfast.config import load
    from holdfast.gateway import auditing, logfile
    from holdfast.records.verify import verify_export

    if exported is not None:
        return verify_export(_existing(exported), _key(key, config), checkpoints)
    known = None if db is not None and checkpoints is not None else load(config)
    store = db or (logfile.place(known) if known is not None else Path())
    outside = checkpoints or (auditing.checkpoint_path(known) if known is not None else Path())
    return logfile.verify(store, outside, _key(key, config))


def _key(said: str | None, config: Path) -> "Verifier":
    from holdfast.config import load
    from holdfast.gateway.logfile import public_key
    from holdfast.records.verify import public_key as given_key

    if said is None:
        return public_key(load(config))
    try:
        return given_key(said)
    except OSError as error:
        raise ConfigError(f"the key {said!r} cannot be read: {error.strerror}") from None


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise NotFound(f"there is no file {str(path)!r}")
    return path


def _show_report(report: "Report") -> None:
    styles = {"tampered": "bold red", "not intact": "bold red", "verified": "bold green"}
    for line in report.lines():
        word, colon, rest = line.partition(":")
        show(text((word, styles.get(word, "yellow")), colon + rest) if colon else text(line))


def show_(
    call_id: Annotated[str, typer.Argument(metavar="CALL", help="The call's id.", show_default=False)],
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
    as_json: Json = False,
) -> None:
    """Show how a call was decided, from its records, and whether it would be decided the same now."""
    found = with_gateway(config, lambda gateway: gateway.log.recall(decider(gateway, as_), call_id))
    if as_json:
        show_json(found.to_dict())
    else:
        _show_recalled(found)


def _show_recalled(found: "Recalled") -> None:
    for step in found.steps:
        about = [f"{name} {_short(step[name])}" for name in _TOLD if step.get(name) not in (None, "", [])]
        show(
            text(
                (f"{step['at']}  ", "dim"),
                (f"{step['kind']:<8}", "bold"),
                f"{step['by']}  {', '.join(about)}",
            )
        )
    if found.decision is not None:
        allowed = "permitted" if found.decision["allow"] else "forbidden"
        by = ", ".join(found.decision["policies"]) or "nobody's policy"
        show(text(("decision  ", "dim"), f"{allowed} by {by} of {found.decision['version']}"))
    for check in found.checks:
        word, style = _SAME[check.same]
        show(text((f"{word:<11}", style), f"{check.what}: {check.text}"))
    word, style = _VERDICT[found.same]
    show(text((word, style)))


_TOLD = (
    "did",
    "tool",
    "status",
    "error_code",
    "state",
    "from",
    "to",
    "role",
    "approve",
    "approval_id",
    "note",
)
_SAME = {True: ("same", "green"), False: ("different", "bold red"), None: ("not known", "yellow")}
_VERDICT = {
    True: ("it would come out the same now", "bold green"),
    False: ("it would not come out the same now", "bold red"),
    None: ("whether it would come out the same cannot be told any more", "yellow"),
}


def _short(value: Any) -> str:
    return "yes" if value is True else "no" if value is False else str(value)


def prove(
    record: Annotated[str, typer.Argument(metavar="NAME", help="A record, as writer:number, or a call.")],
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Print proof that a record, or each record of a call, is in the log."""

    async def proofs(gateway: "Gateway") -> "list[Proof]":
        by = decider(gateway, as_)
        if ":" in record:
            return [await gateway.log.prove(by, record)]
        entries = await gateway.log.of_call(by, record, -1, 1000)
        return [await gateway.log.prove(by, entry.record.id) for entry in entries]

    found = with_gateway(config, proofs)
    if not found:
        raise NotFound(f"there are no records of a call {record!r} here")
    from holdfast.servers.audit import shown_proof

    show_json([shown_proof(proof) for proof in found] if len(found) > 1 else shown_proof(found[0]))


def export(
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write; - is standard output.")],
    tenant: Annotated[str | None, typer.Option("--tenant", help="Only this tenant's records.")] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="Only from this time on, as 2026-01-31 or with a time.")
    ] = None,
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Write the log to a file that anybody with the public key can verify alone."""
    import sys

    from holdfast.config import load
    from holdfast.gateway.logfile import write_export
    from holdfast.records.export import Part

    part, known = Part(tenant, None if since is None else _moment(since)), load(config)
    # That it was taken away is on record first; closing the gateway signs everything up to that.
    with_gateway(config, lambda gateway: gateway.log.note_export(decider(gateway, as_), *part))
    if str(output) == "-":
        write_export(known, part, sys.stdout.buffer)
        return
    with output.open("wb") as file:
        count = write_export(known, part, file)
    then = f"{command()} audit verify --export {output}"
    show(text(("exported", "bold green"), f"  {count} records to {output}"), text(("  next: ", "dim"), then))


def _moment(said: str) -> float:
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(said)
    except ValueError:
        raise typer.BadParameter(
            f"{said!r} is no time; write 2026-01-31T08:00", param_hint="--since"
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def erase(
    tenant: Annotated[str, typer.Option("--tenant", help="Whose stored payloads become unreadable.")],
    yes: Annotated[bool, typer.Option("--yes", help="You mean it: nobody can undo this.")] = False,
    as_: As = None,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Drop a tenant's key: what is stored for it can never be read again, what proves it stays."""
    if not yes:
        fail(f"this makes everything stored for tenant '{tenant}' unreadable for ever; add --yes to go on")
        raise typer.Exit(Exit.USAGE)
    if not with_gateway(config, lambda gateway: gateway.log.erase(decider(gateway, as_), tenant)):
        raise NotFound(f"nothing is stored for a tenant {tenant!r} here")
    show(text(("erased", "bold red"), f"  the payloads of tenant '{tenant}'; the log still verifies"))


def key(
    new: Annotated[
        bool, typer.Option("--new", help="Print a fresh private key, for a file or a secret store.")
    ] = False,
    config: ConfigFile = DEFAULT_CONFIG,
) -> None:
    """Show the public key that verifies this log."""
    if new:
        from holdfast.records.note import Signer

        fresh = Signer.fresh()
        typer.echo(fresh.private())
        typer.echo(f"# keep this secret; its public key is {fresh.verifier}", err=True)
        return
    from holdfast.config import load
    from holdfast.gateway.logfile import public_key

    typer.echo(str(public_key(load(config))))
