"""How do people hear of what waits for them?

The docstring below a key is its line in `docs/reference/config.md`; a test compares them.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator

from holdfast.config.egress import clear_host
from holdfast.config.section import Name, Section, is_loopback

Event = Literal["asked", "escalated", "decided", "expired", "alert"]
ChannelName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")]
PORTS = {"starttls": 587, "tls": 465, "none": 25}

_ADDRESS = re.compile(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?"
)
_URL = re.compile(r"https?://[^\s/?#@]+([/?][^\s#]*)?")


def _address(text: str) -> str:
    if not _ADDRESS.fullmatch(text):
        raise ValueError(f"{text!r} is no mail address; write 'name@host'")
    return text


def _url(url: str) -> str:
    if not _URL.fullmatch(url):
        raise ValueError("this is no url of a webhook; write 'https://host/path'")
    where = urlsplit(url)
    clear_host(where.hostname or "")
    if where.scheme == "http" and not is_loopback(where.hostname or ""):
        raise ValueError("it can be read on its way; write 'https://' (plain http is for loopback)")
    return url


def _host(host: str) -> str:
    clear_host(host)
    return host


Address = Annotated[str, AfterValidator(_address)]
Addresses = Annotated[tuple[Address, ...], Field(min_length=1)]
Role = Annotated[str, StringConstraints(pattern=r"^(\*|[A-Za-z0-9][A-Za-z0-9._@-]{0,63})$")]
EVERYBODY = "*"


def _by_role(said: Any) -> Any:
    return {EVERYBODY: said} if isinstance(said, list | tuple) else said


Recipients = Annotated[dict[Role, Addresses], BeforeValidator(_by_role), Field(min_length=1)]


class Webhook(Section):
    url: Annotated[str, AfterValidator(_url)]
    """Notices are posted here as JSON."""
    secret: Annotated[str, StringConstraints(min_length=1)] = Field(repr=False)
    """Signs them, after Standard Webhooks: `${secret:NAME}`, or `${NAME}` for one that is read once."""


class Mail(Section):
    host: Annotated[str, StringConstraints(pattern=r"^[^\s/:@\[\]]{1,253}$"), AfterValidator(_host)]
    """The mail server."""
    port: int | None = Field(default=None, ge=1, le=65535)
    """Its port; 587 with `starttls`, 465 with `tls`, 25 with `none` when left out."""
    tls: Literal["starttls", "tls", "none"] = "starttls"
    """How the way there is protected; the server's certificate is always checked."""
    ca: Annotated[str, StringConstraints(min_length=1)] | None = None
    """A file of certificates to trust instead of this machine's, beside the config file."""
    user: Annotated[str, StringConstraints(min_length=1, max_length=256)] | None = None
    """Who signs in there; nobody when left out."""
    password: Annotated[str, StringConstraints(min_length=1)] | None = Field(default=None, repr=False)
    """With what: `${secret:NAME}`, or `${NAME}` for one that is read once."""
    sender: Address
    """Whom mails are from."""
    to: Recipients
    """Who gets them: addresses, or for each role its addresses; `*`: whatever role is asked."""

    @model_validator(mode="after")
    def _agrees(self) -> "Mail":
        if (self.user is None) != (self.password is None):
            raise ValueError("'user' and 'password' go together; name both or neither")
        if self.tls == "none" and self.password is not None and not is_loopback(self.host):
            raise ValueError("a password must not go over an open line; set 'tls' to 'starttls' or 'tls'")
        return self

    @property
    def where(self) -> int:
        return self.port or PORTS[self.tls]


class Channel(Section):
    webhook: Webhook | None = None
    """A server that is told."""
    mail: Mail | None = None
    """People who get mail."""
    events: Annotated[tuple[Event, ...], Field(min_length=1)] = ("asked", "escalated", "alert")
    """What is told: `asked`, `escalated`, `decided`, `expired`, `alert`."""
    roles: tuple[Name, ...] = ()
    """Only questions put to one of these roles; every question when left out."""
    tenants: tuple[Name, ...] = ()
    """Only what concerns these tenants; every tenant when left out."""

    @model_validator(mode="after")
    def _one_way(self) -> "Channel":
        if (self.webhook is None) == (self.mail is None):
            raise ValueError("name either 'webhook' or 'mail'")
        return self


def secrets_of(channels: Mapping[str, Channel]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Each text that may point at a secret, with its place."""
    for name, channel in channels.items():
        if channel.webhook is not None:
            yield ("channels", name, "webhook", "secret"), channel.webhook.secret
        if channel.mail is not None and channel.mail.password is not None:
            yield ("channels", name, "mail", "password"), channel.mail.password
