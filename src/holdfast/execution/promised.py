"""What does every answer of one contract say, however the call went?

Worked out once: a contract's digest names it, and everything here is part of what the digest covers.
"""

from typing import Any, NamedTuple

from holdfast.model.contract import Contract
from holdfast.model.vocabulary import Effect, Strength

MOST = 4096
"""Contracts in use are few; old versions need not be remembered."""


class Promised(NamedTuple):
    tool: str
    version: str
    writes: bool
    strength: Strength
    mutations: tuple[dict[str, Any], ...]
    """What the contract says is changed; observed changes are told apart by `observed`."""
    verification: dict[str, Any] | None
    retries: int
    """Only where many attempts are one effect: a read, or an upstream that honours the key."""
    repeatable: bool


_KNOWN: dict[str, Promised] = {}


def promised(contract: Contract) -> Promised:
    found = _KNOWN.get(contract.digest)
    if found is None:
        if len(_KNOWN) >= MOST:
            _KNOWN.clear()
        found = _KNOWN[contract.digest] = _read(contract)
    return found


def _read(contract: Contract) -> Promised:
    writes = contract.effect is not Effect.READ_ONLY
    repeatable = not writes or contract.honours_key
    return Promised(
        tool=contract.tool,
        version=contract.version,
        writes=writes,
        strength=strength(contract),
        mutations=tuple(
            {"resource": e.resource, "operation": e.operation.value, "scope": e.scope, "observed": False}
            for e in contract.transactional.manifest
        ),
        verification=_verification(contract),
        retries=contract.runtime.max_retries if repeatable else 0,
        repeatable=repeatable,
    )


def strength(contract: Contract) -> Strength:
    """How firmly the key is bound to the effect; IDM-7."""
    if contract.honours_key:
        return Strength.EXACTLY_ONCE
    if contract.transactional.probe is not None:
        return Strength.PROBED
    return Strength.NONE if contract.effect is Effect.EPHEMERAL_WRITE else Strength.AT_MOST_ONCE


def _verification(contract: Contract) -> dict[str, Any] | None:
    hint = contract.transactional.verification
    if hint is None:
        return None
    return {"required": True, "target": hint.target, "expected": hint.expected, "delay_s": hint.delay_s}
