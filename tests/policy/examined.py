"""A bundle as `holdfast policy check` looks at it, over the bank's tools."""

from typing import Any

from holdfast.catalog.adapt import offers
from holdfast.catalog.catalog import MemoryCatalog
from holdfast.model.function import FunctionTool
from holdfast.model.vocabulary import Environment
from holdfast.policy import CedarPolicy
from holdfast.policy.examine import Examination, examine
from holdfast.system import RandomIds
from tests.policy.bank import TOOLS
from tests.policy.case import bundle_of


def built(text: str, *more: FunctionTool[..., Any], upstream: str = "bank") -> CedarPolicy:
    catalog = MemoryCatalog()
    catalog.register(offers(upstream, (*TOOLS, *more)))
    policy = CedarPolicy(bundle_of(text), catalog, RandomIds())
    assert policy.report.problems == ()
    return policy


def examined(text: str, *more: FunctionTool[..., Any]) -> Examination:
    return examine(built(text, *more), Environment.DEV)


def found(text: str, *more: FunctionTool[..., Any]) -> list[tuple[str, str, str]]:
    """Kind, policy and the other one of everything that was found."""
    return [(one.kind, one.policy, one.with_) for one in examined(text, *more).findings]
