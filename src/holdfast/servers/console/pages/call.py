"""*Call*: what happened to one call, gate by gate, and what proves it?"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from holdfast.model.approval import Answer
from holdfast.model.errors import HoldfastError, NotFound
from holdfast.model.story import GatePassed, Passage, Story
from holdfast.servers.answers import TransportError
from holdfast.servers.console.look import Look
from holdfast.servers.console.story import card

if TYPE_CHECKING:
    from holdfast.gateway.upstream_sessions import ShownSession

HEADLINES = {
    "done": "It was done",
    "partial": "It was done in part",
    "held": "It waits for a person",
    "refused": "It was refused: nothing happened",
    "failed": "It failed",
    "unknown": "Nobody knows whether it happened",
    "preview": "It was previewed: nothing happened",
    "running": "It is running",
}
RUNGS = {
    "dispatched": "It was sent to the tool. What came of it is not known.",
    "accepted": "The tool said yes. Nobody has looked whether it is so.",
    "observed": "The tool's answer shows the effect.",
    "verified": "It was read back afterwards, and is as the contract says.",
}
STRENGTHS = {
    "exactly_once": "The tool knows the key: however often it is asked, it happens once.",
    "at_most_once": "The tool knows no keys. The gateway sends it once and never again by itself.",
    "probed": "The tool knows no keys. A probe can tell afterwards whether it happened.",
    "none": "Nothing binds the key to the effect.",
}
LIVE = ("running", "held")
LONGEST_NOTE = 1000


async def page(look: Look) -> Response:
    """GET /calls/{id}"""
    story = await look.gateway.timeline.of(look.principal, look.request.path_params["id"])
    context = {**shown(look, story), "session": await _session(look, story)}
    guide = await card(look, call_id=story.call_id)
    if guide is not None:
        context |= {"guide": guide, "live": context["live"] or guide.told.state == "running"}
    if look.partly:
        return look.partial("call_story.html", **context)
    return await look.page("call.html", **context)


def shown(look: Look, story: Story) -> dict[str, Any]:
    operates = look.gateway.operates(look.principal)
    pending = None if story.observation is None else story.observation.pending
    return {
        "story": story,
        "headline": _headline(story, pending),
        "pending": pending,
        "passages": [(passage, spans(passage)) for passage in reversed(story.passages)],
        "rung": None if story.outcome is None else RUNGS.get(story.outcome.rung.value, ""),
        "strength": None if story.outcome is None else STRENGTHS.get(story.outcome.strength.value, ""),
        "live": story.status in LIVE or pending is not None,
        "cancels": story.status in LIVE or (pending is not None and _can_be_stopped(pending)),
        "settles": story.status == "unknown" and operates,
        "operates": operates,
        "guide": None,
        "session": None,
        "partly": look.partly,
        "path": look.request.url.path,
    }


async def _session(look: Look, story: Story) -> "ShownSession | None":
    """The session at its upstream that the call was about, as it is now; EXE-8."""
    about = None if story.observation is None else story.observation.upstream_session
    if about is None:
        return None
    try:
        return await look.gateway.upstream_sessions.look(look.principal, about["id"])
    except NotFound:  # it was forgotten
        return None


def _headline(story: Story, pending: Mapping[str, Any] | None) -> str:
    if pending is not None:
        return f"Its {pending['kind']} goes on"
    return "It is approved" if _is_agreed(story) else HEADLINES.get(story.status, story.status)


def _can_be_stopped(pending: Mapping[str, Any]) -> bool:
    """A run has a page of its own."""
    return pending["kind"] == "job" and "cancelling" not in pending


def _is_agreed(story: Story) -> bool:
    """Nobody is asked any more; somebody has yet to propose it again."""
    return story.status == "held" and story.approval is not None and story.approval.answer is Answer.APPROVED


def spans(passage: Passage) -> list[tuple[GatePassed, float, float]]:
    """Each step with where its time begins and how long it is, in hundredths of the whole way."""
    whole, at, told = passage.micros or 0, 0, []
    for gate in passage.gates:
        took = gate.micros or 0
        share = 100 / whole if whole else 0.0
        told.append((gate, round(at * share, 2), round(max(took * share, 0.4 if took else 0.0), 2)))
        at += took
    return told


async def cancel(look: Look) -> Response:
    """POST /calls/{id}/cancel"""
    await look.form()
    call_id = look.request.path_params["id"]
    if await look.gateway.cancel(look.principal, call_id) == "too late":
        raise HoldfastError(f"call {call_id[:64]!r} is over, or has acted already; it cannot be cancelled")
    return look.see_other(f"/calls/{call_id}", "cancelled")


async def roll_back(look: Look) -> Response:
    """POST /calls/{id}/rollback: of the session that it was about"""
    await look.form()
    story = await look.gateway.timeline.of(look.principal, look.request.path_params["id"])
    found = await _session(look, story)
    if found is None:
        raise NotFound(f"call {story.call_id!r} was about no session that is still known")
    await look.gateway.upstream_sessions.end(look.principal, found.session.id)
    return look.see_other(f"/calls/{story.call_id}", "rolled_back")


async def settle(look: Look) -> Response:
    """POST /calls/{id}/settle: a person says what became of it"""
    form = await look.form()
    call_id, outcome, note = look.request.path_params["id"], form.get("outcome"), form.get("note").strip()
    if outcome not in ("committed", "no-effect"):
        raise TransportError(400, "say whether it happened or not", "choose one of the two, then settle it")
    if not note:
        raise TransportError(
            400, "say how you know", "write where you looked; whoever reads the record later needs it"
        )
    await look.gateway.settle(
        look.principal, call_id, "committed" if outcome == "committed" else "no-effect", note[:LONGEST_NOTE]
    )
    back = "/unknown" if form.get("back") == "unknown" else f"/calls/{call_id}"
    return look.see_other(back, "settled")
