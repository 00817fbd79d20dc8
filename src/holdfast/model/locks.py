"""What must nobody else change while a call does?

Of what a write touches (`model.resources`) only what can be told apart: the ids in arguments marked
`x-resource: KIND`, and a kind that the effect manifest declares as a whole, by the scope `*`. A kind of which
no id is known is not locked: all of its calls would stand in line for nothing. EXE-7.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from holdfast.model.contract import Contract
from holdfast.model.resources import ANYTHING, KIND, MARK, named, plain_kind
from holdfast.model.stage import Locked
from holdfast.model.vocabulary import Operation

WHOLE = "*"
"""The scope of an effect on everything of its kind."""
MOST = 64
"""Ids of one kind that are locked one by one; who names more has all of it to itself."""
_SLASH = re.compile("/")


class Resource(NamedTuple):
    """One thing, or (`id` is empty) everything of its kind."""

    kind: str
    id: str = ""


class Committing(Protocol):
    def commitment(self, tenant: str, data: bytes) -> str: ...


class Locks(NamedTuple):
    """What the calls of one tool lock; made once, at admission."""

    marked: tuple[tuple[str, str], ...]
    """Arguments that hold ids, and of what."""
    whole: tuple[str, ...]
    """Kinds of which a call that names none changes everything."""

    def of(self, arguments: Mapping[str, Any]) -> tuple[Resource, ...]:
        """In one order, whoever asks, and nothing twice."""
        found: set[Resource] = set()
        for name, kind in self.marked:
            found.update(_given(kind, arguments.get(name)))
        named_kinds = {one.kind for one in found}
        found.update(Resource(kind) for kind in self.whole if kind not in named_kinds)
        return tuple(sorted(_reduced(found)))


def locked(secrets: Committing, tenant: str, resources: Iterable[Resource]) -> tuple[Locked, ...]:
    """As the store knows them, in one order whoever asks."""
    return tuple(sorted(_locked(secrets, tenant, one) for one in resources))


def _locked(secrets: Committing, tenant: str, one: Resource) -> Locked:
    name = f"lock\0{one.kind}\0{one.id}".encode()
    return Locked(one.kind, secrets.commitment(tenant, name), whole=not one.id)


def locks(contract: Contract) -> Locks | None:
    """None for a tool whose calls get in nobody's way, as far as its contract tells."""
    promise = contract.transactional
    if not contract.effect.writes or promise.composed:  # the steps of a chain lock, each for itself
        return None
    properties = contract.affordance.input_schema.get("properties")
    marked = tuple(
        (name, _flat(kind))
        for name, said in (properties.items() if isinstance(properties, Mapping) else ())
        if isinstance(said, Mapping) and isinstance(kind := said.get(MARK), str) and KIND.fullmatch(kind)
    )
    whole = {plain_kind(entry.resource) for entry in promise.manifest if entry.scope == WHOLE}
    declared = tuple(sorted(whole - {ANYTHING}))
    return Locks(marked, declared) if marked or declared else None


def unlocked(contract: Contract) -> tuple[str, ...]:
    """Kinds that it changes, or takes away from, without saying which of them."""
    promise, made = contract.transactional, locks(contract)
    if not contract.effect.writes or promise.composed:
        return ()
    known = set() if made is None else {kind for _, kind in made.marked} | {*made.whole}
    changed = [entry.resource for entry in promise.manifest if entry.operation is not Operation.CREATE]
    return tuple(dict.fromkeys(resource for resource in changed if plain_kind(resource) not in known))


def _flat(kind: str) -> str:
    """As a manifest would name it: there is no `/` in its kinds."""
    return _SLASH.sub("-", kind)


def _given(kind: str, value: Any) -> Iterator[Resource]:
    """What was left out names nothing; what is no clear name may be any."""
    if value is None or value == []:
        return
    for name in named(kind, value):
        found = name.removeprefix(f"{kind}/")
        yield Resource(kind, "" if found == ANYTHING else found)


def _reduced(found: set[Resource]) -> Iterator[Resource]:
    """Whoever has a whole kind needs no part of it."""
    count: dict[str, int] = {}
    for one in found:
        count[one.kind] = count.get(one.kind, 0) + (1 if one.id else MOST + 1)
    for one in found:
        if count[one.kind] <= MOST:
            yield one
    yield from (Resource(kind) for kind, total in count.items() if total > MOST)
