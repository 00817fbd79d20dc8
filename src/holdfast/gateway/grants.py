"""Who holds which scopes for a while, given by whom? AUT-4, AUT-8.

A grant adds to what the configuration gives a person, for a time; it never crosses what an agent, a key or a
token is limited to, nor a tenant. Operators give them, to others. Whoever needs more than they hold asks for
an elevation: people approve it as they approve a call, and with their yes the grant begins.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from secrets import token_hex

from holdfast.approvals.about import about
from holdfast.gates.approval import lacking, unasked
from holdfast.gateway.access import Access
from holdfast.gateway.auditing import DAY_S
from holdfast.gateway.operators import operates
from holdfast.identity import Identity
from holdfast.identity.grants import narrowed
from holdfast.identity.standing import IN_PERSON, LOCAL_AGENT
from holdfast.model import defaults
from holdfast.model import scopes as patterns
from holdfast.model.access import ELEVATION, WAITING, AccessGrant
from holdfast.model.approval import NEEDS
from holdfast.model.call import Call, Principal
from holdfast.model.errors import Forbidden, HoldfastError, NotFound, TooManyAsks
from holdfast.model.moment import iso
from holdfast.model.observation import ApprovalRef
from holdfast.model.quoted import Marks, quoted
from holdfast.model.scopes import covers
from holdfast.model.vocabulary import Effect, Floor, Undo
from holdfast.ports import Ports

NEED = NEEDS[Floor.OPERATOR]
"""Who must say yes to an elevation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Elevation:
    """What was asked for, and where the answer will be found."""

    grant: AccessGrant
    approval: ApprovalRef
    message: str


class Grants:
    def __init__(self, access: Access, identity: Identity, ports: Ports) -> None:
        self._access = access
        self._identity = identity
        self._ports = ports

    async def give(
        self,
        by: Principal,
        person: str,
        scope: str,
        *,
        agent: str | None = None,
        life_s: float = defaults.GRANT_S,
        note: str = "",
        renew: bool = False,
    ) -> AccessGrant:
        """Let somebody hold a scope for a while; felt at once here, and in a second everywhere."""
        if not operates(by, self._identity):
            raise Forbidden(f"{by.user!r} is no operator here; giving grants needs the role 'operator'")
        if person == by.user and "operator" in by.roles:
            raise Forbidden("nobody gives themselves a grant; ask for an elevation, which another approves")
        self._check_person(by, person)
        _check(scope, life_s, defaults.GRANT_MOST_S)
        if renew and life_s < 2 * defaults.GRANT_REFRESH_S:
            least = 2 * defaults.GRANT_REFRESH_S
            raise HoldfastError(f"a grant that is renewed lasts {least:g} s at least; give a longer --for")
        now = self._ports.clock.now()
        grant = AccessGrant(
            tenant=by.tenant,
            id=_new_id(),
            person=person,
            agent=agent,
            scope=scope,
            granted_by=by.user,
            note=note,
            at=now,
            expires_at=now + life_s,
            life_s=life_s,
            renewed=renew,
        )
        await self._access.kept.add_grant(grant)
        await self._access.follow()
        return grant

    async def list(self, by: Principal) -> Sequence[AccessGrant]:
        """Newest first: everybody's for an operator, else one's own."""
        found = await self._access.kept.grants(by.tenant)
        return [grant for grant in found if grant.person == by.user or operates(by, self._identity)]

    async def revoke(self, by: Principal, id: str, note: str = "") -> AccessGrant:
        """Take a grant back, at once in every process; one's own too."""
        wanted = id.removeprefix("grant:")
        found = next((grant for grant in await self.list(by) if grant.id == wanted), None)
        if found is None or not self._may_end(by, found):
            raise NotFound(f"there is no grant {wanted!r} here that is yours to revoke")
        until = max(found.expires_at, self._ports.clock.now())
        await self._access.take_back(by, found.name, note, until)
        return next(grant for grant in await self.list(by) if grant.id == wanted)

    async def elevate(
        self, by: Principal, scope: str, reason: str, life_s: float = defaults.GRANT_S
    ) -> Elevation:
        """Ask people for a scope that `by` does not hold; the same question is asked once."""
        _check(scope, life_s, defaults.ELEVATION_MOST_S)
        if not reason.strip():
            raise HoldfastError("say why you need it: people decide by the reason")
        if covers(by.scopes, scope):
            raise HoldfastError(f"you hold {scope!r} already")
        self._check_limits(by, scope)
        if (wait_ms := self._ports.ingress.admit(by)) is not None:
            raise HoldfastError(f"too many proposals at once; wait {wait_ms} ms, then ask again")
        said = [scope, life_s, reason]
        call = about(ELEVATION, _new_id(), by, said, self._ports)
        standing = await self._standing(call)
        if standing is not None:
            return standing
        missing = lacking(call, NEED, self._ports) or await unasked(self._ports)
        if missing is not None:
            raise Forbidden(missing.message)
        return await self._ask(by, call, scope, reason, life_s)

    # --- parts ----------------------------------------------------------------------------

    async def _ask(self, by: Principal, call: Call, scope: str, reason: str, life_s: float) -> Elevation:
        ports = self._ports
        grant = AccessGrant(
            tenant=by.tenant,
            id=call.key or "",
            person=by.user,
            agent=by.agent,
            scope=scope,
            granted_by="",
            note=reason,
            at=ports.clock.now(),
            expires_at=WAITING,
            life_s=life_s,
        )
        await self._access.kept.add_grant(grant)  # first: an answer finds what it answers
        asked = await ports.approvals.ask(call, NEED, _packet(call, grant, ports))
        return Elevation(grant=grant, approval=asked.shown(ports.asked_at), message=_waits(asked.id, scope))

    async def _standing(self, call: Call) -> Elevation | None:
        """The open question about the very same, where there is one."""
        by = call.principal
        opened = [
            asked for asked in await self._ports.approvals.open(by.tenant) if asked.ref.principal == by.id
        ]
        for asked in opened:
            if asked.ref.tool == ELEVATION and asked.fingerprint == call.fingerprint:
                grants = await self._access.kept.grants(by.tenant)
                grant = next(grant for grant in grants if grant.id == asked.ref.key)
                shown = asked.shown(self._ports.asked_at)
                return Elevation(grant=grant, approval=shown, message=_waits(asked.id, grant.scope))
        if len(opened) >= defaults.OPEN_ASKS:  # before anything is written down for it
            raise TooManyAsks(f"{by.id!r} has {len(opened)} open questions; wait until some are answered")
        return None

    def _check_person(self, by: Principal, person: str) -> None:
        """Somebody of the same tenant; whom only an issuer knows is taken at their name."""
        listed = self._identity.person_of(person, by.tenant)
        unlisted = person in self._identity.holders(by.tenant, "user")
        if not unlisted and (listed is None or listed.tenant != by.tenant):
            raise NotFound(f"there is no person {person!r} here; add them under 'auth.people'")

    def _check_limits(self, by: Principal, scope: str) -> None:
        """A grant does not cross what an agent or a key is limited to: then nobody needs to be asked."""
        agent = self._identity.agents.get(by.agent)
        keys = [self._identity.keys.get(name.partition(":")[2]) for name in by.rests_on if name[:4] == "key:"]
        limits = [known.scopes for known in (agent, *keys) if known is not None and known.scopes is not None]
        if not narrowed(frozenset((scope,)), limits):
            raise Forbidden(
                f"{by.agent!r} is limited to other scopes than {scope!r}; that must be changed first"
            )

    def _may_end(self, by: Principal, grant: AccessGrant) -> bool:
        own = by.agent in (IN_PERSON, LOCAL_AGENT, grant.agent)
        return (by.user == grant.person and own) or operates(by, self._identity)


def _check(scope: str, life_s: float, most_s: float) -> None:
    if wrong := patterns.check(scope):
        raise HoldfastError(wrong)
    if not 1 <= life_s <= most_s:
        most = f"{most_s / 3600:g} hours" if most_s <= DAY_S else f"{most_s / DAY_S:g} days"
        raise HoldfastError(f"this lasts from one second to {most}; ask for a time within that")


def _packet(call: Call, grant: AccessGrant, ports: Ports) -> dict[str, object]:
    """What people see: as for a call, of something that is none."""
    marks, by, now = Marks(), call.principal, ports.clock.now()
    requested = {"user": by.user, "agent": quoted(by.agent, marks, ("requested_by", "agent"))}
    said = {"reason": quoted(grant.note, marks, ("arguments", "reason"))}
    minutes = f"{grant.life_s / 60:g} min"
    return {
        "action": "a scope for a while",
        "consequence": f"{by.user}, through {by.agent}, holds {grant.scope!r} for {minutes} from your yes on",
        "arguments": {"scope": grant.scope, "for_s": grant.life_s, **said},
        "task": None,
        "step": None,
        "key": grant.id,
        "requested_by": {**requested, "tenant": by.tenant, "trust": by.trust},
        "agent_written": marks.written,
        "hidden_characters": marks.hidden,
        "shortened": marks.shortened,
        "effects": [],
        "before": {"source": "identity", "state": {"scopes": sorted(by.scopes)}},
        "after": {"source": "identity", "state": {"scopes": sorted({*by.scopes, grant.scope})}},
        "evidence": "read when asked",
        "fingerprint": call.fingerprint,
        "contract_digest": call.tool.contract.digest,
        "risk_class": Effect.MEDIUM_RISK_WRITE.value,
        "risk": "medium",
        "why": ["whoever wants more than they hold asks an operator"],
        "need": dict(NEED),
        "floor": Floor.OPERATOR.value,
        "undo": Undo.EXACT.value,
        "rollback": {
            "status": "it can be taken back exactly",
            "plan": f"holdfast grants revoke {grant.id}",
            "compensation": None,
        },
        "cost": {"amount": 0.0, "currency": "USD", "unit": "call", "categories": []},
        "environment": call.proposal.environment.value,
        "asked_at": iso(now),
        "expires_at": iso(now + ports.approval_s),
        "if_rejected": "nothing changes",
        "if_unanswered": "the same, when the approval expires",
        "policy_decision_id": "",
        "policy_version": call.decision.version,
        "trace_id": call.trace_id,
        "call_id": call.id,
    }


def _waits(approval_id: str, scope: str) -> str:
    return f"waiting for an operator to approve {approval_id!r}; then {scope!r} is held"


def _new_id() -> str:
    return f"grn_{token_hex(8)}"
