"""Holdfast: a governed gateway between AI agents and their tools.

The public names, and nothing else. They are loaded when they are first used: a module
of tools needs no gateway.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_HOMES = {
    "holdfast.gateway": ("Gateway",),
    "holdfast.model.call": ("Principal",),
    "holdfast.model.errors": ("Code", "HoldfastError", "NoEffect"),
    "holdfast.model.function": ("tool",),
    "holdfast.model.invocation": ("Invocation",),
    "holdfast.model.observation": ("Observation", "Status"),
    "holdfast.model.vocabulary": ("Effect", "Floor", "Reach", "TimeoutClass", "Undo"),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(home), name)
            return value
    raise AttributeError(f"module 'holdfast' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
