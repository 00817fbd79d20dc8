"""At which level of its capability is a call made, and what was tried before? EXE-4.

A capability is a name for what several tools can do: the first of them is asked, and the next one where that
cannot answer. Only the gateway says where a proposal stands.
"""

from dataclasses import dataclass
from typing import Any

from holdfast.model.errors import Code


@dataclass(frozen=True, slots=True)
class Tried:
    """A tool that did not answer, or was not even asked."""

    tool: str
    code: Code | None
    """None for one that was passed over."""
    message: str
    call_id: str | None = None

    def told(self) -> dict[str, Any]:
        said: dict[str, Any] = {"tool": self.tool}
        said |= {"skipped": True} if self.code is None else {"code": self.code.value}
        said["message"] = self.message
        return said if self.call_id is None else said | {"call_id": self.call_id}


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a proposal stands in its capability."""

    capability: str
    level: int
    """0 for the tool that was asked for; the number of tools once none of them answered."""
    decrement: float = 0.0
    """How much less its answer is to be believed than that of the first."""
    tried: tuple[Tried, ...] = ()
    stale: bool = False
    """To be answered with what the first tool said once."""
    escalated: bool = False
    """To be answered by a person: none of the tools could."""
    asked: str = ""
    """The fingerprint of what the first tool was asked: not all of it may be said to this one."""

    @property
    def confidence(self) -> float:
        return round(1.0 - self.decrement, 6)

    def told(self) -> dict[str, Any] | None:
        """For the caller; None where the first tool answered as if there were no other."""
        if not (self.level or self.tried):
            return None
        return {
            "capability": self.capability,
            "level": self.level,
            "confidence_decrement": self.decrement,
            "tried": [one.told() for one in self.tried],
        }

    def kept(self) -> dict[str, Any] | None:
        """For the ledger."""
        said = self.told()
        return None if said is None else said | {"asked": self.asked}

    @classmethod
    def read(cls, said: dict[str, Any]) -> "Standing":
        """From what `kept` wrote."""
        return cls(
            capability=said["capability"],
            level=said["level"],
            decrement=said["confidence_decrement"],
            tried=tuple(_tried(one) for one in said["tried"]),
            asked=said.get("asked", ""),
        )


def _tried(said: dict[str, Any]) -> Tried:
    code = said.get("code")
    return Tried(said["tool"], None if code is None else Code(code), said["message"], said.get("call_id"))
