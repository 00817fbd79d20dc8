"""How is one listed tool taken in: what is in force for it, in which versions, and what is said of that?"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.catalog.admission import Offer
from holdfast.catalog.imports.contract import shown
from holdfast.catalog.imports.drift import Drift
from holdfast.catalog.imports.lock import Entry, Lock
from holdfast.catalog.imports.names import local_name
from holdfast.catalog.imports.overlay import Overlay
from holdfast.catalog.imports.poison import suspicions
from holdfast.catalog.imports.sorting import shown as readable
from holdfast.catalog.imports.standing import Standing, stand
from holdfast.catalog.imports.versions import Promise, Recall, Version, nothing, offered, settle
from holdfast.model.errors import AdmissionError
from holdfast.model.schema import SchemaError


@dataclass(slots=True)
class Taken:
    """One tool on its way into the catalog."""

    native: str
    entry: Entry
    versions: list[Version]
    before: Entry | None
    """What the lock says of it so far."""
    stated: Mapping[str, Any] = field(default_factory=dict)
    quarantine: Drift | str | None = None

    @property
    def name(self) -> str:
        return local_name(self.native)


@dataclass(slots=True)
class Intake:
    """One listing of one upstream."""

    namespace: str
    overlay: Overlay
    lock: Lock
    trust_annotations: bool
    now: str
    others: Collection[str] = ()
    recall: Recall = nothing
    taken: dict[str, Taken] = field(default_factory=dict)
    refused: dict[str, Entry] = field(default_factory=dict)
    """What the lock is to say of tools that were seen and are not offered."""
    reports: list[str] = field(default_factory=list)

    def take(self, native: str, descriptor: Mapping[str, Any], doubt: str | None) -> None:
        before = self.lock.tools(self.namespace).get(native)
        entry = before or Entry(first_seen=self.now, late=bool(self.lock.tools(self.namespace)))
        suspected = suspicions(descriptor, self.others)
        for one in suspected:
            self.report(native, f"is flagged: {one}")
        standing = stand(entry, descriptor, suspected, doubt, self.now)
        if standing.report:
            self.report(native, standing.report)
        if standing.quarantine is not None:
            self._quarantine(native, standing, before)
            return
        # Whoever speaks to the model behind the user's back is not believed about itself either.
        trusted = self.trust_annotations and all(one.degree == "note" for one in suspected)
        self._settle(native, standing, before, trusted=trusted)

    def hold(self, native: str, why: str) -> None:
        """A name that was listed in several ways: what was accepted stays, and waits."""
        self.report(native, f"is not taken: {why}")
        entry = self.lock.tools(self.namespace).get(native)
        if entry is not None and entry.current is not None:
            versions = offered(self.namespace, entry, quarantined=True, recall=self.recall)
            self.taken[native] = Taken(native, entry, versions, entry, quarantine=why)

    def refuse(self, native: str, reasons: list[str], before: Entry | None, seen: Entry) -> None:
        """Not offered, with every reason. The lock remembers it was seen, and nothing else new."""
        self.report(native, f"is refused: {'; '.join(reasons)}")
        self.taken.pop(native, None)
        self.refused[native] = before or Entry(first_seen=seen.first_seen, late=seen.late)

    def entries(self) -> dict[str, Entry]:
        return {native: tool.entry for native, tool in self.taken.items()} | self.refused

    def report(self, native: str, text: str) -> None:
        self.reports.append(f"'{self.namespace}.{readable(native)}' {text}")

    def _quarantine(self, native: str, standing: Standing, before: Entry | None) -> None:
        reason = standing.entry.pending.reason if standing.entry.pending else "it changed"
        self.report(native, f"is in quarantine until an operator accepts it: {reason}")
        versions = offered(self.namespace, standing.entry, quarantined=True, recall=self.recall)
        self.taken[native] = Taken(native, standing.entry, versions, before, quarantine=standing.quarantine)

    def _settle(self, native: str, standing: Standing, before: Entry | None, *, trusted: bool) -> None:
        stated = self.overlay.stated(native, late=standing.entry.late)
        for pattern in stated.passed_over:
            self.report(native, f"turned up later, so '{pattern}' does not hold for it; name it or accept it")
        promise = Promise(self.namespace, standing.descriptor, stated.values, trusted)
        try:
            entry = settle(standing.entry, promise, standing.by, self.now, self.recall)
        except SchemaError as error:
            self.refuse(native, [str(error)], before, standing.entry)
        except AdmissionError as error:
            self.refuse(native, list(error.reasons), before, standing.entry)
        else:
            versions = offered(self.namespace, entry, quarantined=False, recall=self.recall)
            self.taken[native] = Taken(native, entry, versions, before, stated.values)

    def report_steps(self) -> None:
        """Which tools are in another version now."""
        for native, tool in self.taken.items():
            old, new = tool.before.current if tool.before else None, tool.entry.current
            if old is not None and new is not None and old.version != new.version:
                self.report(native, f"is now version '{new.version}', after '{old.version}'")


def offer(version: Version) -> Offer:
    record, contract = version.record, version.contract
    native = shown(record.descriptor, contract, record.stated)
    return Offer(contract=contract, upstream=contract.identity.namespace, verbatim=True, native=native)
