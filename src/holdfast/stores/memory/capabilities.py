"""Which tool of a capability answers for a key, in memory?"""

from collections.abc import Sequence

from holdfast.model.operation import OperationRef
from holdfast.model.stage import AnswerFor
from holdfast.model.vocabulary import State
from holdfast.ports import Denied, Place
from holdfast.stores.denial import elsewhere
from holdfast.stores.memory.shelf import Shelf

UNDONE = frozenset({None, State.NO_EFFECT})
FREE = UNDONE | {State.HELD}


class MemoryCapabilities:
    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    async def tool(self, place: Place) -> str | None:
        return self._shelf.capabilities.get(place)

    async def move(self, place: Place, tool: str, to: str, tools: Sequence[str] = ()) -> str:
        in_force = _in_force(self._shelf, place, tool, tools)
        self._shelf.capabilities[place] = in_force
        if in_force != tool or _state(self._shelf, place, tool) not in FREE:
            return in_force
        self._shelf.capabilities[place] = to
        return to


def refusal(shelf: Shelf, gate: str, stage: AnswerFor, ref: OperationRef | None) -> Denied | None:
    if ref is None:
        return None  # a read: many answers do no harm
    place = _place(stage, ref)
    in_force = _in_force(shelf, place, ref.tool, stage.tools)
    free = in_force == ref.tool or _state(shelf, place, in_force) in UNDONE
    return None if free else elsewhere(gate, stage)


def take(shelf: Shelf, stage: AnswerFor, ref: OperationRef | None) -> None:
    if ref is not None:
        shelf.capabilities[_place(stage, ref)] = ref.tool


def _in_force(shelf: Shelf, place: Place, tool: str, tools: Sequence[str]) -> str:
    """Where nobody was said to answer yet, who was called under this key, else `tool`."""
    if (found := shelf.capabilities.get(place)) is not None:
        return found
    acted = (one for one in tools if one != tool and _state(shelf, place, one) not in UNDONE)
    return next(acted, tool)


def _place(stage: AnswerFor, ref: OperationRef) -> Place:
    return Place(ref.tenant, ref.principal, stage.capability, ref.key)


def _state(shelf: Shelf, place: Place, tool: str) -> State | None:
    entry = shelf.operations.get(OperationRef(place.tenant, place.principal, tool, place.key))
    return None if entry is None else entry.operation.state
