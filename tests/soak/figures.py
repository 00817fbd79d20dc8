"""What came of a storm, and what must be true of it?"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any


@dataclass(kw_only=True)
class Figures:
    """Counted by the harness while it storms; everything below the line is read at the end."""

    keys: int = 0
    deliveries: int = 0
    requests: int = 0
    lost_answers: int = 0
    told: Counter[str] = field(default_factory=Counter)
    """Final answers, by status."""
    done: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Every different `data` that was told as done, by key."""
    surprises: list[str] = field(default_factory=list)
    """Answers that nothing in this storm can explain."""
    kills: int = 0
    kills_in_flight: int = 0
    """Kills that hit at least one call between claim and outcome."""
    calls_killed: int = 0
    """Calls that were between claim and outcome when their worker was killed."""
    stops: int = 0
    calls_stopped: int = 0
    stops_in_transaction: int = 0
    """Stops that left the write lock of the database with the stopped worker."""
    blackouts: int = 0
    """Stops of the database itself."""
    recoveries_cut: int = 0
    """Stops in the middle of its recovery."""
    calls_cut: int = 0
    """Calls between claim and outcome when the database was stopped."""
    stuck: int = 0
    """Most operations seen running longer than five seconds after their lease, at any look."""
    seconds: float = 0.0
    # ----------------------------------------------------------------------
    effects: Counter[str] = field(default_factory=Counter)
    states: dict[str, Counter[str]] = field(default_factory=dict)
    """How the ledger ended, by tool."""
    committed: set[str] = field(default_factory=set)
    without_effect: set[str] = field(default_factory=set)
    intents: set[str] = field(default_factory=set)
    why_unknown: Counter[str] = field(default_factory=Counter)
    """Who gave them up and why; nothing where the worker that ran it said so itself."""
    broken_chains: list[tuple[Any, ...]] = field(default_factory=list)
    writers: set[str] = field(default_factory=set)
    """Workers that wrote to the log."""

    def wrong(self) -> dict[str, object]:
        """What must never be, whatever was done to the gateways."""
        seen: dict[str, object] = {
            "two effects": self.twice,
            "told done without an effect": self.done_without_effect,
            "acknowledgements lost": self.acknowledgements_lost,
            "effects denied": self.effect_denied,
            "unequal answers": self.unequal_answers,
            "unrecorded": self.unrecorded,
            "surprises": self.surprises,
            "broken chains": self.broken_chains,
            "stuck": self.stuck,
        }
        return {name: what for name, what in seen.items() if what}

    @property
    def twice(self) -> list[str]:
        return [key for key, count in self.effects.items() if count > 1]

    @property
    def done_without_effect(self) -> list[str]:
        told_or_written = self.done.keys() | self.committed
        return [key for key in told_or_written if not self.effects[key]]

    @property
    def acknowledgements_lost(self) -> list[str]:
        """Keys that were told as done and are something else in the ledger."""
        return [key for key in self.done if key not in self.committed]

    @property
    def effect_denied(self) -> list[str]:
        """Keys the ledger calls free although their effect happened."""
        return [key for key in self.without_effect if self.effects[key]]

    @property
    def unequal_answers(self) -> list[str]:
        return [key for key, answers in self.done.items() if len(answers) > 1]

    @property
    def unrecorded(self) -> list[str]:
        """Effects of which the audit knows nothing."""
        return [key for key in self.effects if key not in self.intents]

    def uncertain(self, tool: str) -> int:
        return self.states[tool]["unknown"]

    @property
    def given_up(self) -> int:
        """Operations whose worker was thought to be dead or silent."""
        return self.why_unknown.total() - self.why_unknown[""]

    def table(self) -> str:
        states = {f"ledger of {tool}": dict(counts) for tool, counts in sorted(self.states.items())}
        figures = {
            "keys x deliveries": f"{self.keys} ({self.deliveries} deliveries, {self.requests} requests)",
            "answers lost on the way": self.lost_answers,
            "told": dict(self.told),
            "kill -9": f"{self.kills}, {self.kills_in_flight} of them between claim and outcome",
            "calls between claim and outcome then": self.calls_killed,
            "stopped and woken": f"{self.stops}, {self.stops_in_transaction} of them in a transaction",
            "calls between claim and outcome at stops": self.calls_stopped,
            "database stopped": f"{self.blackouts}, and {self.recoveries_cut} times in its recovery",
            "calls between claim and outcome at that": self.calls_cut,
            **states,
            "unknown because": dict(self.why_unknown),
            "effects": self.effects.total(),
            "keys with two effects": len(self.twice),
            "done without effect": len(self.done_without_effect),
            "stuck beyond lease + 5 s": self.stuck,
            "seconds": f"{self.seconds:.1f} ({self.requests / max(self.seconds, 1):.0f} requests/s)",
        }
        return "\n".join(f"{name:>42}  {value}" for name, value in figures.items())
