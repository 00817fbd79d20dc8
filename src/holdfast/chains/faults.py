"""What is wrong with a chain, and where?"""

from dataclasses import dataclass, field

from holdfast.chains.declared import Place


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    place: str
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}" if self.place else self.text


@dataclass(slots=True)
class Findings:
    """Everything at once: whoever mends one thing sees the next as well."""

    faults: list[Fault] = field(default_factory=list)
    notes: list[Fault] = field(default_factory=list)
    """What cannot be proven now and is looked at when the chain runs."""

    def wrong(self, place: Place, text: str) -> None:
        self.faults.append(Fault(shown(place), text))

    def unsure(self, place: Place, text: str) -> None:
        self.notes.append(Fault(shown(place), text))


def shown(place: Place) -> str:
    """`steps[2].with.order_id`"""
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
