"""Holdfast: a governed gateway between AI agents and their tools."""

from holdfast.gateway import Gateway
from holdfast.model.call import Principal
from holdfast.model.errors import Code, HoldfastError, NoEffect
from holdfast.model.function import tool
from holdfast.model.invocation import Invocation
from holdfast.model.observation import Observation, Status
from holdfast.model.vocabulary import Effect, Floor, Reach, TimeoutClass, Undo

__all__ = [
    "Code",
    "Effect",
    "Floor",
    "Gateway",
    "HoldfastError",
    "Invocation",
    "NoEffect",
    "Observation",
    "Principal",
    "Reach",
    "Status",
    "TimeoutClass",
    "Undo",
    "tool",
]
