"""`holdfast doctor`: is everything in order here, and if not, what is to be done?"""

import platform
import sqlite3
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from holdfast.cli.exits import Exit
from holdfast.cli.options import DEFAULT_CONFIG, ConfigFile, Json
from holdfast.cli.screen import show, show_json, text
from holdfast.model.call import Principal
from holdfast.model.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.config import Config
    from holdfast.gateway import Gateway

EVERYTHING = Principal(user="holdfast", agent="doctor", scopes=frozenset(["**"]))
STYLES = {"ok": "green", "warning": "yellow", "wrong": "bold red"}


@dataclass(frozen=True, slots=True)
class Finding:
    about: str
    state: Literal["ok", "warning", "wrong"]
    text: str


def add(app: typer.Typer) -> None:
    app.command()(doctor)


def doctor(config: ConfigFile = DEFAULT_CONFIG, as_json: Json = False) -> None:
    """Check the configuration, the store and the tools."""
    findings = [*_machine(), *_configured(config)]
    if as_json:
        show_json({"findings": [asdict(finding) for finding in findings], "ok": not _wrong(findings)})
    else:
        for finding in findings:
            show(text((f"{finding.state:<8}", STYLES[finding.state]), f"{finding.about:<12}{finding.text}"))
    raise typer.Exit(Exit.FAILED if _wrong(findings) else Exit.DONE)


def _wrong(findings: list[Finding]) -> bool:
    return any(finding.state == "wrong" for finding in findings)


def _machine() -> Iterator[Finding]:
    new_enough = sys.version_info >= (3, 11)
    yield Finding("python", "ok" if new_enough else "wrong", platform.python_version())
    yield Finding("sqlite", "ok", sqlite3.sqlite_version)


def _configured(path: Path) -> Iterator[Finding]:
    import asyncio

    from holdfast.config import load

    try:
        config = load(path)
    except HoldfastError as error:
        yield Finding("config", "wrong", str(error))
        return
    yield Finding("config", "ok", f"{path}: {config.environment.value}, auth.mode {config.auth.mode}")
    try:
        yield from asyncio.run(_open(config))
        yield from _stored(config)
    except HoldfastError as error:
        yield Finding("gateway", "wrong", str(error))


def _store(state: Mapping[str, str | bool]) -> str:
    """Where it is not just `ok`, what to do about it."""
    return str(state.get("detail", state["store"]))


async def _open(config: "Config") -> list[Finding]:
    from holdfast.gateway import Gateway

    async with Gateway.open(config) as gateway:
        state = await gateway.ready()
        return [
            Finding("store", "ok" if state["ready"] else "wrong", f"{config.store_shown}: {_store(state)}"),
            *_operations(await gateway.unknown()),
            *_policy(gateway, str(state.get("policy", "none"))),
            *_tools(gateway),
            *_people(gateway),
            *_issuer(gateway),
            *_keys(gateway),
            *[finding async for finding in _secrets(gateway)],
            *[finding async for finding in _egress(gateway)],
            *[
                Finding(
                    "halted",
                    "warning",
                    f"{target}: {why or 'no reason given'}; 'holdfast resume {target}' ends it",
                )
                for target, why in (await gateway.halts()).items()
            ],
        ]


def _policy(gateway: "Gateway", version: str) -> Iterator[Finding]:
    notes = gateway.policies.notes()
    yield Finding("policy", "warning" if notes else "ok", version)
    for note in notes:
        yield Finding("policy", "warning", note)


def _tools(gateway: "Gateway") -> Iterator[Finding]:
    count = len(gateway.tools(EVERYTHING))
    if count:
        yield Finding("tools", "ok", f"{count} admitted from {len(gateway.config.upstreams)} upstreams")
    else:
        yield Finding("tools", "warning", "none; add some under 'upstreams'")
    chains = set() if gateway.config.chains is None else set(gateway.chains.offers.reports)
    for report in sorted(gateway.findings(), key=lambda one: one not in chains):  # advice comes last
        yield Finding("chain" if report in chains else "contract", "warning", report)


async def _egress(gateway: "Gateway") -> AsyncIterator[Finding]:
    """What leads inside, and what cannot be reached by rule."""
    from holdfast.model.egress.ranges import INNER

    async for name, mode, lead in gateway.egress.leads():
        rule = f"the rule is '{mode}'"
        if lead is None:
            yield Finding("egress", "warning", f"the host of {name!r} leads nowhere; {rule}")
        elif lead.objection is not None:
            said = f"{name!r} is not connected to: {lead.objection}; {rule}, see 'egress'"
            yield Finding("egress", "wrong", said)
        elif inner := sorted(kind.value for kind in lead.kinds & INNER):
            told = f"{name!r} leads to {' and '.join(inner)} addresses, because its url says so; {rule}"
            yield Finding("egress", "ok", f"{told} for what it leads to")


def _issuer(gateway: "Gateway") -> Iterator[Finding]:
    keys, issuer = gateway.identity.issuer_keys, gateway.config.auth.issuer
    if keys is None:
        return
    if len(keys):
        yield Finding("issuer", "ok", f"{len(keys)} keys of {issuer!r}")
    else:
        said = f"no key of {issuer!r} can be had, so no token is accepted: {keys.wrong or 'it names none'}"
        yield Finding("issuer", "wrong", said)


def _keys(gateway: "Gateway") -> Iterator[Finding]:
    if gateway.identity.mode == "api_key" and not gateway.identity.keys:
        said = "none works, so nobody gets in; the first is made with 'holdfast keys create --user NAME'"
        yield Finding("keys", "warning", said)


async def _secrets(gateway: "Gateway") -> AsyncIterator[Finding]:
    """Each is read, and only said whether that went well."""
    from holdfast.upstreams.secrets.wallet import Wallet

    wallet = gateway.credentials
    if not isinstance(wallet, Wallet):
        return
    well = 0
    for name in gateway.config.secrets:
        if (wrong := await wallet.objection(name)) is None:
            well += 1
        else:
            said = f"{name!r} cannot be used: {wrong}; calls that need it are refused"
            yield Finding("secrets", "wrong", said)
    if well:
        yield Finding("secrets", "ok", f"{well} of {len(gateway.config.secrets)} can be read")


def _people(gateway: "Gateway") -> Iterator[Finding]:
    identity = gateway.identity
    operators = [name for name, person in identity.people.items() if "operator" in person.roles]
    if len(operators) < 2:
        yield Finding(
            "people", "warning",
            f"{len(operators)} hold the role 'operator', so calls that need two cannot be approved; "
            "add people under 'auth.people'",
        )  # fmt: skip
    for name, person in identity.people.items():
        if person.secret == "plain:":
            yield Finding(
                "people", "warning", f"the approver secret of {name!r} is not set in this environment"
            )


def _stored(config: "Config") -> Iterator[Finding]:
    if config.store_key is None:
        keys = config.beside(".keys")
        mode = keys.stat().st_mode & 0o777
        yield Finding("key file", "wrong" if mode & 0o077 else "ok", f"{keys.name}, mode {mode:o}")
    if config.environment.value != "dev" and None in (config.audit.key, config.audit.checkpoints):
        advice = "set 'audit.key' and 'audit.checkpoints' to where the database is not"
        yield Finding(
            "audit", "warning", f"whoever can write to the database can also sign its log; {advice}"
        )
    if not config.on_postgres:
        yield _journal(config.store_path)


def _journal(path: Path) -> Finding:
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    finally:
        connection.close()
    return Finding("journal", "ok" if mode == "wal" else "wrong", mode)


def _operations(unknown: int) -> Iterator[Finding]:
    if unknown:
        advice = "find out what happened, then 'holdfast settle CALL committed|no-effect --note WHY'"
        yield Finding("operations", "warning", f"{unknown} have an unknown outcome; {advice}")
    else:
        yield Finding("operations", "ok", "none has an unknown outcome")
