"""How long may a server take to stop?"""

from dataclasses import dataclass

MARGIN_S = 10.0
"""For what comes after the last answer: outcomes are written, the log is signed, upstreams are closed."""


@dataclass(frozen=True, slots=True)
class Patience:
    notice_s: float = 0.0
    """Everything goes on, but `/ready` says no: a load balancer needs a moment to see it."""
    grace_s: float = 10.0
    """No new connections; what is under way may finish."""

    @property
    def whole_s(self) -> float:
        """Who has not stopped by then is stuck."""
        return self.notice_s + self.grace_s + MARGIN_S
