"""Has the client that waited got its answer?

Only asked about clients that know no key (IDM-1): an answer that reached nobody is what their next equal call
gets. Nothing here delays or changes an answer, and a note that cannot be written is only logged.
"""

import logging

from holdfast.model.attendance import has_operation, is_last_word
from holdfast.model.call import Call, Principal
from holdfast.model.errors import StoreError
from holdfast.model.observation import Status
from holdfast.ports import Ports

log = logging.getLogger(__name__)


async def delivered(by: Principal, call_id: str, ports: Ports) -> None:
    """The client has the answer; where that was not the last word, it may come back for it."""
    found = ports.attendance.find(by.tenant, by.id, call_id)
    if found is None:
        return
    call, observation = found
    if not has_operation(call, observation):
        ports.attendance.leave(call)
    elif not is_last_word(observation):
        await left(call, ports)
    elif await _noted(call, ports, told=True, asked=observation.status is Status.PARTIAL):
        # Not before it is written down: until then the client's next equal call must find the answer taken.
        # Where it cannot be written this process remembers, and nobody is given the answer twice.
        ports.attendance.leave(call)


async def fetched(by: Principal, call_id: str, ports: Ports) -> None:
    """A client that did not wait has looked the outcome up: its next equal call means something new."""
    try:
        found = await ports.ledger.find_call(by.tenant, call_id)
        if found is None or found.attendant is None or found.ref.principal != by.id:
            return
        if found.state.settled and not ports.attendance.serves(by.tenant, call_id):
            await ports.ledger.tell(found)
    except StoreError as error:
        log.error("call %s: that its outcome was looked up could not be written: %s", call_id, error)


async def abandoned(by: Principal, call_id: str, ports: Ports) -> None:
    """The answer could not be handed over."""
    found = ports.attendance.find(by.tenant, by.id, call_id)
    if found is not None:
        await left(found[0], ports)


async def left(call: Call, ports: Ports) -> None:
    """Nobody waits for this call any more."""
    call.waited_for = False
    if not ports.attendance.has(call):
        return
    ports.attendance.leave(call)
    if not ports.attendance.serves(call.principal.tenant, call.id):
        await _noted(call, ports, told=False)


async def _noted(call: Call, ports: Ports, *, told: bool, asked: bool = False) -> bool:
    """`asked`: the client knows its operation by now, and another equal call means another one."""
    try:
        await ports.ledger.leave(call, told=told, asked=asked)
    except StoreError as error:
        log.error("call %s: whether its answer arrived could not be written: %s", call.id, error)
        return False
    return True
