"""The gateway reading for its own gates: a governed call, READ_ONLY and one deep; DEC-3."""

from collections.abc import Mapping
from typing import Any

from holdfast.execution.runtime import Runtime
from holdfast.lifecycle import live, receive
from holdfast.model.call import Principal, Proposal
from holdfast.model.current import served
from holdfast.model.errors import HoldfastError
from holdfast.model.observation import Observation
from holdfast.model.vocabulary import Environment
from holdfast.ports import Ports


class Readings:
    """The `Reader` port. Bound once the ports exist, since it is one of them."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._parts: tuple[Ports, Runtime] | None = None

    def bind(self, ports: Ports, runtime: Runtime) -> None:
        self._parts = (ports, runtime)

    async def read(self, call_tenant: str, tool: str, arguments: Mapping[str, Any]) -> Observation:
        if self._parts is None:
            raise HoldfastError("the gateway is not open yet")
        ports, runtime = self._parts
        reader = Principal(tenant=call_tenant, user="holdfast", agent="reader", system=True)
        outer = served()
        origin = None if outer is None else outer.origin
        proposal = Proposal(
            tool=tool,
            arguments=arguments,
            principal=reader,
            environment=self._environment,
            depth=1,
            trace_id=None if origin is None else origin.trace_id,
            parent=None if origin is None else origin.parent,
        )
        return await live(receive(proposal, ports), ports, runtime)
