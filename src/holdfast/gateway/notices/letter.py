"""How does a mail read? Plain, short, and with nothing in it that does anything.

What an agent wrote is bounded, marked line by line, shows what cannot be seen, and has no address left in it
that a mail program would turn into a link. The one link leads to a page where somebody signs in: nothing is
approved by following it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate
from typing import Any

import orjson

from holdfast.model.moment import iso
from holdfast.model.people import Notice
from holdfast.model.quoted import visible

LONGEST_SUBJECT = 120
LONGEST = 600
"""Characters of one text."""
LONGEST_NAME = 128
MOST_OTHERS = 20
MOST_LINES = 12
"""Of arguments."""
_ADDRESS = re.compile(r"://|\.(?=[^\W\d_])|@")
_DEFUSED = {"://": "[:]//", ".": "[.]", "@": "[at]"}

_WHAT = {
    "approval.asked": "approve or deny",
    "approval.escalated": "still waits for an answer",
    "approval.decided": "was answered",
    "approval.expired": "was denied: nobody answered in time",
    "alert": "alert",
    "test": "a test",
}

_SENTENCE = {
    "approval.asked": "waits for people to approve or deny it.",
    "approval.escalated": "still waits: nobody has answered so far, and now you may.",
    "approval.decided": "was answered: {answer}.",
    "approval.expired": "was denied: nobody answered in time.",
}


def letter(
    notice: Notice, sender: str, others: Sequence[Notice] = (), closed_until: float | None = None
) -> EmailMessage:
    """`others` wait too; `closed_until`: no further mail before then."""
    mail, domain = EmailMessage(policy=SMTP), sender.rpartition("@")[2]
    mail["From"], mail["To"] = sender, notice.to
    mail["Subject"] = subject(notice.body, len(others))
    mail["Date"] = formatdate(notice.at, usegmt=True)
    mail["Message-ID"] = f"<{notice.id}@{domain}>"
    mail["References"] = f"<{re.sub(r'[^A-Za-z0-9_.-]', '', notice.about) or 'holdfast'}@{domain}>"
    mail["Auto-Submitted"] = "auto-generated"
    said = _lines(notice.body, [other.body for other in others], closed_until)
    mail.set_content("\n".join(said) + "\n", cte="quoted-printable")
    return mail


def subject(body: Mapping[str, Any], others: int) -> str:
    about = name(body.get("tool") or body.get("subject") or "").replace("://", _DEFUSED["://"])
    more = f" and {others} more" if others else ""
    said = f"{_WHAT.get(str(body.get('event')), 'news')}: {about}" if about else "a test of this channel"
    return f"[holdfast] {said[:LONGEST_SUBJECT]}{more}"


def _lines(
    body: Mapping[str, Any], others: Sequence[Mapping[str, Any]], closed_until: float | None
) -> Iterator[str]:
    event = str(body.get("event"))
    if event.startswith("approval."):
        yield from _approval(event, body)
    else:
        yield line(body.get("text", ""))
    if others:
        yield ""
        yield f"{len(others)} more came up:"
        yield from (f"- {_short(other)}" for other in others[:MOST_OTHERS])
        if len(others) > MOST_OTHERS:
            yield f"- … and {len(others) - MOST_OTHERS} more"
    yield ""
    if (link := body.get("link")) is not None:
        yield f"Look at it, and sign in to answer: {link}"
    elif event.startswith("approval."):
        yield f"Look at it: holdfast approvals {body['approval_id']}"
    yield "Nothing is approved or denied by opening a link."
    if closed_until is not None:
        then = minute(iso(closed_until))
        yield f"What else comes up before {then} comes in one mail then; the console has all of it."


def _short(body: Mapping[str, Any]) -> str:
    event = str(body.get("event"))
    if not event.startswith("approval."):
        return f"{line(body.get('subject', ''))}: {line(body.get('text', ''))}"
    who = name((body.get("requested_by") or {}).get("user", ""))
    asked = f"{name(body['tool'])}, asked for by {who}, {_when(body)}"
    return f"{asked}: {body.get('link') or body['approval_id']}"


def _approval(event: str, body: Mapping[str, Any]) -> Iterator[str]:
    who, need, packet = body.get("requested_by") or {}, body.get("need") or {}, body.get("packet") or {}
    yield f"{name(body['tool'])} {_SENTENCE[event].format(answer=str(body.get('answer')).lower())}"
    yield ""
    yield f"What happens:  {line(body.get('consequence', ''))}"
    yield f"Way back:      {line((packet.get('rollback') or {}).get('status') or 'not known')}"
    yield f"Risk:          {_risk(body)}"
    yield f"Asked for by:  {name(who.get('user', ''))}"
    yield f"It takes:      {', '.join(f'{count} x {name(role)}' for role, count in need.items())}"
    yield f"Time:          {_when(body)}"
    for vote in body.get("votes", ()):
        answer = "Approved" if vote["approve"] else "Denied"
        yield f"{answer} by {name(vote['person'])} ({name(vote['role'])})"
    yield f"Approval:      {body['approval_id']}"
    yield f"Call:          {line(body['call_id'])}"
    yield ""
    yield "Written by the agent, not by this gateway:"
    yield from (f"> {said}" for said in written(body, who))


def _risk(body: Mapping[str, Any]) -> str:
    said = (body.get("risk_class"), body.get("risk"))
    return ", ".join(dict.fromkeys(line(one) for one in said if one)) or "not known"


def _when(body: Mapping[str, Any]) -> str:
    ends = minute(str(body.get("expires_at", "")))
    return f"answer by {ends}" if body.get("answer") == "PENDING" else f"open until {ends}"


def minute(moment: str) -> str:
    """A moment for people to read, of one in ISO 8601 and UTC."""
    return f"{moment[:10]} {moment[11:16]} UTC"


def written(body: Mapping[str, Any], who: Mapping[str, Any]) -> Iterator[str]:
    """The agent's own words, one line each."""
    packet = body.get("packet") or {}
    yield f"agent: {line(who.get('agent', ''))}"
    arguments = packet.get("arguments")
    if isinstance(arguments, Mapping):
        for key, value in list(arguments.items())[:MOST_LINES]:
            said = value if isinstance(value, str) else orjson.dumps(value, default=str).decode()
            yield f"{line(key)}: {line(said)}"
        if len(arguments) > MOST_LINES:
            yield f"… {len(arguments) - MOST_LINES} more"
    elif arguments:
        yield f"arguments: {line(arguments)}"


def name(said: object) -> str:
    """What the operator calls somebody or something, on one line."""
    return " ".join(visible(str(said)[:LONGEST_NAME]).split())


def line(said: object) -> str:
    """One line that shows everything that is in it, and leads nowhere."""
    text = str(said)
    shown = _ADDRESS.sub(lambda found: _DEFUSED[found[0]], " ".join(visible(text[:LONGEST]).split()))
    return f"{shown}… ({len(text) - LONGEST} more characters)" if len(text) > LONGEST else shown
