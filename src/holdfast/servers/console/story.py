"""What is the first call about, and what is there to do next for whoever looks?"""

from dataclasses import dataclass

from starlette.responses import Response

from holdfast.gateway.guide import Told
from holdfast.servers.console.look import Look
from holdfast.servers.console.sign_in import choices


@dataclass(frozen=True, slots=True)
class Card:
    told: Told
    mine: bool
    """Whether whoever looks may answer, and has not."""
    others: tuple[str, ...]
    """Who could answer next, and can be had by one click on this machine."""
    yes: int
    """How many have said yes."""


async def card(look: Look, approval_id: str | None = None, call_id: str | None = None) -> Card | None:
    """For the inbox, or for the page of its own question or call; None where there is no story to tell."""
    told = await look.gateway.guide.told(look.principal)
    if told is None or approval_id not in (None, told.approval and told.approval.id):
        return None
    if call_id not in (None, told.call_id):
        return None
    asked, me = told.approval, look.principal
    if asked is None or told.state != "waiting":
        return Card(told, False, (), 0)
    voted = {vote.person for vote in asked.votes}
    mine = me.user not in voted and asked.role_of(me) is not None
    others = tuple(
        one.name
        for one in choices(look.gateway)
        if not one.secret
        and one.name not in (me.user, asked.requester)
        and one.name not in voted
        and not asked.missing.keys().isdisjoint(one.roles)
    )
    return Card(told, mine, others, sum(vote.approve for vote in asked.votes))


async def again(look: Look) -> Response:
    """POST /story: begin it again"""
    await look.gateway.guide.again(look.principal)
    return look.see_other("/")
