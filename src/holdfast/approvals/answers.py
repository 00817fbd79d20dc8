"""Who may see a question, who may answer it, and what is an attempt to get around that?"""

from collections.abc import Sequence
from dataclasses import replace

from holdfast.approvals.tend import escalated
from holdfast.model import grant
from holdfast.model.approval import Answer, Approval, Chain, stand_ins
from holdfast.model.call import Principal
from holdfast.model.errors import Forbidden, NotFound
from holdfast.model.packet import EVIDENCE
from holdfast.ports import Ports


async def listed(by: Principal, ports: Ports) -> Sequence[Approval]:
    """Open questions in this tenant that `by` asked or could answer."""
    found = [await escalated(asked, ports) for asked in await ports.approvals.open(by.tenant)]
    return [seen for asked in found if (seen := view(asked, by, ports.chain)) is not None]


async def looked_up(by: Principal, approval_id: str, ports: Ports) -> Approval | None:
    """One question, open or answered."""
    asked = await ports.approvals.get(by.tenant, approval_id)
    return None if asked is None else view(await escalated(asked, ports), by, ports.chain)


def view(asked: Approval, by: Principal, chain: Chain) -> Approval | None:
    """The question as `by` may see it: who asked sees the question, who may answer the evidence too."""
    roles = {other for role in asked.need for other in (role, *stand_ins(role, chain, asked.level))}
    if by.roles & roles and asked.requester != by.user:
        return asked
    if asked.ref.principal != by.id and asked.requester != by.user:
        return None
    if not by.bounds.reaches(asked.ref.tool, ()):
        return None
    if asked.role_of(by, chain) is not None:
        return asked
    return replace(asked, packet={name: said for name, said in asked.packet.items() if name not in EVIDENCE})


async def decide(by: Principal, approval_id: str, approve: bool, note: str, ports: Ports) -> Approval:
    """Answer a question; whoever tries to and may not is on record."""
    found = await ports.approvals.get(by.tenant, approval_id)
    if found is None:
        await ports.approvals.alarm(
            by.tenant, by.user, f"answered approval {approval_id[:64]!r}, not of here"
        )
        raise NotFound(f"there is no approval {approval_id!r} here")
    asked = await escalated(found, ports)
    role = asked.role_of(by, ports.chain)
    if role is None:
        own = asked.requester == by.user
        what = "tried to answer their own question" if own else "answered without a role that is needed"
        await ports.approvals.alarm(by.tenant, by.user, what, asked)
        wanted = ", ".join(sorted(asked.need))
        raise Forbidden(f"approval {approval_id!r} needs another person with a role of: {wanted}")
    answered = await ports.approvals.decide(asked, by, role[0], approve, note, role[1])
    if answered.answer is not Answer.APPROVED:
        return answered
    return replace(answered, token=grant.issue(ports.secrets, answered))
