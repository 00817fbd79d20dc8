"""What does an upstream's tool list add to the catalog, and what does it not?

Nothing is taken on silently. A new tool is trusted on first use with a conservative contract; a harmless
change is reported; a material one leaves the accepted contract in quarantine until somebody accepts the shown
difference. One bad tool never costs the others anything.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from holdfast.catalog.admission import Offer
from holdfast.catalog.imports.contract import placeholder
from holdfast.catalog.imports.drift import Drift
from holdfast.catalog.imports.intake import Intake, Taken, offer
from holdfast.catalog.imports.lock import Lock, accept
from holdfast.catalog.imports.overlay import Overlay
from holdfast.catalog.imports.sorting import sort
from holdfast.catalog.imports.together import stand_together
from holdfast.catalog.imports.versions import Recall, nothing
from holdfast.catalog.references import Known
from holdfast.model.vocabulary import ToolStatus

__all__ = ["Imported", "accept", "import_tools"]

Statuses = dict[tuple[str, str], ToolStatus]


@dataclass(frozen=True, slots=True)
class Imported:
    offers: list[Offer]
    """Every version of every tool that may be registered."""
    quarantined: dict[str, Drift | str]
    """By contract name: what changed, or why it waits."""
    reports: tuple[str, ...]
    lock: Lock
    """With what was seen and accepted now; save it."""
    statuses: Statuses
    """By tool and version, where it is not the contract's own; for `MemoryCatalog.replace`."""
    hidden: frozenset[str] = frozenset()
    """Contract names that are callable but not listed."""
    pinned: frozenset[str] = frozenset()
    """Contract names that are listed however long the list is."""


def import_tools(
    namespace: str,
    tools: Sequence[Any],
    *,
    overlay: Overlay,
    lock: Lock,
    trust_annotations: bool,
    now: str,
    plain: bool = False,
    known: Known | None = None,
    others: Collection[str] = (),
    unkept: Mapping[str, str] = MappingProxyType({}),
    recall: Recall = nothing,
) -> Imported:
    """`known` finds contracts of other upstreams, on which an overlay may rely; `others` are their tools.

    `unkept` are words for an egress that does not hold here, each with its reason. `recall` finds contracts
    that were made before, so that they need not be made again.
    """
    intake = Intake(namespace, overlay, lock, trust_annotations, now, others, recall)
    listed = sort(tools, lock.tools(namespace), plain=plain)
    intake.reports.extend(listed.reports)
    for native, descriptor in listed.sound.items():
        intake.take(native, descriptor, listed.doubts.get(native))
    for native, why in listed.twice.items():
        intake.hold(native, why)
    _hold_to_egress(intake, unkept)
    stand_together(intake, known or (lambda _: None))
    intake.report_steps()
    intake.reports.extend(overlay.unused([*listed.sound, *listed.twice]))
    offers, statuses = _offers(namespace, intake.taken.values())
    return Imported(
        offers=offers,
        quarantined={one.name: one.quarantine for one in intake.taken.values() if one.quarantine is not None},
        reports=tuple(intake.reports),
        lock=lock.having(namespace, intake.entries()),
        statuses=statuses,
        hidden=_saying("hidden", intake.taken.values()),
        pinned=_saying("pinned", intake.taken.values()),
    )


def _hold_to_egress(intake: Intake, unkept: Mapping[str, str]) -> None:
    """Refuse what states an egress that its upstream does not keep; POL-6."""
    for native, tool in list(intake.taken.items()):
        if (why := unkept.get(str(tool.stated.get("egress", "")))) is not None:
            intake.refuse(native, [why], tool.before, tool.entry)


def _offers(namespace: str, taken: Iterable[Taken]) -> tuple[list[Offer], Statuses]:
    offers: list[Offer] = []
    statuses: Statuses = {}
    for tool in taken:
        for version in tool.versions:
            offers.append(offer(version))
            if version.status is not None:
                statuses[version.contract.tool, version.contract.version] = version.status
        if tool.quarantine is not None and not tool.versions:
            stand_in = placeholder(namespace, tool.native)
            offers.append(Offer(contract=stand_in, upstream=namespace, verbatim=True))
            statuses[stand_in.tool, stand_in.version] = ToolStatus.QUARANTINED
    return offers, statuses


def _saying(word: str, taken: Iterable[Taken]) -> frozenset[str]:
    return frozenset(tool.name for tool in taken if tool.stated.get(word) is True)
