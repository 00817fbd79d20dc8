"""One question: what will happen, to whom, can it be undone, and what is your answer?"""

from collections.abc import Collection

from starlette.responses import Response

from holdfast.gateway.inbox import BACK_S, Looked, Stopped
from holdfast.model.approval import Answer, Approval
from holdfast.model.errors import Forbidden, HoldfastError, NotFound, StoreError
from holdfast.servers.console import question as told
from holdfast.servers.console import session
from holdfast.servers.console.look import Look
from holdfast.servers.console.story import card
from holdfast.servers.guard import response_to

COOKIE = "holdfast-read"
LONGEST_NOTE = 2000
MOST_PEOPLE = 6
"""Names shown of those who could say yes."""
MOST_PROOF = 50
"""Past questions linked for one rule."""


async def page(look: Look) -> Response:
    """GET /approvals/{id}"""
    return await _shown(look, look.request.path_params["id"])


async def decide(look: Look) -> Response:
    """POST /approvals/{id}/decision"""
    approval_id, form = look.request.path_params["id"], await look.form()
    decision, note = form.get("decision"), form.get("note").strip()[:LONGEST_NOTE]
    if decision not in ("approve", "deny"):
        text = "nothing was decided: answer with Approve or Deny"
        return await _shown(look, approval_id, 400, Stopped(text, "press one of them"))
    try:
        said = await look.gateway.inbox.decide(
            look.principal,
            approval_id,
            decision == "approve",
            note,
            seen=form.get("seen"),
            aware=form.get("aware") == "yes",
        )
    except (NotFound, StoreError):
        raise
    except HoldfastError as error:
        return await _refused(look, approval_id, error)
    if isinstance(said, Stopped):
        return await _shown(look, approval_id, 409, said)
    return _after(look, said)


def opened(look: Look) -> Collection[str]:
    """What this session has opened, by the sealed note in its cookie."""
    return look.gateway.inbox.read(look.principal, look.session.token, look.request.cookies.get(COOKIE, ""))


async def _refused(look: Look, approval_id: str, error: HoldfastError) -> Response:
    """On the page of the question, for whoever may see it."""
    if await look.gateway.approval(look.principal, approval_id) is None:
        raise error
    then = "ask somebody who has the role" if isinstance(error, Forbidden) else "see what it says now"
    status = response_to(error, look.request.url.path).status_code
    return await _shown(look, approval_id, status, Stopped(f"nothing was decided: {error}", then))


def _after(look: Look, said: Approval) -> Response:
    """Where what comes of it is seen."""
    here = f"/approvals/{said.id}"
    if said.answer is Answer.PENDING:
        return look.see_other(here, "voted")
    if said.answer is not Answer.APPROVED:
        return look.see_other(here, "denied")
    runs = said.release == "gateway" and said.ref.tool not in told.KINDS
    return look.see_other(f"/calls/{said.call_id}" if runs else here, "approved")


async def _shown(look: Look, approval_id: str, status: int = 200, stopped: Stopped | None = None) -> Response:
    found = await look.gateway.inbox.look(look.principal, approval_id)
    waiting, packet = found.waiting, found.waiting.asked.packet
    before, after, differs = told.readings(packet)
    given, given_left_out = told.arguments(packet)
    response = await look.page(
        "approval.html",
        status,
        question=told.question(waiting),
        packet={**dict.fromkeys(told.MEMBERS), **packet},
        exact=told.exact(packet),
        rule_says=told.said_of_rule(packet),
        looked=found,
        past=_past(found),
        days=round(BACK_S / 86_400),
        before=before,
        after=after,
        differs=differs,
        withheld="after" not in packet,
        evidence=told.cut(packet.get("evidence", ""), 300),
        why=[told.cut(reason, 300) for reason in list(packet.get("why", ()))[:20]],
        given=given,
        given_left_out=given_left_out,
        hidden=told.places(packet, "hidden_characters"),
        shortened=told.places(packet, "shortened"),
        steps=told.steps(packet),
        proof=_proof(packet.get("proof")),
        people=MOST_PEOPLE,
        counted=told.counted,
        cut=told.cut,
        stopped=stopped,
        story=await card(look, approval_id),
    )
    if not waiting.why_not and look.request.method != "HEAD":  # whose answer nobody reads
        _remember(look, response, waiting.seen)
    return response


def _remember(look: Look, response: Response, seen: str) -> None:
    """That this session has opened it: a sealed note, as good in another process."""
    earlier = look.request.cookies.get(COOKIE, "")
    note = look.gateway.inbox.remember(look.principal, look.session.token, earlier, seen)
    secure = session.is_secure(look.gateway, look.request)
    response.set_cookie(COOKIE, note, path="/", secure=secure, httponly=True, samesite="strict")


def _past(found: Looked) -> dict[str, int]:
    past = found.past
    return {
        "asked": sum(past.values()),
        "approved": past.get(Answer.APPROVED, 0),
        "denied": past.get(Answer.DENIED, 0),
        "unanswered": past.get(Answer.AUTO_DENIED, 0),
    }


def _proof(said: object) -> dict[str, list[str]]:
    """The past questions behind a rule: names of ours and nothing else."""
    if not isinstance(said, dict):
        return {}
    return {
        name: [id for id in said.get(name, ()) if is_id(id)][:MOST_PROOF]
        for name in ("approved", "denied", "unanswered")
    }


def is_id(name: object) -> bool:
    return isinstance(name, str) and name.startswith("apr_") and name[4:].isalnum() and name.isascii()
