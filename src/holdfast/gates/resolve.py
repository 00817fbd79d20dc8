"""Which tool, which version, and under which key?

The only refusal here is TOOL_NOT_FOUND: whatever else is wrong with a tool may be
told only to those who may use it. A key that already has a claim is pinned to that
claim's version, so a retry across an upgrade finds its own operation.
"""

from holdfast.model.call import Call
from holdfast.model.errors import Code
from holdfast.model.keys import well_formed
from holdfast.model.messages import no_such_tool
from holdfast.model.operation import OperationRef
from holdfast.model.verdict import PASS, Refusal, Verdict
from holdfast.model.vocabulary import Effect, KeySource, ToolStatus
from holdfast.ports import Listing, Ports

_CALLER, _REQUEST, _EPHEMERAL = KeySource.CALLER, KeySource.REQUEST, Effect.EPHEMERAL_WRITE


async def resolve(call: Call, ports: Ports) -> Verdict:
    name, spec = _name_and_spec(call)
    listing = _listing(call, ports, name, spec)
    if listing is None:
        return Refusal(Code.TOOL_NOT_FOUND, no_such_tool(name))
    await ports.secrets.ready(call.principal.tenant)  # what becomes of this call is written under its key
    _take(call, _successor(call, listing, ports))
    _name_operation(call, ports)
    if call.key is None or not call.writes or not well_formed(call.key):
        return PASS
    ref = OperationRef(call.principal.tenant, call.principal.id, name, call.key)
    call.earlier = await ports.ledger.find(ref)
    if call.earlier is None:
        return PASS
    call.id = call.earlier.call_id
    if call.earlier.version != call.tool.contract.version:
        pinned = ports.catalog.exact(name, call.earlier.version)
        if pinned is None:
            return Refusal(Code.TOOL_NOT_FOUND, no_such_tool(name))
        call.version_problem = call.asked_as = None
        _take(call, pinned)
    return PASS


def _name_and_spec(call: Call) -> tuple[str, str | None]:
    name, _, version = call.proposal.tool.partition("@")
    return name, call.proposal.version or version or None


def _listing(call: Call, ports: Ports, name: str, spec: str | None) -> Listing | None:
    problem = None
    try:
        found = ports.catalog.find(name, spec)
    except ValueError as error:  # a version that cannot be read
        found, problem = None, str(error)
    if found is not None or spec is None:
        return found
    stand_in = ports.catalog.find(name, None)  # to decide whether the caller may be told
    if stand_in is not None:
        call.version_problem = problem or f"no usable version of {name!r} answers {spec!r}"
    return stand_in


def _successor(call: Call, listing: Listing, ports: Ports) -> Listing:
    """A version past its end hands its calls over, where its contract says how; REG-6."""
    moved = listing.tool.migration
    if moved is None or listing.status is not ToolStatus.SUNSET:
        return listing
    name = listing.tool.contract.tool
    heir = ports.catalog.exact(name, moved.to)
    if heir is None or heir.status in (ToolStatus.SUNSET, ToolStatus.REVOKED):
        return listing
    call.asked_as = listing.tool
    call.warnings.append(f"{name}@{listing.tool.contract.version} is sunset; translated to {moved.to}")
    return heir


def _take(call: Call, listing: Listing) -> None:
    call.tool, call.status, call.upstream = listing.tool, listing.status, listing.upstream
    timeout = listing.tool.contract.runtime.timeout_s
    last = call.started + timeout
    if last < call.deadline:
        call.deadline = last


def _name_operation(call: Call, ports: Ports) -> None:
    """The caller's key, else one derived from its (task, step), else the protocol's; IDM-1."""
    proposal, contract = call.proposal, call.tool.contract
    if proposal.key is not None:
        call.key, call.key_source = proposal.key, _CALLER
    elif proposal.task is not None and proposal.step is not None:
        parts = (call.principal.id, proposal.task, proposal.step, contract.tool)
        call.key, call.key_source = ports.secrets.derive_key(call.principal.tenant, parts), KeySource.DERIVED
    elif proposal.request_key is not None:
        call.key, call.key_source = proposal.request_key, _REQUEST
    elif contract.effect is _EPHEMERAL:
        call.key, call.key_source = call.nonce, _REQUEST
