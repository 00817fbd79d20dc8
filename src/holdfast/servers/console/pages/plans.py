"""Plans: which of the calls that were approved together were made, and which are open or changed since?"""

from dataclasses import dataclass

from starlette.responses import Response

from holdfast.model.standing import Plan, Step
from holdfast.servers.console.look import Look
from holdfast.servers.console.question import counted

MOST_PLANS = 50
LONGEST_NOTE = 2000


@dataclass(frozen=True, slots=True)
class StepShown:
    step: Step
    state: str
    """`used`, `open`, `drifted` where the tool is not what was approved any more, or `over`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanShown:
    plan: Plan
    state: str
    steps: tuple[StepShown, ...]
    need: str

    @property
    def used(self) -> int:
        return sum(one.state == "used" for one in self.steps)

    @property
    def may_end(self) -> bool:
        return self.state in ("live", "proposed")


async def plans(look: Look) -> list[PlanShown]:
    """Newest first; those that are over are told too."""
    found = await look.gateway.plans.list(look.principal)
    return [_plan(look, plan) for plan in found[:MOST_PLANS]]


async def page(look: Look) -> Response:
    """GET /plans/{id}"""
    plan = await look.gateway.plans.get(look.principal, look.request.path_params["id"])
    return await look.page("plan.html", shown=_plan(look, plan))


async def revoke(look: Look) -> Response:
    """POST /plans/{id}/revoke"""
    form = await look.form()
    note = form.get("note").strip()[:LONGEST_NOTE]
    await look.gateway.plans.revoke(look.principal, look.request.path_params["id"], note)
    return look.see_other("/rules", "revoked")


def _plan(look: Look, plan: Plan) -> PlanShown:
    state = plan.state(look.gateway.identity.now())
    digests = {
        listing.tool.contract.tool: listing.tool.contract.digest
        for listing in look.gateway.catalog(look.principal)
    }
    return PlanShown(
        plan=plan,
        state=state,
        steps=tuple(StepShown(step, _state(step, state, digests)) for step in plan.steps),
        need=", ".join(counted(plan.need)),
    )


def _state(step: Step, plan: str, digests: dict[str, str]) -> str:
    if step.used_nonce is not None:
        return "used"
    if plan not in ("live", "proposed"):
        return "over"
    return "open" if digests.get(step.tool) == step.contract_digest else "drifted"
