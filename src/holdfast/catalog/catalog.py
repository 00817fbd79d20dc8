"""Which version of which tool does a name mean here?

All admitted contracts of one gateway, in memory. Several versions of a tool stand side by side; a name and a
spec are resolved once and remembered until something changes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from semver import Version

from holdfast.catalog.admission import Offer, admit_all, refusal
from holdfast.catalog.evolution import step_faults
from holdfast.catalog.references import Known, reference_faults
from holdfast.model.contract import Contract
from holdfast.model.tool import Tool
from holdfast.model.version import Candidate, Spec, choose, newest, parse_version
from holdfast.model.vocabulary import ToolStatus
from holdfast.ports import Listing

_REMEMBERED = 4096
"""Resolved specs kept; callers choose their text, so there must be an end."""

Versions = dict[str, Listing]


class MemoryCatalog:
    """Implements `ports.Catalog`. `pins` are the version specs of this environment, by tool."""

    def __init__(self, pins: Mapping[str, str] | None = None) -> None:
        self._pins = dict(pins or {})
        for spec in self._pins.values():
            Spec.parse(spec)
        self._tools: dict[str, Versions] = {}
        self._resolved: dict[tuple[str, str | None], Listing | None] = {}
        self.changes = 0
        """How often anything in here changed: who read it once knows when to read it again."""

    def find(self, name: str, spec: str | None) -> Listing | None:
        """The version that answers the spec and the pin, whatever its status; ValueError for no spec at all.

        Without a spec every known tool has an answer, if only its newest version, sunset or not: whoever
        may use it is told so.
        """
        asked = (name, spec)
        known = self._resolved.get(asked)
        if known is not None or asked in self._resolved:
            return known
        versions = self._tools.get(name)
        if versions is None:
            return None
        found = self._choose(name, spec, versions)
        if len(self._resolved) >= _REMEMBERED:
            self._resolved.clear()
        self._resolved[asked] = found
        return found

    def exact(self, name: str, version: str) -> Listing | None:
        return self._tools.get(name, {}).get(version)

    def list(self) -> Sequence[Listing]:
        return [listing for versions in self._tools.values() for listing in versions.values()]

    def register(self, offers: Sequence[Offer]) -> Sequence[Listing]:
        """Admit all of these or none; raises AdmissionError. What is there already may be offered again."""
        tools = admit_all(offers, self._newest)
        fresh = [
            Listing(tool, tool.contract.identity.status, offer.upstream, offer.native)
            for tool, offer in zip(tools, offers, strict=True)
        ]
        self._refuse_collisions(fresh)
        after = _merged(self._tools, fresh)
        _refuse_small_steps(after, fresh)
        self._tools = after
        self._changed()
        return fresh

    def replace(
        self,
        upstream: str,
        offers: Sequence[Offer],
        statuses: Mapping[tuple[str, str], ToolStatus] | None = None,
    ) -> Sequence[Listing]:
        """Swap everything of one upstream for this, all or nothing; raises AdmissionError and changes none.

        `statuses` are by (name, version), where they are not the contract's own. What is offered as it stands
        is not compiled again.
        """
        rest = _without(self._tools, upstream)
        there = self._there_already(upstream, offers)
        known = self._known(offers, rest)
        made = admit_all([offer for index, offer in enumerate(offers) if index not in there], known)
        _refuse_lost_references([tool.contract for tool in there.values()], known)
        compiled = iter(made)
        tools = [there.get(index) or next(compiled) for index in range(len(offers))]
        fresh = [
            Listing(tool, (statuses or {}).get(_identity(tool), _status(tool)), upstream, offer.native)
            for tool, offer in zip(tools, offers, strict=True)
        ]
        self._refuse_collisions(fresh)
        after = _merged(rest, fresh)
        _refuse_small_steps(after, [listing for index, listing in enumerate(fresh) if index not in there])
        self._tools = after
        self._changed()
        return fresh

    def set_status(self, name: str, version: str, status: ToolStatus) -> bool:
        """False when there is no such version."""
        listing = self.exact(name, version)
        if listing is None:
            return False
        self._tools[name] = {**self._tools[name], version: replace(listing, status=status)}
        self._changed()
        return True

    def _changed(self) -> None:
        self._resolved.clear()
        self.changes += 1

    def unmet_pins(self) -> Mapping[str, str]:
        """Pins that no version answers: their tools cannot be found."""
        return {
            name: spec
            for name, spec in self._pins.items()
            if choose(spec, _candidates(self._tools.get(name, {}))) is None
        }

    def _there_already(self, upstream: str, offers: Sequence[Offer]) -> dict[int, Tool]:
        """By place among the offers: what is registered to the letter, and need not be compiled again."""
        found = {}
        for index, offer in enumerate(offers):
            listing = self.exact(offer.contract.tool, offer.contract.version)
            if listing is None or listing.upstream != upstream or offer.checks or not offer.verbatim:
                continue
            if listing.tool.contract == offer.contract:
                found[index] = listing.tool
        return found

    def _known(self, offers: Sequence[Offer], rest: Mapping[str, Versions]) -> Known:
        """The newest contract of a name among what is offered now and what other upstreams have."""
        offered: dict[str, list[Contract]] = {}
        for offer in offers:
            offered.setdefault(offer.contract.tool, []).append(offer.contract)

        def find(name: str) -> Contract | None:
            if name in offered:
                return max(offered[name], key=_number)
            return self._newest(name) if name in rest else None

        return find

    def _choose(self, name: str, spec: str | None, versions: Versions) -> Listing | None:
        if (pin := self._pins.get(name)) is not None:
            pinned = Spec.parse(pin)
            versions = {version: one for version, one in versions.items() if pinned.admits(version)}
        version = choose(spec, _candidates(versions))
        if version is None and spec is None:
            version = newest(versions)
        return None if version is None else versions[version]

    def _newest(self, name: str) -> Contract | None:
        listing = self.find(name, None)
        return None if listing is None else listing.tool.contract

    def _refuse_collisions(self, fresh: Sequence[Listing]) -> None:
        """One upstream per namespace, one promise per version."""
        owners = {one.tool.contract.identity.namespace: one.upstream for one in self.list()}
        taken = {_identity(one.tool): one.tool.contract.digest for one in self.list()}
        refused: dict[str, list[str]] = {}
        for listing in fresh:
            contract = listing.tool.contract
            reasons = refused.setdefault(contract.tool, [])
            namespace = contract.identity.namespace
            if (owner := owners.setdefault(namespace, listing.upstream)) != listing.upstream:
                reasons.append(f"namespace '{namespace}' belongs to upstream '{owner}'; use another")
            if taken.setdefault(_identity(listing.tool), contract.digest) != contract.digest:
                reasons.append(
                    f"version '{contract.version}' is taken by another contract; give it a new one"
                )
        if any(refused.values()):
            raise refusal(refused)


def _number(contract: Contract) -> Version:
    try:
        return parse_version(contract.version)
    except ValueError:
        return Version(0)  # its own reason says so


def _status(tool: Tool) -> ToolStatus:
    return tool.contract.identity.status


def _without(tools: Mapping[str, Versions], upstream: str) -> dict[str, Versions]:
    kept = {
        name: {version: one for version, one in versions.items() if one.upstream != upstream}
        for name, versions in tools.items()
    }
    return {name: versions for name, versions in kept.items() if versions}


def _refuse_lost_references(contracts: Sequence[Contract], known: Known) -> None:
    """What stays as it is may rely on a tool that goes."""
    refused: dict[str, list[str]] = {}
    for contract in contracts:
        refused.setdefault(contract.tool, []).extend(reference_faults(contract, known))
    if any(refused.values()):
        raise refusal(refused)


def _identity(tool: Tool) -> tuple[str, str]:
    return tool.contract.tool, tool.contract.version


def _candidates(versions: Versions) -> list[Candidate]:
    return [Candidate(version, listing.status) for version, listing in versions.items()]


def _merged(before: Mapping[str, Versions], fresh: Sequence[Listing]) -> dict[str, Versions]:
    after = {name: dict(versions) for name, versions in before.items()}
    for listing in fresh:
        after.setdefault(listing.tool.contract.tool, {})[listing.tool.contract.version] = listing
    return after


def _refuse_small_steps(tools: Mapping[str, Versions], fresh: Sequence[Listing]) -> None:
    """A breaking change needs a version that says so; each new version is held to its neighbours. REG-5."""
    refused: dict[str, list[str]] = {}
    new = {_identity(listing.tool) for listing in fresh}
    for name in dict.fromkeys(name for name, _ in new):
        for old, later in pairwise(sorted(tools[name], key=parse_version)):
            if (name, old) in new or (name, later) in new:
                reasons = step_faults(tools[name][old].tool.contract, tools[name][later].tool.contract)
                refused.setdefault(name, []).extend(reasons)
    if any(refused.values()):
        raise refusal(refused)
