"""*Policy*: which policies are in force, and what would others change?"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import Response, StreamingResponse

from holdfast.gateway.auditing import DAY_S
from holdfast.gateway.diff import Wish
from holdfast.model.errors import ConfigError, HoldfastError, NotFound
from holdfast.policy import Bundle, starter
from holdfast.policy.bundle import NAME, RESERVED
from holdfast.servers.answers import TransportError
from holdfast.servers.console.form import Form
from holdfast.servers.console.look import Look
from holdfast.servers.console.security import HEADERS
from holdfast.servers.console.writing import rendered

MOST_TEXT = 80_000
"""Characters of policies that are tried here; a form takes little more."""
DAYS = ("1", "7", "14", "30", "90")
SHOWN = 50
"""Promotions on the page, and groups of a report."""
TELL_S = 0.5
"""Between two words about how far it is."""
LONGEST_NOTE = 1000


async def page(look: Look) -> Response:
    """GET /policy"""
    return await look.page("policy.html", **await _told(look))


async def try_out(look: Look) -> Response:
    """POST /policy/try: what would these policies have decided?"""
    form = await look.form()
    bundle, wish = await _bundle(look, form), _wish(look, form)
    problems = _problems(look, bundle)
    if look.partly and not problems:
        return StreamingResponse(_report(look, bundle, wish), headers=HEADERS, media_type="text/event-stream")
    report = None if problems else await look.gateway.history.diff(look.principal, bundle, wish)
    context: dict[str, Any] = {
        "bundle": bundle,
        "diff": report,
        "problems": problems,
        "needs_review": look.gateway.history.days,
    }
    if look.partly:
        return look.partial("policy_report.html", **context)
    return await look.page("policy.html", **{**await _told(look), **context, "edited": bundle})


async def promote(look: Look) -> Response:
    """POST /policy/promote: put in force what was tried, if it is still what was shown"""
    form = await look.form()
    bundle, note = await _bundle(look, form), form.get("note").strip()[:LONGEST_NOTE]
    if bundle.version != form.get("version"):
        raise HoldfastError("these are not the policies whose report was shown; try them again")
    if problems := _problems(look, bundle):
        raise HoldfastError(f"they cannot be put in force: {problems[0]}")
    if form.get("accept"):
        again = await look.gateway.history.diff(look.principal, bundle, _wish(look, form, whole=True))
        if str(again.flips) != form.get("flips"):
            raise HoldfastError("calls were made since, and the report is another one now; try them again")
        await look.gateway.history.accept(look.principal, again, note)
    if not await look.gateway.policies.promote(look.principal, bundle, note):
        raise HoldfastError("these policies are in force already")
    return look.see_other("/policy", "promoted")


async def rollback(look: Look) -> Response:
    """POST /policy/rollback"""
    form = await look.form()
    if form.get("version") != look.gateway.policies.version:
        raise HoldfastError("other policies are in force by now; look at them first")
    await look.gateway.policies.rollback(look.principal, form.get("note").strip()[:LONGEST_NOTE])
    return look.see_other("/policy", "rolled-back")


async def _report(look: Look, bundle: Bundle, wish: Wish) -> AsyncIterator[bytes]:
    """How far it is, every now and then, and the report in the end."""
    judged = 0

    def tell(decisions: int) -> None:
        nonlocal judged
        judged = decisions

    work = asyncio.create_task(look.gateway.history.diff(look.principal, bundle, wish, tell))
    try:
        while not (await asyncio.wait({work}, timeout=TELL_S))[0]:
            yield _event(rendered("policy_progress.html", {"judged": judged}))
        context: dict[str, Any] = {"diff": None, "problems": []}
        try:
            context["diff"] = work.result()
        except HoldfastError as error:
            context["problems"] = [str(error)]
        days = look.gateway.history.days
        known = {"csrf": look.session.token, "now": look.gateway.identity.now(), "needs_review": days}
        yield _event(rendered("policy_report.html", {**known, "bundle": bundle, **context}))
    finally:
        work.cancel()


def _event(text: str) -> bytes:
    return b"".join(b"data: %b\n" % line.encode() for line in text.splitlines()) + b"\n"


async def _told(look: Look) -> dict[str, Any]:
    gateway, operates = look.gateway, look.gateway.operates(look.principal)
    promotions = list(await gateway.policies.promotions()) if operates else []
    active = await _active(look) if operates else None
    return {
        "version": gateway.policies.version,
        "operates": operates,
        "notes": gateway.policies.notes() if operates else [],
        "promotions": promotions[:SHOWN],
        "active": active,
        "edited": active,
        "new_file": _unused(active),
        "editable": active is None or len(active.content) <= MOST_TEXT,
        "days": DAYS,
        "look_back": f"{gateway.config.policy_review.days:g}",
        "needs_review": gateway.history.days,
        "bundle": None,
        "diff": None,
        "problems": [],
    }


def _unused(active: Bundle | None) -> str:
    """A name for one more file."""
    if active is None:
        return "policies.cedar"
    names = ("more.cedar", *(f"more-{number}.cedar" for number in range(2, len(active.files) + 3)))
    return next(name for name in names if name not in active.files)


async def _active(look: Look) -> Bundle | None:
    try:
        return await look.gateway.history.find(look.gateway.policies.version)
    except NotFound:  # nothing was promoted: the starter policy, or none at all
        first = starter()
        return first if first.version == look.gateway.policies.version else None


async def _bundle(look: Look, form: Form) -> Bundle:
    """What a form gives: a version that was in force once, or files by name."""
    if not look.gateway.operates(look.principal):  # before anything of a bundle is told
        await look.gateway.history.diff(look.principal, Bundle("none", {}))
    if version := form.get("from"):
        return await look.gateway.history.find(version)
    files: dict[str, str] = {}
    for named, text in zip(form.all("file"), form.all("text"), strict=False):
        if named.strip() and text.strip():
            if named.strip() in files:
                raise TransportError(
                    400, f"two files are called '{named.strip()[:80]}'", "name one otherwise"
                )
            files[named.strip()] = _lines(text)
    name = form.get("name", "console") or "console"
    if not NAME.fullmatch(name) or name in RESERVED:
        raise TransportError(400, "this is no name of a bundle", "use lower-case letters, digits and '-'")
    if not files:
        raise TransportError(400, "there is no policy in this form", "write one, or choose a file")
    return Bundle(name, files, form.get("description"))


def _lines(text: str) -> str:
    """As a file has them: browsers end lines in their own way, and a version is of every character."""
    return text.replace("\r\n", "\n")


def _wish(look: Look, form: Form, *, whole: bool = False) -> Wish:
    days = form.get("days")
    span = float(days) if days in DAYS else look.gateway.config.policy_review.days
    if whole:
        return Wish(since_s=max(span, look.gateway.history.days or 0.0) * DAY_S)
    return Wish(
        since_s=span * DAY_S, tool=form.get("tool").strip() or None, active=form.get("against") == "active"
    )


def _problems(look: Look, bundle: Bundle) -> list[str]:
    try:
        return [str(problem) for problem in look.gateway.policies.examine(bundle).problems]
    except ConfigError as error:
        return [str(error)]
