"""What is there to know about a bundle before it is put in force?

Beside what is wrong with it (`check`): policies that never decide anything, policies that meet, what each
changes, and whether what they are bound to and ask for is there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.model.masking import steps
from holdfast.model.vocabulary import Effect as Kind
from holdfast.model.vocabulary import Environment
from holdfast.policy.bundle import Policy
from holdfast.policy.cedar import CedarPolicy
from holdfast.policy.effects import Effect, effects
from holdfast.policy.obligations import Pin
from holdfast.policy.overlap import NOTE, WARNING, Finding, Group, findings, grouped
from holdfast.policy.reads import named
from holdfast.policy.settings import setting
from holdfast.ports import Listing

LISTED = 3


@dataclass(frozen=True, slots=True)
class Examination:
    findings: tuple[Finding, ...] = ()
    effects: tuple[Effect, ...] = ()
    pins: tuple[tuple[Policy, tuple[Pin, ...]], ...] = ()
    """What each policy that names its tools can be bound to."""

    @property
    def warnings(self) -> tuple[Finding, ...]:
        return tuple(one for one in self.findings if one.level == WARNING)


def examine(policy: CedarPolicy, env: Environment) -> Examination:
    """Of a bundle that has no problems."""
    versions: dict[str, list[Listing]] = {}
    for listing in policy.catalog.list():
        versions.setdefault(listing.tool.contract.tool, []).append(listing)
    settings = {
        tool: (setting(subject, versions[tool], policy.regions), policy.covering(tool))
        for tool, subject in policy.subjects.items()
    }
    groups = grouped(settings)
    told = findings(policy.policies, groups)
    told += [one for p in policy.policies for one in _bound(p, policy, versions)]
    told += [one for p in policy.policies for one in _unable(p, groups, versions)]
    order = {one.id: number for number, one in enumerate(policy.policies)}
    told.sort(key=lambda one: order[one.policy])
    return Examination(tuple(told), tuple(effects(policy, groups, env)), tuple(_pins(policy)))


def _pins(policy: CedarPolicy) -> Iterator[tuple[Policy, tuple[Pin, ...]]]:
    for one in policy.policies:
        names = named(one.tree) or frozenset()
        known = [policy.subjects.get(name) for kind, name in sorted(names) if kind == "Tool"]
        found = tuple(subject.pins[-1] for subject in known if subject is not None)
        if found:
            yield one, found


# --- what it is bound to --------------------------------------------------------------------


def _bound(policy: Policy, cedar: CedarPolicy, versions: dict[str, list[Listing]]) -> Iterator[Finding]:
    if not policy.pins:
        return
    place = policy.statement.find("contract")
    for pin in policy.pins:
        if (changed := _changed(pin, versions.get(pin.tool, []))) is not None:
            then = "does not hold" if policy.permits else "shuts the tool"
            text = f"{policy.id!r} {then}: {changed}; look at it, and pin it anew with '--pin'"
            yield Finding("pin", place, text, policy.id)
    covered = [name for name in cedar.subjects if policy in cedar.covering(name)]
    loose = sorted(set(covered) - {pin.tool for pin in policy.pins})
    if loose:
        then = "does not hold for" if policy.permits else "shuts"
        text = f"{policy.id!r} {then} {_listed(loose)}: its '@contract' does not name them"
        yield Finding("pin", place, text, policy.id, NOTE if policy.permits else WARNING)


def _changed(pin: Pin, versions: Sequence[Listing]) -> str | None:
    """What is different now from what it was written for."""
    if not versions:
        return f"there is no tool {pin.tool!r} here"
    same = [one for one in versions if one.tool.contract.digest == pin.digest]
    if not same:
        now = versions[-1]
        offered = f"version {now.tool.contract.version} has sha256:{now.tool.contract.digest[:12]}"
        return f"no contract of {pin.tool!r} is sha256:{pin.digest[:12]} any more, {offered}"
    if same[0].upstream != pin.upstream:
        return f"{pin.tool!r} comes from {same[0].upstream!r} and not from {pin.upstream!r}"
    return None


# --- what it asks for -----------------------------------------------------------------------


def _unable(policy: Policy, groups: Sequence[Group], versions: dict[str, list[Listing]]) -> Iterator[Finding]:
    """Tools that cannot do what a permit asks of them."""
    if not (policy.duties.verify or policy.duties.redact):
        return
    tools = [tool for group in groups if policy in group.policies for tool in group.tools]
    for way in policy.duties.verify:
        lacking = sorted(name for name in tools if not all(_verifies(one, way) for one in versions[name]))
        if lacking:
            text = f"{policy.id!r} wants {way!r} and {_listed(lacking)} declares none: calls are refused"
            yield Finding("verify", policy.statement.find("verify"), text, policy.id)
    for path in policy.duties.redact:
        nowhere = all(_output(one, path) is None for name in tools for one in versions[name])
        kinds = {_output(one, path) for name in tools for one in versions[name]}
        if nowhere:
            text = f"no result of a tool that {policy.id!r} covers has a part {path!r}"
            yield Finding("redact", policy.statement.find("redact"), text, policy.id)
        elif not kinds <= {None, "", "string"}:
            text = f"{path!r} is no text: a client that checks results may not take the mask in its place"
            yield Finding("redact", policy.statement.find("redact"), text, policy.id, NOTE)


def _verifies(listing: Listing, way: str) -> bool:
    tool = listing.tool
    if tool.contract.effect is Kind.READ_ONLY:
        return True
    return bool(tool.postconditions if way == "postconditions" else tool.probe)


def _output(listing: Listing, path: str) -> str | None:
    """The type of a part of the result; "" where that is open, None where there is no such part."""
    schema: Any = listing.tool.contract.affordance.output_schema
    for step in steps(path):
        if not isinstance(schema, dict) or schema.keys() & {"$ref", "anyOf", "oneOf", "allOf"}:
            return ""
        if "items" in schema:
            schema = schema["items"]
        elif step in schema.get("properties", {}):
            schema = schema["properties"][step]
        elif schema.get("additionalProperties", True) is not False or step == "*":
            return ""
        else:
            return None
    said = schema.get("type") if isinstance(schema, dict) else None
    return said if isinstance(said, str) else ""


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:LISTED]))
    return shown if len(names) <= LISTED else f"{shown} and {len(names) - LISTED} more"
