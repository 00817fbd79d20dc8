"""Which steps of a chain can people be asked about before the first of them runs? APR-8."""

from typing import Any

from holdfast.chains.declared import Chain, steps, transactions
from holdfast.chains.shapes import paths_in
from holdfast.chains.values import Missing, filled
from holdfast.gateway.plans import Wish


def steps_known(chain: Chain, given: Any) -> list[Wish]:
    """Those whose arguments follow from the input alone. A step that may be run several times asks for itself
    each time, and so does a tool that stands in for another, and what is done in a transaction: its session
    is not known yet.
    """
    found = []
    later = {step.id for node in transactions(chain.body) for step in steps(node.body)}
    for step in steps(chain.body, repeated=False):
        if step.id in later or not paths_in(step.arguments) <= {"input"}:
            continue
        try:
            arguments = filled(step.arguments, {"input": given}, (*step.place, "with"))
        except Missing:  # the run will say so
            continue
        found.append(Wish(tool=step.tool, arguments=arguments, version=step.version))
    return found
