"""A store, what belongs to it outside, and everything that can befall them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from holdfast import Gateway, Principal
from holdfast import config as configuration
from holdfast.gateway import auditing, backups, logfile
from holdfast.gateway.recovery import Recovered, Wish
from holdfast.model.observation import Observation
from holdfast.records.export import Part
from holdfast.records.report import Report
from holdfast.stores.backup.restore import Restored
from tests.postgres import empty_database

ANA = Principal(user="ana", agent="bot", roles=frozenset({"operator"}), scopes=frozenset({"**"}), trust=60)
BEN = replace(ANA, user="ben")
ZOE = Principal(tenant="acme", user="zoe", agent="bot", scopes=frozenset({"**"}), trust=60)
ENGINES = ("sqlite", "postgres")
TREE: dict[str, Any] = {
    "upstreams": {"town": {"functions": "tests.lives.tools:TOOLS"}},
    "auth": {
        "people": {
            "ana": {"roles": ["operator"], "scopes": ["**"], "trust": 60},
            "ben": {"roles": ["operator"], "scopes": ["**"], "trust": 60},
            "zoe": {"tenant": "acme", "scopes": ["**"], "trust": 60},
        }
    },
    "limits": {"budgets": [{"per": "tenant", "kind": "write", "calls": 1000}]},
}


@dataclass(frozen=True, slots=True)
class Town:
    folder: Path
    store: str

    @property
    def config(self) -> configuration.Config:
        return configuration.parse({**TREE, "store": self.store}, folder=self.folder)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Gateway]:
        async with Gateway.open(self.config) as gateway:
            yield gateway

    async def call(self, key: str, tool: str = "plain", principal: Principal = ANA) -> Observation:
        """Let what is called as its key happen, in a process that comes and goes."""
        async with self.open() as gateway:
            return await gateway.call(f"town.{tool}", {"name": key}, key=key, principal=principal)

    async def back_up(self, name: str = "noon") -> Path:
        path = self.folder / name
        async with self.open() as gateway:
            await gateway.back_up(ANA, path)
        return path

    async def restore(self, path: Path) -> Restored:
        people = {"operator": frozenset({"ana"})}
        _, restored = await backups.restore(self.config, path, ANA, _People(people))
        return restored

    async def recover(self, *sources: Path | str, note: str = "") -> Recovered:
        """With a note: nothing else is left."""
        wish = Wish(tuple(map(str, sources)), nothing_left=bool(note), note=note)
        async with self.open() as gateway:
            return await gateway.recover(ANA, wish)

    async def export(self, name: str = "log.jsonl", part: Part = Part()) -> Path:  # noqa: B008
        path = self.folder / name
        with path.open("wb") as file:
            await asyncio.to_thread(logfile.write_export, self.config, part, file)
        return path

    async def verify(self, checkpoints: Path | None = None) -> Report:
        config = self.config
        outside = checkpoints or auditing.checkpoint_path(config)
        key = logfile.public_key(config)
        return await asyncio.to_thread(logfile.verify, logfile.place(config), outside, key)


@dataclass(frozen=True, slots=True)
class _People:
    roles: dict[str, frozenset[str]]

    def holders(self, tenant: str, role: str) -> frozenset[str]:
        return self.roles.get(role, frozenset())

    def operated(self, tenant: str) -> bool:
        return bool(self.holders(tenant, "operator"))


@asynccontextmanager
async def town(engine: str, folder: Path) -> AsyncIterator[Town]:
    folder.mkdir(exist_ok=True)
    if engine == "sqlite":
        yield Town(folder, "sqlite:///holdfast.db")
    else:
        async with empty_database() as url:
            yield Town(folder, url)
