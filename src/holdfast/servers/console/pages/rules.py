"""*Rules and plans*: what was agreed to once for many calls, and what does the past suggest?"""

from dataclasses import dataclass
from hashlib import sha256

import orjson
from starlette.responses import Response

from holdfast.approvals.history import Fatigue, Proposed
from holdfast.gateway.rules import BACK_S, Wish
from holdfast.model import defaults
from holdfast.model.constraint import told
from holdfast.model.standing import Rule
from holdfast.servers.answers import TransportError
from holdfast.servers.console.look import Look
from holdfast.servers.console.pages.plans import PlanShown, plans
from holdfast.servers.console.question import counted, cut

LIVES = {"1": "1 day", "7": "7 days", "30": "30 days", "90": "90 days"}
"""For how many days a proposed rule can be asked for."""
MOST_PROOF = 30
MOST_RULES = 200
MOST_ANSWERS = 200
"""Past answers that are looked through for a page: each of them is unsealed for it."""
LONGEST_NOTE = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleShown:
    rule: Rule
    state: str
    says: tuple[tuple[str, str], ...]
    need: str
    may_end: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalShown:
    proposed: Proposed
    name: str
    """Another one when anything of it is."""
    says: tuple[tuple[str, str], ...]
    need: str
    proof: tuple[str, ...]
    more: int


async def page(look: Look) -> Response:
    """GET /rules"""
    operates = look.gateway.operates(look.principal)
    found = await look.gateway.rules.list(look.principal)
    suggested, tired = await _suggested(look) if operates else ([], None)
    mine: list[PlanShown] = await plans(look)
    return await look.page(
        "rules.html",
        rules=[_rule(look, rule) for rule in found[:MOST_RULES]],
        proposals=[_proposal(one) for one in suggested],
        tired=tired,
        quick_s=defaults.QUICK_ANSWER_S,
        days=round(BACK_S / 86_400),
        most=MOST_ANSWERS,
        lives=LIVES,
        plans=mine,
        operates=operates,
    )


async def ask(look: Look) -> Response:
    """POST /rules/ask: put a rule that the past suggests to people"""
    form = await look.form()
    suggested, _ = await look.gateway.rules.proposals(look.principal, _since(look), most=MOST_ANSWERS)
    wanted = next((one for one in suggested if _name(one) == form.get("proposal")), None)
    if wanted is None:
        raise TransportError(
            409, "the past suggests another rule by now, so nobody was asked", "look at the proposals again"
        )
    days = form.get("days", "30")
    wish = Wish(
        tool=wanted.tool,
        principals=wanted.principals,
        arguments=wanted.arguments,
        need=wanted.need,
        most=wanted.most,
        life_s=86_400.0 * int(days if days in LIVES else "30"),
        note=form.get("note").strip()[:LONGEST_NOTE],
    )
    rule = await look.gateway.rules.propose(look.principal, wish)
    return look.see_other(f"/approvals/{rule.approval_id}", "asked")


async def revoke(look: Look) -> Response:
    """POST /rules/{id}/revoke"""
    form = await look.form()
    note = form.get("note").strip()[:LONGEST_NOTE]
    await look.gateway.rules.revoke(look.principal, look.request.path_params["id"], note)
    return look.see_other("/rules", "revoked")


async def _suggested(look: Look) -> tuple[list[Proposed], Fatigue]:
    found, tired = await look.gateway.rules.proposals(look.principal, _since(look), most=MOST_ANSWERS)
    return list(found), tired


def _since(look: Look) -> float:
    return look.gateway.identity.now() - BACK_S


def _rule(look: Look, rule: Rule) -> RuleShown:
    now = look.gateway.identity.now()
    by = look.principal
    own = "user" in by.roles and by.user in {rule.made_by, *(vote.person for vote in rule.votes)}
    return RuleShown(
        rule=rule,
        state=rule.state(now),
        says=_says(rule.arguments),
        need=", ".join(counted(rule.need)),
        may_end=rule.ended_at is None and (own or look.gateway.operates(by)),
    )


def _proposal(one: Proposed) -> ProposalShown:
    proof = one.proof.approved
    return ProposalShown(
        proposed=one,
        name=_name(one),
        says=_says(one.arguments),
        need=", ".join(counted(one.need)),
        proof=proof[:MOST_PROOF],
        more=max(0, len(proof) - MOST_PROOF),
    )


def _says(arguments: object) -> tuple[tuple[str, str], ...]:
    """Constraints in words; what is in them was written by agents once."""
    if not isinstance(arguments, dict):
        return ()
    return tuple((cut(name, 80), cut(told(constraint), 300)) for name, constraint in arguments.items())


def _name(one: Proposed) -> str:
    said = [one.tool, one.contract_digest, one.principals, one.arguments, one.need, one.most]
    return sha256(orjson.dumps(said, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]
