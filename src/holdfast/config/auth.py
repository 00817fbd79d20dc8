"""Who may call, and as whom?

The docstring below a key is its line in `docs/reference/config.md`; a test compares them.
"""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field, StringConstraints, model_validator

from holdfast.config.place import Fault
from holdfast.config.section import Name, Scope, Section, Trust


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
    user: Name
    """The person this agent acts for."""
    scopes: tuple[Scope, ...] | None = None
    """Narrows what the person may do; does not narrow when left out."""
    trust: Trust | None = None
    """Narrows the person's trust."""


class Key(Section):
    id: Annotated[str, StringConstraints(pattern=r"^[a-z0-9]{4,32}$")]
    """The public part of `hf_<id>_<secret>`."""
    hash: Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")] = Field(repr=False)
    """The secret part, hashed; `holdfast keys create` prints it."""
    user: Name
    """The person whose key this is."""
    agent: Name | None = None
    """The agent that holds it; the person does when left out."""
    scopes: tuple[Scope, ...] | None = None
    """Narrows further."""
    expires: AwareDatetime | None = None
    """When the key stops working, with a time zone."""


class Auth(Section):
    mode: Literal["local", "api_key"] = "local"
    """`local`: whoever connects from this machine is its OS user; `api_key`: every request carries a key."""
    people: dict[Name, Person] = {}
    """Who exists, by name."""
    agents: dict[Name, Agent] = {}
    """Agents by name, each acting for one person."""
    keys: tuple[Key, ...] = ()
    """API keys, hashed."""

    @model_validator(mode="after")
    def _agrees(self) -> "Auth":
        if wrong := [*self._agents_without_person(), *self._keys_without_owner(), *self._odd_keys()]:
            raise ValueError(wrong)
        return self

    def _agents_without_person(self) -> Iterator[Fault]:
        for name, agent in self.agents.items():
            if agent.user not in self.people:
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
            elif agent.user != key.user:
                yield Fault((*place, "agent"), f"{key.agent!r} acts for {agent.user!r}, not for {key.user!r}")

    def _odd_keys(self) -> Iterator[Fault]:
        ids = [key.id for key in self.keys]
        for i, id in enumerate(ids):
            if id in ids[:i]:
                yield Fault(("keys", str(i), "id"), f"{id!r} is given twice; make another key")
        if self.mode == "api_key" and not ids:
            yield Fault(("keys",), "mode 'api_key' needs a key; make one with 'holdfast keys create'")


def _nobody(kind: str, name: str, known: dict[str, Any]) -> str:
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    return f"there is no {kind} {name!r}; " + (
        f"did you mean {near[0]!r}?"
        if near
        else f"add it under auth.{'people' if kind == 'person' else 'agents'}"
    )
