"""A log made by a real gateway, and the ways to lay hands on it."""

import shutil
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from holdfast import Effect, Gateway, NoEffect, Principal, Undo, tool
from holdfast import config as configuration
from holdfast.gateway import auditing, logfile
from holdfast.records.checkpoint import Notary
from holdfast.records.export import Part
from holdfast.records.exported import inspect_export
from holdfast.records.note import Verifier
from holdfast.records.report import Report

ANA = Principal(user="ana", agent="bot", roles=frozenset({"operator"}), scopes=frozenset({"**"}), trust=60)
ACME = Principal(tenant="acme", user="zoe", agent="bot", scopes=frozenset({"**"}), trust=60)

ROUNDS = 10
"""Checkpoints that a log is signed with while it grows."""


@tool(effect=Effect.READ_ONLY)
async def look(thing: str) -> dict[str, str]:
    """Look at a thing."""
    return {"thing": thing}


@tool(
    effect=Effect.LOW_RISK_INTERNAL,
    undo=Undo.EXACT,
    manifest=[("things", "UPDATE", "one")],
    idempotency={},
)
async def touch(thing: str) -> dict[str, str]:
    """Touch a thing."""
    if thing == "locked":
        raise NoEffect("it is locked")
    if thing == "broken":
        raise RuntimeError("it broke")
    return {"thing": thing}


TOOLS = [look, touch]
CONFIG: dict[str, Any] = {"upstreams": {"test": {"functions": "tests.audit.world:TOOLS"}}}


@dataclass(frozen=True, slots=True)
class Place:
    """Where one log lies: the database, and outside it the key and the checkpoints."""

    folder: Path

    @property
    def config(self) -> configuration.Config:
        return configuration.parse(CONFIG, folder=self.folder)

    @property
    def database(self) -> Path:
        return self.config.store_path

    @property
    def checkpoints(self) -> Path:
        return auditing.checkpoint_path(self.config)

    @property
    def notary(self) -> Notary:
        return auditing.notary(self.config)

    @property
    def key(self) -> Verifier:
        return logfile.public_key(self.config)

    def copy(self, folder: Path) -> "Place":
        """Another one just like it, to be tampered with."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return Place(folder)

    def verify(self) -> Report:
        return logfile.verify(self.database, self.checkpoints, self.key)

    def export(self, part: Part = Part()) -> bytes:  # noqa: B008
        file = BytesIO()
        logfile.write_export(self.config, part, file)
        return file.getvalue()

    @asynccontextmanager
    async def gateway(self) -> AsyncIterator[Gateway]:
        async with Gateway.open(self.config) as opened:
            yield opened

    @contextmanager
    def tampering(self) -> Iterator[sqlite3.Connection]:
        """Somebody who can write to the database, and to nothing else."""
        with closing(sqlite3.connect(self.database, isolation_level=None)) as connection:
            yield connection


async def fill(place: Place, records: int) -> None:
    """Let a gateway make this many records, of reads, writes and refusals, by two tenants."""
    for number in range(ROUNDS):
        async with place.gateway() as gateway:  # each its own writer, signed when it closes
            await _calls(gateway, number, records // ROUNDS)


async def _calls(gateway: Gateway, number: int, records: int) -> None:
    made = 0
    while made < records:
        who = ACME if made % 5 == 4 else ANA
        if made == records - 1 or made % 7 == 6:
            await gateway.call("test.nothing", {}, principal=who)
            made += 1
        elif made % 3 == 0:
            await gateway.call("test.look", {"thing": f"t-{made}"}, principal=who)
            made += 2
        else:
            await gateway.call("test.touch", {"thing": f"t-{made}"}, principal=who, key=f"k-{number}-{made}")
            made += 2


def check(exported: bytes, key: Verifier, outside: list[str] | None = None) -> Report:
    return inspect_export(BytesIO(exported), outside or [], key)


def said(report: Report) -> str:
    return "\n".join(map(str, report.faults))
