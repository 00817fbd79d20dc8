"""What do records say of keys, grants and revocations? The same in every store; AUT-4."""

from typing import Any

from holdfast.model.access import AccessGrant, AccessKey
from holdfast.model.moment import iso_cut
from holdfast.records.body import act_body

ACCESS = "access"
"""The kind of these records."""


def key_made(key: AccessKey) -> str:
    said: dict[str, Any] = {"key": key.id, "person": key.person, "agent": key.agent, "scopes": key.scopes}
    return act_body(key.at, "issue key", key.made_by, **said, expires_at=_time(key.expires_at))


def grant_made(grant: AccessGrant) -> str:
    """Also of one that is only asked for."""
    act = "ask for elevation" if grant.waits else "grant"
    return act_body(grant.at, act, grant.granted_by or grant.person, **_told(grant), note=grant.note)


def grant_approved(grant: AccessGrant, now: float) -> str:
    return act_body(now, "elevate", grant.granted_by, **_told(grant), approval_id=grant.approval_id)


def grant_renewed(grant: AccessGrant, now: float, why: str) -> str:
    """`why` it was not, where it was not."""
    act = "end renewal" if why else "renew grant"
    return act_body(now, act, "holdfast", **_told(grant), **({"why": why} if why else {}))


def revoked(name: str, by: str, note: str, now: float) -> str:
    return act_body(now, "revoke", by, credential=name, note=note)


def _told(grant: AccessGrant) -> dict[str, Any]:
    said: dict[str, Any] = {"grant": grant.id, "person": grant.person, "agent": grant.agent}
    said |= {"scope": grant.scope, "granted_by": grant.granted_by, "life_s": grant.life_s}
    return said | {"expires_at": None if grant.waits else _time(grant.expires_at)}


def _time(at: float) -> str | None:
    return None if at == float("inf") else iso_cut(at)
