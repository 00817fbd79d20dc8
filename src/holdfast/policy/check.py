"""Can this bundle be put in force here?

Everything that is wrong is told at once, each with its place. Cedar checks types against the schema of the
catalog; what it would let pass in silence is looked for here: a misspelt annotation, a tool that does not
exist, an argument that a policy covers and cannot see.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from cedarpy import Schema, pst, validate_policies

from holdfast.policy.arguments import Kind, RecordOf
from holdfast.policy.bundle import Bundle, Policy, Problem, parsed
from holdfast.policy.index import Index
from holdfast.policy.obligations import ID, KNOWN, alert, approval, pins, redact, verify
from holdfast.policy.reads import EVERY_TOOL, covers, named, paths
from holdfast.policy.schema import Subject, schema
from holdfast.policy.text import Statement

_PREFIX = re.compile(r"^for policy `[^`]*`, ")
_WORD = re.compile(r"`(?:[\w.]*\.)?(\w+)`")
_TOOL = re.compile(r' (?:in context )?for Action::"([^"]+)"')
_OURS = ("unrecognized action", "unable to find an applicable action")
"""What Cedar says once more about names that are told to be unknown already."""

_READ: Mapping[str, Callable[[str], object]] = {
    "alert": alert,
    "approval": approval,
    "contract": pins,
    "redact": redact,
    "verify": verify,
}
_DUTIES = {
    "approval": "what is forbidden, no approval allows",
    "redact": "what is forbidden has no result",
    "verify": "what is forbidden has no effect",
}


@dataclass(frozen=True, slots=True)
class Report:
    policies: tuple[Policy, ...]
    """Those that could be read."""
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        return not self.problems


Names = Mapping[str, set[str]]
"""What a policy may name, by its kind."""
MOST = 100
"""Policies that may apply to one tool before its decisions become slow; DEC-6."""


def crowded(policies: Sequence[Policy], tools: Mapping[str, Subject]) -> Iterator[str]:
    """Which tools have more policies than is good for them?"""
    index = Index(policies)
    for subject in tools.values():
        count = len(index.of(subject.name, subject.namespace))
        if count > MOST:
            yield f"{count} policies apply to {subject.name!r}, more than {MOST}; name tools in their scopes"


def check(bundle: Bundle, tools: Mapping[str, Subject]) -> Report:
    problems = list(bundle.faults)
    policies = list(_parsed(bundle, problems))
    schemas = _Schemas(tools)
    known = _known_names(tools)
    for policy in policies:
        problems += faults(policy, tools, known, schemas.of(policy))
    return Report(tuple(policies), tuple(problems))


@dataclass(frozen=True, slots=True)
class _Typed:
    """What Cedar types a policy against."""

    schema: Schema
    alike: Mapping[str, Sequence[str]]
    """Tools that one of them stands for."""


class _Schemas:
    """Cedar types a policy for every action of a schema, so each policy gets as few as say everything.

    One that names its tools needs no others. Tools that differ in nothing the policy reads of their arguments
    are typed alike: one of them stands for all, unless the policy speaks of it by name.
    """

    def __init__(self, tools: Mapping[str, Subject]) -> None:
        self._tools = tools
        self._made: dict[frozenset[str], Schema] = {}

    def of(self, policy: Policy) -> _Typed:
        spoken = {uid.id for uid in policy.entities if str(uid.type) == "Action"} & self._tools.keys()
        names = set(self._tools)
        if named(policy.tree) is not None:
            names = {subject.name for subject in _covered(policy, self._tools)} | spoken or names
        alike: dict[object, list[str]] = {}
        for name, shape in _shapes(policy, [self._tools[name] for name in sorted(names)]):
            alike.setdefault(name if name in spoken else (shape,), []).append(name)
        some = frozenset(group[0] for group in alike.values())
        made = self._made.get(some)
        if made is None:
            made = self._made[some] = schema({name: self._tools[name] for name in sorted(some)})
        return _Typed(made, {group[0]: group for group in alike.values()})


def _shapes(policy: Policy, tools: Iterable[Subject]) -> Iterator[tuple[str, object]]:
    """Tools with the types of all that this policy reads of their arguments."""
    read = paths(policy.tree)
    whole = () in read or ("args",) in read
    members = sorted({path[1] for path in read if path[:1] == ("args",) and len(path) > 1})
    for tool in tools:
        if whole:
            yield tool.name, tool.arguments.cedar
        else:
            yield tool.name, tuple(_type(tool.arguments, member) for member in members)


def _type(arguments: RecordOf, member: str) -> tuple[str | None, bool]:
    kind = arguments.members.get(member)
    return None if kind is None else kind.cedar, member in arguments.required


def _parsed(bundle: Bundle, problems: list[Problem]) -> Iterator[Policy]:
    seen: dict[str, Statement] = {}
    for statement in bundle.statements:
        try:
            tree = parsed(statement)
        except ValueError as error:
            problems.append(Problem(statement.first_fault(), str(error)))
            continue
        name = tree.annotations.get("id", "")
        if not ID.fullmatch(name):
            problems.append(Problem(statement.place, _unnamed(name)))
        elif name in seen:
            text = f"@id({name!r}) is taken by the policy at {seen[name].place}; choose another"
            problems.append(Problem(statement.find(name), text, name))
        else:
            seen[name] = statement
            yield Policy(name, statement, replace(tree, id=name))


def _unnamed(name: str) -> str:
    if not name:
        return 'it has no name; write @id("...") before it'
    return f"{name!r} is no good @id; use letters, digits, '.', '_', '-' and '/'"


def faults(policy: Policy, tools: Mapping[str, Subject], known: Names, typed: _Typed) -> Iterator[Problem]:
    """What is wrong with one policy that could be read."""
    yield from _annotations(policy)
    unknown = list(_unknown_names(policy, known))
    yield from unknown
    yield from _unseen_arguments(policy, tools)
    for text in _types(policy, typed, bool(unknown)):
        words = _WORD.findall(text)
        place = policy.statement.find(words[0]) if words else policy.statement.place
        yield Problem(place, _explained(text), policy.id)


def _types(policy: Policy, typed: _Typed, told: bool) -> Iterator[str]:
    """What Cedar says, once for all tools it says it of."""
    said: dict[str, list[str]] = {}
    for error in validate_policies(policy.statement.text, typed.schema).errors:
        text = _PREFIX.sub("", error.error)
        tools = [name for one in _TOOL.findall(text) for name in typed.alike.get(one, [one])]
        said.setdefault(_TOOL.sub("", text), []).extend(tools)
    alone = len(said) == 1
    for text, tools in said.items():
        if text.startswith(_OURS) and (told or not alone):
            continue  # it follows from what is told anyway
        yield f"{text} (for {', '.join(sorted(tools))})" if tools else text


def _annotations(policy: Policy) -> Iterator[Problem]:
    said = policy.tree.annotations
    for name in said:
        if name not in KNOWN:
            near = get_close_matches(name, KNOWN, n=1, cutoff=0.0)[0]
            text = f"unknown annotation '@{name}', did you mean '@{near}'"
            yield Problem(policy.statement.find(name), text, policy.id)
    for name, read in _READ.items():
        if name in said:
            place = policy.statement.find(name)
            try:
                read(said[name])
            except ValueError as error:
                yield Problem(place, str(error), policy.id)
            if not policy.permits and name in _DUTIES:
                yield Problem(place, f"'@{name}' belongs on a permit: {_DUTIES[name]}", policy.id)


def _known_names(tools: Mapping[str, Subject]) -> Names:
    return {
        "Action": {*tools, EVERY_TOOL},
        "Tool": set(tools),
        "Namespace": {subject.namespace for subject in tools.values()},
    }


def _unknown_names(policy: Policy, known: Names) -> Iterator[Problem]:
    for uid in sorted(policy.entities, key=str):
        names = known.get(str(uid.type))
        if names is not None and uid.id not in names:
            near = get_close_matches(uid.id, names, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}" if near else f"known are {', '.join(sorted(names)) or 'none'}"
            text = f"there is no {str(uid.type).lower()} {uid.id!r} here; {hint}"
            yield Problem(policy.statement.find(uid.id), text, policy.id)
    if policy.tree.action == pst.ActionEq(pst.EntityUid(pst.EntityType("Action"), EVERY_TOOL)):
        text = f"no call is '{EVERY_TOOL}' itself; write 'action in Action::\"{EVERY_TOOL}\"', or 'action'"
        yield Problem(policy.statement.find(EVERY_TOOL), text, policy.id)


def _unseen_arguments(policy: Policy, tools: Mapping[str, Subject]) -> Iterator[Problem]:
    """A forbid must not fail to see what it was written about."""
    read = [path for path in sorted(paths(policy.tree)) if path[:1] == ("args",) and len(path) > 1]
    covered = list(_covered(policy, tools)) if read else []
    for path in read:
        found: dict[str, Kind | str | None] = {s.name: s.arguments.look(path[1:]) for s in covered}
        name = ".".join(path[1:])
        for tool, why in found.items():
            if isinstance(why, str):
                text = f"argument {name!r} of {tool!r} cannot be read: {why}; narrow the scope to other tools"
                yield Problem(policy.statement.find(path[-1]), text, policy.id)
        if covered and all(kind is None for kind in found.values()):
            text = f"no tool in its scope has an argument {name!r}{_nearest(path[-1], covered)}"
            yield Problem(policy.statement.find(path[-1]), text, policy.id)


def _covered(policy: Policy, tools: Mapping[str, Subject]) -> Iterator[Subject]:
    names = named(policy.tree)
    some: Iterable[Subject] = tools.values()
    if names is not None and all(kind == "Tool" for kind, _ in names):
        some = [tools[name] for _, name in sorted(names) if name in tools]
    return (one for one in some if covers(policy.tree, one.name, one.namespace))


def _nearest(name: str, covered: list[Subject]) -> str:
    known = {member for subject in covered for member in subject.arguments.members}
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}" if near else ""


def _explained(text: str) -> str:
    """With what to do about it, where Cedar's words alone do not help."""
    if "`args." in text and "not found" in text:
        return f"{text}; narrow the scope to the tools that have it, or ask with 'has' first"
    if "optional attribute" in text or "may not exist" in text:
        return f"{text}; ask with 'has' first"
    return text
