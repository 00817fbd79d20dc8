"""What is known about a call when policy is asked?

Plain JSON data, so that a decision can be kept and judged again under another bundle. Marked arguments are
not in it.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from holdfast.model.call import Call, Principal
from holdfast.model.derive import ApprovalRule
from holdfast.policy.arguments import RecordOf
from holdfast.policy.schema import Region

Facts = Mapping[str, Any]
Roles = Callable[[Principal], frozenset[str]]
"""The roles that the person behind a principal holds."""


def own_roles(principal: Principal) -> frozenset[str]:
    return principal.roles


def lasting(
    call: Call, rule: ApprovalRule, *, roles: frozenset[str], trusted: bool, region: Region
) -> dict[str, Any]:
    """What stays the same from call to call, with places for what does not (`CHANGING`)."""
    proposal, principal, contract = call.proposal, call.principal, call.tool.contract
    return {
        "principal": principal.id,
        "tenant": principal.tenant,
        "user": principal.user,
        "agent": principal.agent,
        "roles": sorted(roles),
        "trust": principal.trust,
        "trusted": trusted,
        "tool": contract.tool,
        "version": contract.version,
        "digest": contract.digest,
        "environment": proposal.environment.value,
        "at": None,
        "left_to_policy": rule.policy_decides,
        "floor": rule.floor.value,
        "preview": call.previewing,
        "safety_mode": proposal.safety_mode.value,
        "has_task": proposal.task is not None,
        "has_session": proposal.session is not None,
        **region.facts,
        "arguments": None,
        "left_out": None,
    }


def facts(call: Call, same: Facts, arguments: RecordOf) -> dict[str, Any]:
    """Everything about one call; `same` is what `lasting` says of it.

    Which session and task it names is for whoever judges it again and must know what those had seen.
    """
    gone: list[str] = []
    known, proposal = dict(same), call.proposal
    known["at"] = call.queued_at
    if proposal.session is not None:
        known["session"] = proposal.session
    if proposal.task is not None:
        known["task"] = proposal.task
    if call.labels is not None:
        known["labels"] = sorted(call.labels)
    known["arguments"] = arguments.convert(call.arguments, (), gone)
    known["left_out"] = gone
    return known


def context(known: Facts, names: frozenset[str], arguments: frozenset[str] | None = None) -> dict[str, Any]:
    """The part of Cedar's context that is read by somebody: what nobody reads costs nothing.

    Of the arguments, these alone; all of them for None.
    """
    said = {name: _MADE[name](known) if name in _MADE else known[name] for name in names if _has(known, name)}
    if arguments is not None and "args" in said:
        said["args"] = {name: value for name, value in said["args"].items() if name in arguments}
    return said


def moment(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)


def _has(known: Facts, name: str) -> bool:
    return name in _MADE or name in known


def _datetime(known: Facts) -> dict[str, Any]:
    text = moment(known["at"]).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
    return {"__extn": {"fn": "datetime", "arg": text}}


_MADE: Mapping[str, Callable[[Facts], Any]] = {
    "at": _datetime,
    "hour": lambda known: moment(known["at"]).hour,
    "weekday": lambda known: moment(known["at"]).isoweekday(),
    "args": lambda known: known["arguments"],
    "args_complete": lambda known: not known["left_out"],
    "labels": lambda known: known.get("labels") or [],
}
CHANGING = frozenset(_MADE)
"""Members of the context that two calls of the same caller to the same tool may differ in."""


def principal_entities(known: Facts) -> list[dict[str, Any]]:
    """Agent, user, roles and tenant as Cedar's JSON."""
    user = {"type": "User", "id": known["user"]}
    above = [{"type": "Role", "id": role} for role in known["roles"]]
    return [
        {
            "uid": {"type": "Agent", "id": known["principal"]},
            "attrs": {name: known[name] for name in ("user", "agent", "tenant", "trust")},
            "parents": [user],
        },
        {"uid": user, "attrs": {}, "parents": [*above, {"type": "Tenant", "id": known["tenant"]}]},
    ]
