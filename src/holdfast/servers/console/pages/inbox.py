"""*Inbox*: what waits for a yes, the worst first?"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from hashlib import sha256
from urllib.parse import urlencode

import orjson
from starlette.responses import Response

from holdfast.gateway.inbox import Several
from holdfast.servers.console import session
from holdfast.servers.console.look import Look
from holdfast.servers.console.pages.approval import opened
from holdfast.servers.console.question import RISKS, Question, question
from holdfast.servers.console.story import card
from holdfast.servers.console.streams import streamed
from holdfast.servers.console.writing import rendered

SHOWN = {"": "all", "mine": "mine to answer", "asked": "asked in my name"}
KINDS = list(dict.fromkeys(word for word, _ in RISKS.values()))
LONGEST_SEARCH = 200


async def page(look: Look) -> Response:
    """GET /"""
    return await _shown(look)


async def events(look: Look) -> Response:
    """GET /inbox/events: the list again whenever something moved, for as long as a page is open"""
    return streamed(look, _lists(look))


async def several(look: Look) -> Response:
    """POST /approvals/several: one answer and one note for all that is selected"""
    form = await look.form()
    picked = [(id, seen) for id, _, seen in (value.partition(":") for value in form.all("pick"))]
    decision, note = form.get("decision"), form.get("note").strip()
    if not picked or decision not in ("approve", "deny"):
        return await _shown(look, 400, wrong="Nothing was decided: select questions first, then answer them.")
    approve = decision == "approve"
    came = await look.gateway.inbox.several(look.principal, picked, approve, note, opened(look))
    if came.unread:
        return await _shown(look, 409, unread=came, picked={id for id, _ in picked})
    results = [(result, await _headline(look, result.id)) for result in came.results]
    done = sum(result.asked is not None for result in came.results)
    return await look.page("several.html", results=results, done_count=done, approve=approve)


async def _shown(
    look: Look,
    status: int = 200,
    wrong: str = "",
    unread: Several | None = None,
    picked: set[str] | None = None,
) -> Response:
    every = await _questions(look)
    found = _wanted(every, look)
    first = () if unread is None else unread.unread
    return await look.page(
        "inbox.html",
        status,
        questions=found,
        every=len(every),
        waiting=sum(one.mine for one in every),
        stream=f"/inbox/events?{urlencode({**_kept(look.query), 'mark': _mark(found)})}",
        said=look.query,
        shown=SHOWN,
        risks=KINDS,
        wrong=wrong,
        unread=[one for one in every if one.asked.id in {asked.id for asked in first}],
        picked=picked or set(),
        story=await card(look),
    )


async def _questions(look: Look) -> Sequence[Question]:
    return [question(one) for one in await look.gateway.inbox.list(look.principal)]


async def _lists(look: Look) -> AsyncIterator[bytes]:
    """Asks again who looks, each time: a session that has ended sees nothing more."""
    mark = look.query.get("mark", "")
    async with aclosing(look.gateway.inbox.changes(look.principal)) as changes:
        async for _ in changes:
            known = await session.find(look.gateway, look.request)
            if known is None:
                return
            now = Look(look.gateway, look.request, *known)
            every = await _questions(now)
            found = _wanted(every, look)
            if mark == (mark := _mark(found)):
                yield b": still here\n\n"
                continue
            context = {"questions": found, "picked": set(), "now": look.gateway.identity.now()}
            waiting = sum(one.mine for one in every)
            text = rendered(
                "inbox_rows.html", {**context, "every": len(every), "waiting": waiting, "live": True}
            )
            yield b"".join(b"data: " + line.encode() + b"\n" for line in text.splitlines()) + b"\n"


async def _headline(look: Look, approval_id: str) -> Question | None:
    asked = await look.gateway.approval(look.principal, approval_id)
    return None if asked is None else question(look.gateway.inbox.standing(look.principal, asked))


def _wanted(every: Sequence[Question], look: Look) -> list[Question]:
    said, me = look.query, look.principal.user
    show, risk = said.get("show", ""), said.get("risk", "")
    words = said.get("q", "")[:LONGEST_SEARCH].lower().split()
    return [
        one
        for one in every
        if (show != "mine" or one.mine)
        and (show != "asked" or one.asked.requester == me)
        and (not risk or one.risk == risk)
        and all(word in _text(one) for word in words)
    ]


def _text(one: Question) -> str:
    """What a search looks through: what the row shows."""
    targets = [f"{words.name} {words.text}" for words in one.targets]
    return " ".join([one.headline, one.action, one.user, one.agent, one.asked.id, *targets]).lower()


def _mark(found: Sequence[Question]) -> str:
    """Another text when a row is new, gone, or answered by somebody."""
    rows = [[one.asked.id, one.asked.level, len(one.asked.votes), one.waiting.why_not] for one in found]
    return sha256(orjson.dumps(rows)).hexdigest()[:16]


def _kept(said: Mapping[str, str]) -> dict[str, str]:
    return {name: said[name][:LONGEST_SEARCH] for name in ("q", "show", "risk") if name in said}
