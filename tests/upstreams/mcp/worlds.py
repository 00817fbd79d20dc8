"""Every way a well-behaved server is reached, by name."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from holdfast.upstreams.mcp.upstream import McpUpstream
from tests.upstreams.mcp.callers import upstream
from tests.upstreams.mcp.places import workshop_http, workshop_program, workshop_sse
from tests.upstreams.mcp.workshop import Workshop

MODERN = ("stdio", "http", "http-modern")
LEGACY = ("stdio-legacy", "http-legacy", "sse")
ALL = (*MODERN, *LEGACY)


@asynccontextmanager
async def world(name: str, workshop: Workshop | None = None, **options: Any) -> AsyncIterator[McpUpstream]:
    workshop = workshop or Workshop()
    match name:
        case "stdio":
            async with upstream(workshop_program("both"), **options) as made:
                yield made
        case "stdio-legacy":
            async with upstream(workshop_program("legacy"), **options) as made:
                yield made
        case "sse":
            async with workshop_sse(workshop) as target, upstream(target, **options) as made:
                yield made
        case _:
            era = {"http": "both", "http-legacy": "legacy", "http-modern": "modern"}[name]
            async with (
                workshop_http(workshop, era) as (target, _),  # type: ignore[arg-type]  # one of the three
                upstream(target, **options) as made,
            ):
                yield made
