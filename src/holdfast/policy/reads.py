"""What does a policy look at, and which tools does it speak about?

Read off its syntax tree, before anything is evaluated: which facts it needs, and whether its scope can cover
a tool at all.
"""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from cedarpy import pst

Path = tuple[str, ...]

EVERY_TOOL = "call"
"""The action that all tools belong to."""


def paths(policy: pst.Template) -> frozenset[Path]:
    """Paths below `context` that it reads; `()` when it takes the context as a whole."""
    return frozenset(path for clause in policy.clauses for path in _paths(clause.expr))


def _paths(node: Any) -> Iterator[Path]:
    path = _path(node)
    if path is not None:
        yield path
    elif isinstance(node, pst.HasAttr) and (base := _path(node.base)) is not None:
        yield (*base, *node.attrs)
    else:
        for below in _below(node):
            yield from _paths(below)


def _path(node: Any) -> Path | None:
    """`context.a.b` as (a, b); None when it is something else."""
    match node:
        case pst.Var(name="context"):
            return ()
        case pst.GetAttr(base, attr):
            inner = _path(base)
            return None if inner is None else (*inner, attr)
    return None


def _below(node: Any) -> Iterator[Any]:
    if is_dataclass(node):
        for field in fields(node):
            value = getattr(node, field.name)
            if isinstance(value, tuple):
                yield from value
            elif isinstance(value, dict):
                yield from value.values()
            else:
                yield value


Named = tuple[str, str]
"""`("Tool", name)` or `("Namespace", name)`."""


def named(policy: pst.Template) -> frozenset[Named] | None:
    """What its scope is narrowed to: it covers nothing else. None where it may cover any tool."""
    match policy.action:
        case pst.ActionEq(entity):
            return frozenset({("Tool", entity.id)})
        case pst.ActionIn(entities) if all(entity.id != EVERY_TOOL for entity in entities):
            return frozenset(("Tool", entity.id) for entity in entities)
    match policy.resource:
        case pst.ScopeEq(pst.EntityUid(kind, id)) | pst.ScopeIn(pst.EntityUid(kind, id)):
            return frozenset({(str(kind), id)})
        case pst.ScopeIsIn(_, pst.EntityUid(kind, id)):
            return frozenset({(str(kind), id)})
    return None


def covers(policy: pst.Template, tool: str, namespace: str) -> bool:
    """Whether the scope admits this tool; conditions are not looked at."""
    return _covers_action(policy.action, tool) and _covers_resource(policy.resource, tool, namespace)


def _covers_action(scope: pst.ActionConstraint, tool: str) -> bool:
    match scope:
        case pst.ActionEq(entity):
            return entity.id == tool
        case pst.ActionIn(entities):
            return any(entity.id in (tool, EVERY_TOOL) for entity in entities)
    return True


def _covers_resource(scope: pst.PrincipalOrResourceConstraint, tool: str, namespace: str) -> bool:
    match scope:
        case pst.ScopeEq(pst.EntityUid(kind, id)):
            return (str(kind), id) == ("Tool", tool)
        case pst.ScopeIn(pst.EntityUid(kind, id)) | pst.ScopeIsIn(_, pst.EntityUid(kind, id)):
            return (str(kind), id) in (("Tool", tool), ("Namespace", namespace))
    return True
