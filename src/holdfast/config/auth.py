"""Who may call, and as whom?

The docstring below a key is its line in `docs/reference/config.md`; a test compares them.
"""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field, StringConstraints, model_validator

from holdfast.config.place import Fault
from holdfast.config.section import Name, Scope, Section, Trust, is_loopback
from holdfast.model import defaults

ASYMMETRIC = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
"""Signatures that whoever checks them cannot make."""
_SUBJECT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@|:+-]{0,127}")
_HTTP = re.compile(r"https?://[^\s/?#@]+(/[^\s?#]*)?")


def _subject(name: str) -> str:
    if not _SUBJECT.fullmatch(name):
        raise ValueError(
            f"{name!r} is not allowed here; "
            "use letters, digits and '.', '_', '@', '|', ':', '+', '-', at most 128"
        )
    return name


def _url(url: str) -> str:
    """Keys that come over a line anybody can write to prove nothing."""
    if not _HTTP.fullmatch(url):
        raise ValueError(f"{url!r} is not allowed here; write 'https://host/path'")
    where = urlsplit(url)
    if where.scheme == "http" and not is_loopback(where.hostname or ""):
        raise ValueError(f"{url!r} can be changed on its way; write 'https://' (plain http is for loopback)")
    return url


def _algorithm(name: str) -> str:
    if name == "none" or name.startswith("HS"):
        raise ValueError(f"{name!r} lets whoever checks a token make one; use {', '.join(ASYMMETRIC)}")
    if name not in ASYMMETRIC:
        raise ValueError(f"{name!r} is not known; use {', '.join(ASYMMETRIC)}")
    return name


Subject = Annotated[str, AfterValidator(_subject)]
Url = Annotated[str, AfterValidator(_url)]
Algorithm = Annotated[str, AfterValidator(_algorithm)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=256)]
Named = Annotated[tuple[Text, ...], BeforeValidator(lambda said: (said,) if isinstance(said, str) else said)]


class Held(Section):
    """A scope, or a scope until a time."""

    scope: Scope
    """A scope or pattern; a plain string instead of this mapping is a scope without an end."""
    expires: AwareDatetime | None = None
    """When it ends, with a time zone."""
    granted_by: str = "config"
    """Who gave it."""

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, value: Any) -> Any:
        return {"scope": value} if isinstance(value, str) else value


class Person(Section):
    roles: tuple[Name, ...] = ()
    """What this person may approve as, such as `operator`; everybody is a `user`."""
    scopes: tuple[Held, ...] = ()
    """What this person may do; nothing when left out. `*` stays in a word, `**` crosses words."""
    tenant: Name = "default"
    """Where this person's calls and data live."""
    trust: Trust = 0
    """From `trust_threshold` on, undoable writes outside prod need no approval."""
    approver_secret: str | None = Field(default=None, repr=False)
    """Proves that the person is here, not an agent: `${NAME}`, or what `holdfast keys hash` prints."""


class Agent(Section):
    user: Subject | None = None
    """The person this agent acts for; with `mode: jwt`, when left out, whoever signed in to that client."""
    scopes: tuple[Scope, ...] | None = None
    """Narrows what the person may do; does not narrow when left out."""
    trust: Trust | None = None
    """Narrows the person's trust."""


class Key(Section):
    id: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]{4,32}$")]
    """The public part of `hf_<id>_<secret>`."""
    hash: Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")] = Field(repr=False)
    """The secret part, hashed; `holdfast keys create --for-config` prints it."""
    user: Subject
    """The person whose key this is."""
    agent: Name | None = None
    """The agent that holds it; the person does when left out."""
    scopes: tuple[Scope, ...] | None = None
    """Narrows further."""
    expires: AwareDatetime | None = None
    """When the key stops working, with a time zone."""


class Claims(Section):
    """Where a token says what. Each is the name of a claim, `a.b` for one inside another, or several names of
    which the first one that is there counts."""

    user: Named = ("sub",)
    """Who signed in. `email` counts only where `email_verified` is true."""
    agent: Named = ("client_id", "azp")
    """The client that holds the token."""
    scopes: Named = ("scope", "scp")
    """What the token is good for; `[]`: tokens say nothing of it, and narrow nothing."""
    tenant: Named = ()
    """The tenant; a token without it is refused. When left out: the person's, else `default`."""
    roles: Named = ()
    """Roles the issuer gives, as they are called here."""
    groups: Named = ()
    """Groups the person is in, as `auth.groups` calls them."""
    trust: Named = ()
    """Trust from 0 to 100; narrows the person's."""


class Group(Section):
    roles: tuple[Name, ...] = ()
    """What its members may approve as."""
    scopes: tuple[Scope, ...] = ()
    """What its members may do."""


class Unlisted(Section):
    scopes: tuple[Scope, ...] = ()
    """The most that the token of such a person is good for; nothing when left out."""
    trust: Trust = 0
    """Their trust."""


class Auth(Section):
    mode: Literal["local", "api_key", "jwt"] = "local"
    """`local`: the OS user, from this machine; `api_key`: by key; `jwt`: by token of `issuer`, or by key."""
    people: dict[Subject, Person] = {}
    """Who exists, by name."""
    agents: dict[Subject, Agent] = {}
    """Agents by name, each acting for one person."""
    keys: tuple[Key, ...] = ()
    """API keys, hashed; beside those that `holdfast keys create` puts in the store."""
    issuer: Url | None = None
    """Whose tokens are accepted: the `iss` of every token, to the letter."""
    audience: Text | None = None
    """What a token's `aud` must contain."""
    jwks_url: Url | None = None
    """Where the issuer's keys are; the issuer's own metadata says so when left out."""
    resource: Text | None = None
    """What tokens must be meant for (RFC 8707), as clients ask for it; `audience` when left out."""
    algorithms: Annotated[tuple[Algorithm, ...], Field(min_length=1)] = ("RS256", "ES256", "EdDSA")
    """Signatures that are accepted; never one that needs a shared secret."""
    skew_s: float = Field(default=defaults.TOKEN_SKEW_S, ge=0, le=defaults.TOKEN_SKEW_MAX_S)
    """How far the issuer's clock may be off, in seconds."""
    claims: Claims = Claims()
    """Where a token says what."""
    groups: dict[Text, Group] = {}
    """What being in a group of the issuer's gives; needs `claims.groups`."""
    unlisted: Unlisted | None = None
    """What somebody may do who is not under `people`; when left out, only members of `groups` are let in."""
    scopes: tuple[Text, ...] = ()
    """What clients are told to ask the issuer for, in the metadata they read before they sign in."""
    in_person: tuple[Text, ...] = ()
    """Clients through which people act themselves, and so have their roles; all others are agents."""

    @model_validator(mode="after")
    def _agrees(self) -> "Auth":
        wrong = [*self._agents_without_person(), *self._keys_without_owner(), *self._odd_keys()]
        if wrong := [*wrong, *self._tokens()]:
            raise ValueError(wrong)
        return self

    def _agents_without_person(self) -> Iterator[Fault]:
        for name, agent in self.agents.items():
            if agent.user is None:
                if self.mode != "jwt":
                    yield Fault(("agents", name, "user"), "is required; add it")
            elif agent.user not in self.people:
                yield Fault(("agents", name, "user"), _nobody("person", agent.user, self.people))

    def _keys_without_owner(self) -> Iterator[Fault]:
        for i, key in enumerate(self.keys):
            place = ("keys", str(i))
            if key.user not in self.people:
                yield Fault((*place, "user"), _nobody("person", key.user, self.people))
            if key.agent is None:
                continue
            agent = self.agents.get(key.agent)
            if agent is None:
                yield Fault((*place, "agent"), _nobody("agent", key.agent, self.agents))
            elif agent.user not in (None, key.user):
                yield Fault((*place, "agent"), f"{key.agent!r} acts for {agent.user!r}, not for {key.user!r}")

    def _odd_keys(self) -> Iterator[Fault]:
        ids = [key.id for key in self.keys]
        for i, id in enumerate(ids):
            if id in ids[:i]:
                yield Fault(("keys", str(i), "id"), f"{id!r} is given twice; make another key")

    def _tokens(self) -> Iterator[Fault]:
        """What goes with signing in, and only with it."""
        if self.mode == "jwt":
            for name in ("issuer", "audience"):
                if getattr(self, name) is None:
                    yield Fault((name,), "is required with mode 'jwt'; add it")
            if self.groups and not self.claims.groups:
                yield Fault(("claims", "groups"), "is required with 'groups'; name the claim that lists them")
            return
        for name in sorted(_JWT & self.model_fields_set):
            yield Fault((name,), "is for mode 'jwt'; set that, or remove this")


_JWT = frozenset(
    {"issuer", "audience", "jwks_url", "resource", "algorithms", "skew_s", "claims", "groups", "unlisted"}
    | {"in_person", "scopes"}
)


def _nobody(kind: str, name: str, known: dict[str, Any]) -> str:
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    return f"there is no {kind} {name!r}; " + (
        f"did you mean {near[0]!r}?"
        if near
        else f"add it under auth.{'people' if kind == 'person' else 'agents'}"
    )
