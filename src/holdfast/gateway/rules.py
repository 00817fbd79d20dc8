"""How do people say yes once for many calls of a kind? APR-9.

A rule is proposed by a person and accepted like any question, by as many people of the roles it stands for.
Nobody accepts one for their own calls, but for their own consent. It ends by time, by use, or at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from secrets import token_hex
from typing import Any

from holdfast.approvals import answers, history
from holdfast.approvals.about import about
from holdfast.approvals.history import Fatigue, Proof, Proposed
from holdfast.gates.approval import lacking, unasked
from holdfast.gateway.operators import operates
from holdfast.model import defaults
from holdfast.model.approval import NEEDS, Approval, Need
from holdfast.model.call import Principal
from holdfast.model.constraint import Constraint, faults, reveals, told
from holdfast.model.errors import Forbidden, HoldfastError, NotFound
from holdfast.model.moment import iso
from holdfast.model.quoted import Marks, quoted
from holdfast.model.scopes import covers_all
from holdfast.model.standing import ANYBODY, RULE, Rule, is_pattern, user_of
from holdfast.model.vocabulary import Floor
from holdfast.ports import Listing, Ports, Rules

AGENT = "any"
"""Whose question it is, beside the person it is about; no real agent."""
UNSEEN = ("secret", "credential")
BACK_S = 30 * 86_400.0
"""How far back the proof in a packet looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A rule somebody wants."""

    tool: str
    principals: str
    arguments: Mapping[str, Constraint] = field(default_factory=dict)
    need: Need | None = None
    """Whose approval it stands for; the contract's floor, and at least an operator, when left out."""
    life_s: float = defaults.RULE_S
    most: int | None = None
    note: str = ""


class RuleDesk:
    def __init__(self, rules: Rules, ports: Ports) -> None:
        self._rules = rules
        self._ports = ports

    async def propose(self, by: Principal, wish: Wish) -> Rule:
        """Ask people whether a rule may stand."""
        self._may_propose(by, wish)
        listing = self._listing(by, wish)
        _refuse_unless_sound(wish, listing)
        ports, now, rule_id = self._ports, self._ports.clock.now(), f"rul_{token_hex(8)}"
        contract = listing.tool.contract
        need = dict(wish.need or NEEDS[contract.security.approval_floor] or NEEDS[Floor.OPERATOR])
        asker = Principal(tenant=by.tenant, user=user_of(wish.principals), agent=AGENT)
        if "user" in need and asker.user == ANYBODY:
            raise HoldfastError("a rule that stands for a person's own consent is for one person: name them")
        bound = (wish.tool, listing.upstream, contract.digest, wish.principals, wish.arguments, need)
        question = about(RULE, rule_id, asker, list(bound), ports)
        missing = lacking(question, need, ports) or await unasked(ports)
        if missing is not None:
            raise HoldfastError(missing.message)
        seen = await self._proof(by.tenant, contract.digest, wish)
        packet = _packet(by, wish, listing, need, seen, now, question.trace_id)
        asked = await ports.approvals.ask(question, need, packet)
        rule = Rule(
            tenant=by.tenant,
            id=rule_id,
            tool=wish.tool,
            upstream=listing.upstream,
            contract_digest=contract.digest,
            principals=wish.principals,
            arguments=wish.arguments,
            need=need,
            made_by=by.user,
            note=wish.note,
            at=now,
            expires_at=now + wish.life_s,
            approval_id=asked.id,
            most=wish.most,
        )
        await self._rules.add(rule)
        return rule

    async def accept(self, by: Principal, rule_id: str, note: str = "") -> tuple[Rule, Approval]:
        """Say yes to a rule; it stands once as many have as it stands for."""
        found = await self._known(by, rule_id)
        answered = await answers.decide(by, found.approval_id, True, note, self._ports)
        self._ports.telemetry.decided(answered)
        return replace(found, answer=answered.answer, votes=answered.votes), answered

    async def revoke(self, by: Principal, rule_id: str, note: str = "") -> Rule:
        """End a rule at once, in every process."""
        found = await self.get(by, rule_id)
        its_own = {found.made_by, user_of(found.principals), *(vote.person for vote in found.votes)}
        if not (operates(by, self._ports.people) or ("user" in by.roles and by.user in its_own)):
            raise Forbidden(f"{by.user!r} may not end rule {rule_id!r}; this needs the role 'operator'")
        if not await self._rules.revoke(by.tenant, rule_id, by.user, note):
            raise HoldfastError(f"rule {rule_id!r} has ended already")
        return replace(found, ended_at=self._ports.clock.now(), ended_by=by.user)

    async def list(self, by: Principal) -> Sequence[Rule]:
        return [rule for rule in await self._rules.list(by.tenant) if self._may_see(by, rule)]

    async def get(self, by: Principal, rule_id: str) -> Rule:
        found = await self._known(by, rule_id)
        if not self._may_see(by, found):
            raise NotFound(f"no rule {rule_id!r} is yours to see")
        return found

    async def proposals(
        self, by: Principal, since: float, tool: str | None = None, most: int = 10**9
    ) -> tuple[Sequence[Proposed], Fatigue]:
        """Rules that the answers since a time suggest, and how tired people are of answering.

        With `most` by the newest answers only; all that a rule would have let through is told on asking.
        """
        if not operates(by, self._ports.people):
            raise Forbidden(f"{by.user!r} is no operator here; this needs the role 'operator'")
        past = await self._rules.history(by.tenant, since, most)
        digests = {
            listing.tool.contract.tool: listing.tool.contract.digest
            for listing in self._ports.catalog.list()
            if tool is None or listing.tool.contract.tool == tool
        }
        return history.proposals(past, digests), history.fatigue(past)

    # --- who may, and what ----------------------------------------------------------------

    async def _known(self, by: Principal, rule_id: str) -> Rule:
        found = await self._rules.get(by.tenant, rule_id)
        if found is None:
            raise NotFound(f"there is no rule {rule_id!r} here")
        return found

    def _may_see(self, by: Principal, rule: Rule) -> bool:
        about_me = user_of(rule.principals) in (by.user, ANYBODY)
        return about_me or bool(by.roles & set(rule.need)) or operates(by, self._ports.people)

    def _may_propose(self, by: Principal, wish: Wish) -> None:
        own = "user" in by.roles and user_of(wish.principals) == by.user
        if not (own or operates(by, self._ports.people)):
            raise Forbidden(f"{by.user!r} may not propose this rule; an operator or the person it is for may")

    def _listing(self, by: Principal, wish: Wish) -> Listing:
        found = self._ports.catalog.find(wish.tool, None)
        if found is None or not covers_all(by.scopes, found.tool.contract.security.required_scopes):
            raise NotFound(f"there is no tool {wish.tool!r} that you may use")
        return found

    async def _proof(self, tenant: str, contract_digest: str, wish: Wish) -> Proof:
        past = await self._rules.history(tenant, self._ports.clock.now() - BACK_S)
        return history.proof(past, wish.tool, contract_digest, wish.principals, wish.arguments)


def _refuse_unless_sound(wish: Wish, listing: Listing) -> None:
    if not is_pattern(wish.principals):
        raise HoldfastError(f"{wish.principals!r} names nobody; write user/agent, with '*' for any of them")
    if not 0 < wish.life_s <= defaults.MOST_RULE_S:
        raise HoldfastError(f"a rule lives at most {defaults.MOST_RULE_S / 86_400:g} days; give it an end")
    if wish.most is not None and wish.most < 1:
        raise HoldfastError("a rule that is used at most 0 times covers nothing; give 'most' at least 1")
    if wish.need is not None and not all(type(n) is int and n > 0 for n in wish.need.values()):
        raise HoldfastError("'need' says how many people of which role: {'operator': 1}")
    known = listing.tool.contract.affordance.input_schema.get("properties", {})
    for name, constraint in wish.arguments.items():
        if name not in known:
            takes = ", ".join(known)
            raise HoldfastError(f"{wish.tool!r} takes no argument {name[:64]!r}; it takes: {takes}")
        if (wrong := faults(constraint)) is not None:
            raise HoldfastError(f"argument {name!r}: {wrong}")
        if reveals(constraint) and listing.tool.input.sensitivity.label((name,)) in UNSEEN:
            text = f"argument {name!r} is shown to nobody; only 'any' or 'longest' may stand there"
            raise HoldfastError(text)


def _packet(
    by: Principal, wish: Wish, listing: Listing, need: Need, seen: Proof, now: float, trace_id: str
) -> dict[str, Any]:
    """What people agree to, in words and in the form that is checked."""
    contract = listing.tool.contract
    most = "any number of" if wish.most is None else f"at most {wish.most}"
    until, marks = iso(now + wish.life_s), Marks()
    says = {name: told(constraint) for name, constraint in wish.arguments.items()}
    return {
        "action": f"a standing rule for {contract.tool}@{contract.version}",
        "consequence": f"{most} calls like these are made without asking again, until {until}",
        "arguments": quoted(dict(wish.arguments), marks, ("arguments",)),
        "says": quoted(says, marks, ("says",)),
        "agent_written": marks.written,
        "hidden_characters": marks.hidden,
        "shortened": marks.shortened,
        "for": wish.principals,
        "proof": {name: list(ids) for name, ids in asdict(seen).items()},
        "effects": [entry.model_dump(mode="json") for entry in contract.transactional.manifest],
        "evidence": (
            f"of past questions it would have answered {len(seen.approved)} that were approved,"
            f" {len(seen.denied)} that were denied and {len(seen.unanswered)} that nobody answered"
        ),
        "contract_digest": contract.digest,
        "risk_class": contract.effect.value,
        "undo": contract.transactional.undo.value,
        "need": dict(need),
        "requested_by": {"user": by.user, "agent": by.agent, "tenant": by.tenant, "trust": by.trust},
        "note": wish.note,
        "most": wish.most,
        "until": until,
        "asked_at": iso(now),
        "if_rejected": "every such call is asked about, as before",
        "trace_id": trace_id,
    }
