"""What would candidate policies have decided, had they been in force? POL-8.

What policy was asked about each past call is judged again. A promotion can be made to wait until somebody has
looked at the outcome and wants it.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from holdfast.gateway import policies
from holdfast.gateway.auditing import ALL_TENANTS, DAY_S, Auditing
from holdfast.gateway.diff import LIMITS, Diff, Wish
from holdfast.gateway.operators import need_operator
from holdfast.gateway.past import PAGE
from holdfast.gateway.past import decisions as decided
from holdfast.model import defaults
from holdfast.model.call import Principal
from holdfast.model.errors import HoldfastError, NotFound
from holdfast.model.record import Entry
from holdfast.policy import Bundle, CedarPolicy
from holdfast.policy.replay import Flip, Left, grouped, judge_again
from holdfast.policy.served import Served
from holdfast.ports import Bundles, Ports

AT_ONCE = 50
"""Decisions judged before others have their turn: a few milliseconds."""
REVIEW = "policy_review"


class History:
    """Hung on the gateway as `history`."""

    def __init__(self, ports: Ports, bundles: Bundles, auditing: Auditing, *, days: float | None) -> None:
        """`days`: how far an accepted diff must look back before a promotion; None: none is needed."""
        self._ports = ports
        self._bundles = bundles
        self._auditing = auditing
        self.days = days

    async def diff(
        self,
        by: Principal,
        bundle: Bundle,
        wish: Wish | None = None,
        tell: Callable[[int], None] | None = None,
    ) -> Diff:
        """Raises ConfigError for a bundle that could not be promoted either.

        `tell` hears every now and then how many decisions were judged.
        """
        need_operator(by, self._ports.people)
        policies.refuse_problems(bundle, policies.examine(bundle, self._ports.catalog))
        wish = wish or Wish()
        candidate, against = self._built(bundle), self._active() if wish.active else None
        until = self._ports.clock.now()
        since = until - wish.since_s
        flips: dict[tuple[str, str], Flip] = {}
        left: dict[Left, Counter[str]] = {}
        decisions = 0
        async for past in decided(wish, since, self._auditing, self._ports):
            said = judge_again(past, candidate, against)
            if isinstance(said, Left):
                left.setdefault(said, Counter())[past.tool] += 1
                continue
            decisions += 1
            if decisions % AT_ONCE == 0:
                if tell is not None:
                    tell(decisions)
                await asyncio.sleep(0)
            if said is not None:  # asked about, then run: the same call once
                flips[past.call_id, said.change.value] = said
        return Diff(
            version=bundle.version,
            against=None if against is None else against.version,
            since=since,
            until=until,
            whole=wish.whole,
            decisions=decisions,
            flips=len(flips),
            groups=tuple(grouped(list(flips.values()), wish.examples, LIMITS)),
            left={why: dict(sorted(left[why].items())) for why in Left if why in left},
        )

    async def find(self, version: str) -> Bundle:
        """A bundle that was promoted once."""
        kept = next((one for one in await self._bundles.list() if one.version == version), None)
        if kept is None:
            raise NotFound(f"no policies {version!r} were promoted; name a folder, or a version of the list")
        return Bundle.stored(kept.content)

    # --- a review before a promotion ------------------------------------------------------

    async def accept(self, by: Principal, diff: Diff, note: str = "") -> None:
        """Record that somebody has seen what would change, and wants it."""
        need_operator(by, self._ports.people)
        if not diff.whole:
            raise HoldfastError(
                "a diff of some calls cannot be accepted: leave out '--tool', '--principal', '--tenant' and"
                " '--against'"
            )
        if self.days is not None and diff.until - diff.since < self.days * DAY_S:
            raise HoldfastError(f"a promotion asks for a diff over {self.days:g} days; look back that far")
        await self._auditing.note(
            ALL_TENANTS,
            REVIEW,
            by.user,
            about=_about(diff.version),
            version=diff.version,
            since=diff.since,
            until=diff.until,
            decisions=diff.decisions,
            flips=diff.flips,
            not_judged=sum(sum(tools.values()) for tools in diff.left.values()),
            note=note,
        )

    async def require(self, version: str) -> None:
        """Raises HoldfastError where a promotion needs an accepted diff and there is none."""
        if self.days is None:
            return
        reviews = [body for body in await self._reviews(version) if self._counts(body)]
        if not reviews:
            raise HoldfastError(
                f"{version} may be put in force once its diff over {self.days:g} days was accepted, not more"
                f" than {defaults.REVIEW_LASTS_S / 3600:g} hours ago; look at it with 'holdfast policy diff"
                f" FOLDER --since {self.days:g}d --accept'"
            )

    async def _reviews(self, version: str) -> list[dict[str, Any]]:
        found: list[Entry] = []
        while page := await self._auditing.of_call(
            ALL_TENANTS, _about(version), found[-1].leaf if found else -1, PAGE
        ):
            found += page
        bodies = [orjson.loads(entry.record.body) for entry in found]
        return [body for body in bodies if body["operation"] == REVIEW and body["version"] == version]

    def _counts(self, review: Mapping[str, Any]) -> bool:
        since, until = float(review["since"]), float(review["until"])
        fresh = self._ports.clock.now() - until <= defaults.REVIEW_LASTS_S
        return fresh and until - since >= (self.days or 0.0) * DAY_S

    def _built(self, bundle: Bundle) -> CedarPolicy:
        served = self._ports.policy
        built = served.build(bundle) if isinstance(served, Served) else None
        if not isinstance(built, CedarPolicy):
            raise HoldfastError("the policies here do not come from bundles; there is nothing to try")
        return built

    def _active(self) -> CedarPolicy:
        served = self._ports.policy
        current = served.current if isinstance(served, Served) else served
        if not isinstance(current, CedarPolicy):
            raise HoldfastError("no policies are in force to compare with; leave out '--against'")
        return current


def _about(version: str) -> str:
    """Reviews are found by this in place of a call's id."""
    return f"policy:{version}"
