"""Has this call already been answered?

Looked up before state, limits and approval: fetching the answer of a call that ran
is not running it again. The right to act is claimed last, in `claim`.

A client that knows no key cannot say that it calls again. So its call takes over an
equal operation of the same principal that is held or unknown, or whose answer reached
nobody (IDM-1); from then on it is a duplicate like any other.
"""

from holdfast import settlement
from holdfast.model.call import Call
from holdfast.model.errors import Code
from holdfast.model.verdict import PASS, Refusal, Verdict
from holdfast.model.vocabulary import KeySource
from holdfast.ports import Ports

TRIES = 3
"""An operation that others take over first is looked for again; more than this is a storm."""


async def replay(call: Call, ports: Ports) -> Verdict:
    if not call.writes:
        return PASS
    if call.key is None:
        return Refusal(
            Code.KEY_REQUIRED,
            f"{call.tool.contract.tool!r} changes things, so it needs a key: name this operation with 'key', "
            "or give 'task' and 'step', and use the same again when you retry",
        )
    if call.attended:
        ports.attendance.enter(call)
        if call.earlier is None and not await _adopted(call, ports):
            text = "equal calls keep taking over an earlier one; wait, then retry"
            return Refusal(Code.KEY_IN_USE, text, retry_after_ms=1_000)
    if call.earlier is None:
        return PASS
    return await settlement.answer(call, call.earlier, ports)


async def _adopted(call: Call, ports: Ports) -> bool:
    """Take over what there is to take over; False when that could not be found out."""
    own = call.id
    for _ in range(TRIES):
        found = await ports.ledger.alike(call, ports.attendance)
        if found is None:
            return True
        call.id = found.call_id  # before it is ours in the ledger: from then on somebody waits for it here
        if await ports.ledger.attend(found):
            call.key, call.key_source, call.earlier = found.ref.key, KeySource.ADOPTED, found
            return True
        call.id = own
    return False
