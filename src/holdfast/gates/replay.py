"""Has this call already been answered?

Looked up before state, limits and approval: fetching the answer of a call that ran
is not running it again. The right to act is claimed last, in `claim`.
"""

from holdfast import settlement
from holdfast.model.call import Call
from holdfast.model.errors import Code
from holdfast.model.verdict import PASS, Refusal, Verdict
from holdfast.ports import Ports


async def replay(call: Call, ports: Ports) -> Verdict:
    if not call.writes:
        return PASS
    if call.key is None:
        return Refusal(
            Code.KEY_REQUIRED,
            f"{call.tool.contract.tool!r} changes things, so it needs a key: name this operation with 'key', "
            "or give 'task' and 'step', and use the same again when you retry",
        )
    if call.earlier is None:
        return PASS
    return await settlement.answer(call, call.earlier, ports)
