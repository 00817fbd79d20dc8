"""What does somebody see who opens the console for the first time? One held call, and what it is about.

The configuration names a file with a call and three sentences about it. It is proposed once, as an agent
would propose it, and released by the gateway when people have agreed. How the story stands is read from the
records and the approval: nothing is kept for it.
"""

from collections.abc import Awaitable, Callable
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from holdfast.config import Config
from holdfast.gateway.views import Views
from holdfast.identity import Identity
from holdfast.identity.identity import AGENT
from holdfast.model.approval import Answer, Approval
from holdfast.model.call import Principal, Proposal
from holdfast.model.errors import ConfigError, HoldfastError
from holdfast.model.observation import Observation
from holdfast.model.value import value
from holdfast.model.view import CallRow, Wanted

SHOWN_S = 3600.0
"""How long it is told what became of it, and what to try next."""
MOST = 500
Text = Annotated[str, StringConstraints(min_length=1, max_length=1000, strip_whitespace=True)]
State = Literal["waiting", "running", "over", "unanswered"]

Propose = Callable[[Proposal], Awaitable[Observation]]
Ask = Callable[[Principal, str], Awaitable[Approval | None]]


class Call(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")
    tool: Text
    arguments: dict[str, Any] = {}
    key: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._:-]{1,64}$")]


class Tale(BaseModel):
    """The file."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    title: Text
    text: Text
    """What is held here and why, in about three sentences."""
    agent: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    """The name that proposes the call."""
    call: Call
    then: tuple[Text, ...] = ()
    """What to try when it is over."""


@value()
class Told:
    """How the story stands."""

    tale: Tale
    state: State
    call_id: str
    approval: Approval | None
    status: str
    """Of the call, as the records know it."""


class Guide:
    """Hung on the gateway as `guide`."""

    def __init__(self, config: Config, identity: Identity, views: Views, propose: Propose, ask: Ask) -> None:
        self._config, self._identity, self._views = config, identity, views
        self._propose, self._ask = propose, ask

    async def begin(self) -> None:
        """At a start: propose the call, unless it ever was. Several processes may: it is one operation."""
        if self.tale is not None and not await self._rows():
            await self._proposed(1)

    async def again(self, by: Principal) -> None:
        """Once more, when nobody answered in time or somebody said no."""
        told = await self.told(by)
        if told is None or told.state != "unanswered":
            raise HoldfastError("there is nothing to begin again")
        await self._proposed(len(await self._rows()) + 1)

    async def told(self, by: Principal) -> Told | None:
        """None where there is no story, or it was over long ago."""
        if self.tale is None or by.tenant != self._agent.tenant:
            return None
        rows = await self._rows()
        return await self._stands(rows[0], self.tale) if rows else None

    async def _stands(self, last: CallRow, tale: Tale) -> Told | None:
        asked = await self._ask(self._agent, last.approval_id) if last.approval_id else None
        state: State = "over"
        if last.status == "running":
            state = "running"
        elif last.status == "held" and asked is not None:
            state = _state(asked.answer)
        elif last.status in ("held", "refused"):
            state = "unanswered"
        if state == "over" and self._identity.now() > last.updated_at + SHOWN_S:
            return None
        return Told(tale=tale, state=state, call_id=last.call_id, approval=asked, status=last.status)

    async def _rows(self) -> tuple[CallRow, ...]:
        """Every time it was proposed or released, newest first."""
        if self.tale is None:
            return ()
        await self._views.fresh()
        wanted = Wanted(tool=self.tale.call.tool, agent=self._agent.agent, limit=MOST)
        return (await self._views.calls(self._agent, wanted)).rows

    async def _proposed(self, times: int) -> None:
        if self.tale is None:
            return
        call = self.tale.call
        key = call.key if times == 1 else f"{call.key}-{times}"
        await self._propose(
            Proposal(
                tool=call.tool,
                arguments=call.arguments,
                principal=self._agent,
                key=key,
                release="gateway",
                environment=self._config.environment,
            )
        )

    @property
    def _agent(self) -> Principal:
        """Somebody's agent on this machine: the person logged in is who it acts for."""
        return self._identity.standing({AGENT: self.tale.agent if self.tale else ""}).principal

    @cached_property
    def tale(self) -> Tale | None:
        """Raises ConfigError where the file cannot be used."""
        named = self._config.console.story
        return (
            None if named is None or not self._config.console.enabled else _read(self._config.folder / named)
        )


def _state(answer: Answer) -> State:
    if answer is Answer.PENDING:
        return "waiting"
    return "running" if answer is Answer.APPROVED else "unanswered"


def _read(path: Path) -> Tale:
    try:
        return Tale.model_validate(yaml.safe_load(path.read_text()))
    except (OSError, yaml.YAMLError) as error:
        raise ConfigError(f"console.story: '{path}' cannot be read: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise ConfigError(f"console.story: {place} in '{path}': {first['msg']}") from None
