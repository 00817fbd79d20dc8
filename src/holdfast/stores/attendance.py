"""May a keyless call take an operation over? The rules every store shares; IDM-1.

`attendant` of an operation is the worker whose client waits for it, `""` once that client left without the
last word, and None where there is nothing to take over: the caller has a key, or has its answer.
"""

from holdfast.model.attendance import Attendance
from holdfast.model.call import Call
from holdfast.model.operation import Operation
from holdfast.model.vocabulary import State
from holdfast.stores.worker import Workers

HANDOVER_S = 10.0
"""A live worker that has not handed an answer over after this long is stuck, or its note of it is lost."""


def attendant(call: Call, workers: Workers) -> str | None:
    """Who attends to an operation that is new."""
    if call.attended:
        return workers.id
    return "" if call.unnamed else None


def is_adoptable(operation: Operation, here: Attendance, workers: Workers, since_end_s: float | None) -> bool:
    """Whether nobody else waits for it; `since_end_s` is None while it has no end in this boot."""
    if operation.state in (State.HELD, State.UNKNOWN):
        return True
    if operation.attendant == workers.id:
        return not here.serves(operation.ref.tenant, operation.call_id)
    if not operation.attendant or not workers.alive(operation.attendant):
        return True
    if operation.state.running:
        return operation.orphaned
    return since_end_s is None or since_end_s >= HANDOVER_S
