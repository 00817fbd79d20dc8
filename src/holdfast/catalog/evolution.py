"""Is the step between two versions of a tool as large as what changed between them?"""

from collections.abc import Callable, Iterator
from typing import Any

from holdfast.catalog.compatibility import Comparison, Faces, compare, refuse_lesser_bump
from holdfast.catalog.differences import Change
from holdfast.model.contract import Contract

_BEHAVIOUR: dict[str, Callable[[Contract], Any]] = {
    "/security/required_scopes": lambda c: sorted(c.security.required_scopes),
    "/transactional/effect": lambda c: c.transactional.effect,
    "/transactional/undo": lambda c: c.transactional.undo,
    "/transactional/manifest": lambda c: sorted(map(str, c.transactional.manifest)),
    "/idempotency": lambda c: c.idempotency,
    "/semantics": lambda c: [rule.holds for rule in c.semantics],
    "/state": lambda c: c.state,
    "/transactional/session": lambda c: c.transactional.session,
    "/runtime/job": lambda c: c.runtime.job is None,
}
"""What callers rely on beyond the schemas; any change of it is a breaking one. REG-5."""


def step_faults(old: Contract, new: Contract) -> list[str]:
    """Why the newer version number promises more than it keeps, naming each path."""
    schemas = compare(_faces(old), _faces(new))
    behaviour = tuple(_behaviour(old, new))
    level = "major" if behaviour else schemas.level
    changes = Comparison(level, (*schemas.changes, *behaviour))
    return refuse_lesser_bump(old.version, new.version, changes)


def _faces(contract: Contract) -> Faces:
    return Faces(contract.affordance.input_schema, contract.affordance.output_schema or None)


def _behaviour(old: Contract, new: Contract) -> Iterator[Change]:
    for path, part in _BEHAVIOUR.items():
        if part(old) != part(new):
            yield Change(path, "changed", "major")
