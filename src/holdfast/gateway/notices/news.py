"""Who is told what, when, and through which channel?

A notice's name is made from what it tells: whoever finds the same news again, in whatever process, makes the
same notice, and the outbox has it already.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from holdfast.config.channels import EVERYBODY, Channel
from holdfast.gateway.notices import told
from holdfast.model.approval import Answer, Approval, Chain, stand_ins
from holdfast.model.people import Alert, Notice
from holdfast.ports import Ports

Channels = Mapping[str, Channel]


def of_approval(asked: Approval, level: int, channels: Channels, ports: Ports) -> Iterator[Notice]:
    """All that is new of a question since people were told of it up to `level`."""
    if asked.answer is not Answer.PENDING:
        late = asked.answer is Answer.AUTO_DENIED and asked.expires_at <= ports.clock.now()
        roles = _roles(asked, ports.chain, 0, asked.level)
        yield from _notices("expired" if late else "decided", asked, roles, channels, ports)
        return
    if level < 0:
        yield from _notices("asked", asked, tuple(sorted(asked.need)), channels, ports)
    if asked.level > max(level, 0):
        reached = _roles(asked, ports.chain, max(level, 0) + 1, asked.level)
        yield from _notices("escalated", asked, reached, channels, ports)


def of_alert(alert: Alert, channels: Channels, ports: Ports) -> Iterator[Notice]:
    body = told.of_alert(alert, ports)
    step = 0 if alert.ended_at is None else 1
    for name, channel in channels.items():
        if "alert" not in channel.events or not _concerns(channel, alert.tenant):
            continue
        for to in recipients(channel, None):
            yield _notice(name, to, "alert", alert.tenant, alert.id, step, body, ports.clock.now())


def _notices(
    event: str, asked: Approval, roles: tuple[str, ...], channels: Channels, ports: Ports
) -> Iterator[Notice]:
    body = told.of_approval(event, asked, roles, ports)
    for name, channel in channels.items():
        if event not in channel.events or not _concerns(channel, asked.ref.tenant):
            continue
        if channel.roles and not set(channel.roles) & set(roles):
            continue
        for to in recipients(channel, roles):
            yield _notice(name, to, event, asked.ref.tenant, asked.id, asked.level, body, ports.clock.now())


def _roles(asked: Approval, chain: Chain, first: int, last: int) -> tuple[str, ...]:
    """Whom a question has reached from one escalation to another; those it names itself at 0."""
    named = set(asked.need) if first == 0 else set()
    before = {other for role in asked.need for other in stand_ins(role, chain, max(first - 1, 0))}
    reached = {other for role in asked.need for other in stand_ins(role, chain, last)}
    return tuple(sorted(named | (reached if first == 0 else reached - before)))


def _concerns(channel: Channel, tenant: str) -> bool:
    return not channel.tenants or tenant in channel.tenants


def recipients(channel: Channel, roles: Sequence[str] | None) -> Sequence[str]:
    """Addresses, each once; one nameless recipient where a channel is one receiver."""
    if channel.mail is None:
        return ("",)
    wanted = channel.mail.to if roles is None else {EVERYBODY, *roles}
    return tuple(dict.fromkeys(to for role, some in channel.mail.to.items() if role in wanted for to in some))


def _notice(
    channel: str, to: str, event: str, tenant: str, about: str, step: int, body: Mapping[str, Any], now: float
) -> Notice:
    parts = "\n".join((channel, to, event, tenant, about, str(step)))
    return Notice(
        tenant=tenant,
        id=f"ntc_{sha256(parts.encode()).hexdigest()[:32]}",
        channel=channel,
        to=to,
        event=event,
        about=about,
        body=body,
        at=now,
        due_at=now,
    )
