"""What is allowed, decided outside the model. Default deny."""

from holdfast.policy.bundle import BadBundle, Bundle, Problem, load, starter
from holdfast.policy.cedar import CedarPolicy
from holdfast.policy.check import Report, check
from holdfast.policy.deny_all import DenyAll

__all__ = [
    "BadBundle",
    "Bundle",
    "CedarPolicy",
    "DenyAll",
    "Problem",
    "Report",
    "check",
    "load",
    "starter",
]
