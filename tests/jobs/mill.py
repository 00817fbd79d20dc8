"""A mill whose jobs are files, so that whoever dies cannot forget them; and where a process dies.

Each line of `did` in the folder that the environment names is something that really happened there.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from holdfast import Effect, Gateway, Invocation, Undo, tool
from holdfast import config as configuration
from holdfast.gateway.storing import store_of
from holdfast.gateway.wiring import Adapt
from holdfast.model.function import FunctionTool
from holdfast.system import RandomIds, SystemClock
from holdfast.upstreams.function import FunctionUpstream
from tests.chains.orders import FUSE
from tests.soak.effects import name_of

PLACE = "HOLDFAST_TEST_MILL"
LOOKS = 2
"""After so many a job has ended by itself."""
CONFIG: dict[str, Any] = {"auth": {"people": {"ann": {"scopes": ["**"], "trust": 80}}}}
JOB: dict[str, Any] = {
    "id": "result.job",
    "poll": {"tool": "look", "arguments": {"job": "=job"}},
    "done": "state.state == 'done'",
    "failed": "state.state == 'stopped' ? 'stopped' : ''",
    "result": "{'flour': state.flour}",
    "cancel": {"tool": "stop", "arguments": {"job": "=job"}},
    "every_s": 0.05,
    "slowest_s": 0.1,
}


def _folder() -> Path:
    return Path(os.environ[PLACE])


def happened(what: str) -> None:
    """One line, in one write."""
    line = os.open(_folder() / "did", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(line, f"{what}\n".encode())
    finally:
        os.close(line)


def did(folder: Path, name: str) -> list[str]:
    """What was done of a job, but for looking at it."""
    lines = (folder / "did").read_text().splitlines()
    return [what for line in lines for what, of in [line.split()] if of == name and what != "look"]


@tool(
    effect=Effect.LOW_RISK_INTERNAL,
    undo=Undo.EXACT,
    scopes=["mill:grind"],
    manifest=[("flour", "CREATE", "one")],
    idempotency="meta",
    job=JOB,
)
async def grind(corn: str, invocation: Invocation) -> dict[str, str]:
    """Grind corn; the same key is the same job.

    Args:
        corn: what to grind
    """
    name = name_of(invocation.key)
    if not (_folder() / name).exists():
        (_folder() / name).write_text("grinding")
        happened(f"submit {name}")
    FUSE.reached("during submit")
    return {"job": name}


@tool(effect=Effect.READ_ONLY)
async def look(job: str) -> dict[str, Any]:
    """Look how far a job is.

    Args:
        job: its name
    """
    happened(f"look {job}")
    FUSE.reached("during look")
    looked = (_folder() / "did").read_text().splitlines().count(f"look {job}")
    state = (_folder() / job).read_text()
    if state == "grinding" and looked > LOOKS and not job.startswith("endless"):
        state = "done"
    return {"state": state, "flour": 7}


@tool(
    effect=Effect.LOW_RISK_INTERNAL,
    undo=Undo.EXACT,
    scopes=["mill:grind"],
    manifest=[("flour", "DELETE", "one")],
    idempotency="none",
)
async def stop(job: str) -> str:
    """Stop a job.

    Args:
        job: its name
    """
    (_folder() / job).write_text("stopped")
    happened(f"stop {job}")
    FUSE.reached("during stop")
    return job


TOOLS: list[FunctionTool[..., Any]] = [grind, look, stop]


@asynccontextmanager
async def mill(url: str, folder: Path, adapt: Adapt | None = None) -> AsyncIterator[Gateway]:
    """A gateway of this process, on a store that others may use too."""
    os.environ[PLACE] = str(folder)
    config = configuration.parse({**CONFIG, "store": url}, folder=folder)
    async with store_of(config, SystemClock()) as store:
        ports: dict[str, Any] = {"clock": store.clock, "ids": RandomIds(), "adapt": adapt}
        gateway = Gateway.assemble(config, store, {"mill": FunctionUpstream(TOOLS)}, **ports)
        try:
            await gateway.prepare()
            yield gateway
        finally:
            await gateway.close()
