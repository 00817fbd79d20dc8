"""What do the servers offer? Each is started or reached once, all at the same time, and closed again."""

import asyncio
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.cli.wrap import files
from holdfast.cli.wrap.references import Reference
from holdfast.cli.wrap.result import Guess, Listed
from holdfast.cli.wrap.upstreams import Plan, Wrapped

if TYPE_CHECKING:
    from holdfast.config import Config
    from holdfast.upstreams.mcp.listing import Snapshot

PATIENCE_S = 60.0
"""For one server: `npx` and `uvx` fetch it first."""
SIGN_IN = {"auth": {"type": "oauth"}}
_WANTS_SIGN_IN = re.compile(r"HTTP status 40[13]\b")


def discover(plan: Plan, out: Path, environ: dict[str, str]) -> dict[str, Listed]:
    """By namespace, what each server said."""
    from holdfast.config import parse

    tree = {"upstreams": {one.namespace: files.upstream(one, {}) for one in plan.wrapped}}
    config = parse(tree, folder=out, source="what would be written", environ=environ)
    config.folder.mkdir(parents=True, exist_ok=True)  # servers run there, as they will later
    return asyncio.run(_all(plan, config))


async def _all(plan: Plan, config: "Config") -> dict[str, Listed]:
    found = await asyncio.gather(*(_one(plan, one, config) for one in plan.wrapped))
    return {one.namespace: listed for one, listed in zip(plan.wrapped, found, strict=True)}


class _Unready(Exception):
    """It did not come up; says why."""


async def _one(plan: Plan, one: Wrapped, config: "Config") -> Listed:
    from holdfast.upstreams.mcp.errors import Garbage, Refused, Unsent  # MCP takes a second to import

    used = [r for name, r in plan.references.given.items() if f"${{{name}}}" in str(one.settings)]
    if unknown := [reference.name for reference in used if reference.value is None]:
        told = f"only the client knows {', '.join(unknown)}; set it here and run this again"
        return Listed(reached=False, faults=(told,))
    try:
        snapshot = await _snapshot(one.namespace, config)
    except (_Unready, TimeoutError, OSError, Unsent, Refused, Garbage) as error:
        return _unreached(one, _without(str(error) or type(error).__name__, used))
    guesses = tuple(_guess(tool) for tool in snapshot.tools if isinstance(tool.get("name"), str))
    faults = tuple(_without(fault, used) for fault in snapshot.faults)
    return Listed(guesses, faults, tools=tuple(dict(tool) for tool in snapshot.tools))


async def _snapshot(namespace: str, config: "Config") -> "Snapshot":
    from holdfast.gateway.mcp import mcp_upstream

    upstream = mcp_upstream(namespace, config.upstreams[namespace], config)
    upstream.start()
    try:
        if not await upstream.ready(PATIENCE_S):
            raise _Unready(upstream.last_error or f"it did not answer within {PATIENCE_S:g} s")
        return await upstream.snapshot(PATIENCE_S)
    finally:
        await upstream.close()


def _guess(tool: Mapping[str, Any]) -> Guess:
    from holdfast.catalog.imports.infer import infer
    from holdfast.catalog.imports.poison import suspicions
    from holdfast.model.vocabulary import Effect

    guess = infer(tool, trust_annotations=False)
    effect, reasons = guess.effect, list(guess.reasons)
    if wrong := [str(one) for one in suspicions(tool) if one.degree != "note"]:
        effect, reasons = max(effect, Effect.HIGH_RISK_EXTERNAL, key=lambda one: one.rank), wrong
    return Guess(str(tool["name"]), effect.value, "; ".join(dict.fromkeys(reasons)))


def _unreached(one: Wrapped, said: str) -> Listed:
    """A remote server that opens to nobody wants people to sign in, as the client has done so far."""
    if "url" in one.settings and not one.settings.get("headers") and _WANTS_SIGN_IN.search(said):
        told = f"it wants you to sign in: holdfast login {one.namespace}"
        return Listed(reached=False, faults=(told,), settings=SIGN_IN)
    return Listed(reached=False, faults=(said,))


def _without(text: str, references: Iterable[Reference]) -> str:
    for reference in references:
        for secret in (reference.value, reference.text):
            if secret:
                text = text.replace(secret, "[hidden]")
    return text
