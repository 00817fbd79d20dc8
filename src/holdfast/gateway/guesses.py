"""Did somebody try to find out an approver secret? That goes on record, where the person belongs."""

from holdfast.gateway.auditing import Auditing
from holdfast.identity import Identity


async def record_guesses(identity: Identity, auditing: Auditing) -> None:
    waiting = identity.approvers.guessed
    while waiting:
        one = waiting[0]
        await auditing.note(one.tenant, "wrong approver secrets", one.person, times=one.times)
        waiting.popleft()
