"""Where does the tool that is a chain run? Its run is begun, and waited for as long as the call may; CHN-6.

What is not over by then, or waits for a person, is answered at once: the outcome is not known yet. The run
goes on without the call, and settles it when it ends.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast.model.call import Call, Principal
from holdfast.model.current import served
from holdfast.model.errors import Code, HoldfastError, NoEffect, StoreError
from holdfast.model.messages import no_such_tool
from holdfast.ports import Attempt

if TYPE_CHECKING:
    from holdfast.gateway.chains import Chains

AT_ONCE = 256
"""Calls that wait for their runs. A chain in a chain waits too, so there is room for many."""
MARGIN = 0.1
"""Of the time that is left: an answer that says who is waited for is better than a deadline."""


class ChainUpstream:
    concurrency = AT_ONCE
    personal = True

    def __init__(self) -> None:
        self._chains: Chains | None = None

    def bind(self, chains: "Chains") -> None:
        """Once the gateway is there through which its steps are called."""
        self._chains = chains

    async def invoke(self, attempt: Attempt) -> Any:
        call, chains = served(), self._chains
        if call is None or chains is None:
            raise NoEffect("the gateway is not open yet", Code.TOOL_UNAVAILABLE)
        name = attempt.tool.contract.identity.name
        if name.startswith("_"):
            return await self._read(call.principal, name, attempt.arguments, chains)
        return await self._run(name, attempt, call, chains)

    async def close(self) -> None:
        """Runs are ended with what drives them."""

    async def _read(self, by: Principal, name: str, given: Mapping[str, Any], chains: "Chains") -> Any:
        if not by.system:  # whose run it is was not asked
            raise NoEffect(no_such_tool(f"chains.{name}"), Code.TOOL_NOT_FOUND)
        if name == "_plan":
            return chains.planned(given["chain"], given["made_of"])
        return await chains.outcome(by.tenant, given["key"])

    async def _run(self, name: str, attempt: Attempt, call: Call, chains: "Chains") -> Any:
        from holdfast.gateway.chain_outcome import answer  # imported only where there are chains
        from holdfast.gateway.chains import asked_again

        try:
            run = await chains.called(call, name, attempt.arguments)
        except StoreError:  # whether it was begun is not known
            raise
        except HoldfastError as error:
            raise NoEffect(str(error)) from error
        left_s = attempt.deadline_s * (1 - MARGIN)
        seen = await chains.wait(call.principal, run.id, left_s, beyond=asked_again(run))
        given_up = not seen.state.over and not call.writes and call.key is None
        if given_up:
            await chains.cancel(call.principal, run.id)
        lines = (await chains.look(call.principal, run.id)).lines
        return answer(seen, lines, given_up=given_up)
