"""What happens to a question that nobody answers? It is put to more people, and then it is denied; APR-3."""

from dataclasses import replace

from holdfast.model.approval import Answer, Approval, due_level
from holdfast.ports import Ports


async def tend(ports: Ports) -> int:
    """Escalate and expire what is due; returns how many questions moved."""
    moved, now = 0, ports.clock.now()
    for asked in await ports.approvals.due(len(ports.chain)):
        if asked.expires_at <= now:
            expired = await ports.approvals.expire(asked)
            moved += expired
            if expired:
                ports.telemetry.decided(replace(asked, answer=Answer.AUTO_DENIED))
        else:
            moved += (await escalated(asked, ports)).level != asked.level
    return moved


async def escalated(asked: Approval, ports: Ports) -> Approval:
    """The question at the level it should have by now."""
    if asked.answer is not Answer.PENDING:
        return asked
    level = due_level(asked, ports.clock.now(), ports.chain)
    if level <= asked.level:
        return asked
    reached = [role for group in ports.chain[asked.level + 1 : level + 1] for role in group]
    await ports.approvals.escalate(asked, level, reached)
    return replace(asked, level=level)
