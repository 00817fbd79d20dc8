"""Which policies can have a say about one tool?

Only those are evaluated: a bundle may be large, what applies to one tool stays small (DEC-6).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from cedarpy import PolicySet, pst

from holdfast.policy.bundle import Policy
from holdfast.policy.reads import Path, paths
from holdfast.policy.schema import CONTEXT

ALL_FACTS = frozenset((*(name.rstrip("?") for name in CONTEXT), "args"))


@dataclass(frozen=True, slots=True)
class Shard:
    policies: Mapping[str, Policy]
    handle: PolicySet
    names: frozenset[str]
    """Members of the context that any of them reads."""
    arguments: frozenset[Path]
    """Paths of arguments that any of them reads; `()` stands for all of them."""
    looks_at: frozenset[str] | None
    """The arguments those paths begin with; None for all of them."""
    broken: tuple[str, ...]
    """Policies that cover this tool and do not fit the catalog: until they do, it is shut."""
    pinned: bool = False
    """Whether any of them was written for one contract only: then each contract has a shard of its own."""
    unfit: tuple[str, ...] = ()
    """Permits that were written for another contract than this: they do not hold."""
    shut: tuple[str, ...] = ()
    """Forbids that were: what they would forbid now nobody has said, so nothing is allowed (REG-8)."""

    def unseen(self, left_out: Iterable[str]) -> str | None:
        """The first of these pointers that a policy wanted to read."""
        for pointer in left_out:
            steps = tuple(pointer.split("/")[1:])
            for path in self.arguments:
                shorter = min(len(path), len(steps))
                if path[:shorter] == steps[:shorter]:
                    return pointer
        return None


def fitted(own: Sequence[Policy], broken: frozenset[str], tool: str, digest: str, upstream: str) -> Shard:
    """For one contract of the tool."""
    fit = [p for p in own if p.id in broken or p.fits(upstream, tool, digest)]
    unfit = [p for p in own if p.id not in broken and not p.fits(upstream, tool, digest)]
    return replace(
        shard(fit, broken),
        pinned=True,
        unfit=tuple(p.id for p in unfit if p.permits),
        shut=tuple(p.id for p in unfit if not p.permits),
    )


def shard(own: Sequence[Policy], broken: frozenset[str]) -> Shard:
    """`own` are the policies that cover the tool."""
    sound = {p.id: p for p in own if p.id not in broken}
    read = {path for p in sound.values() for path in paths(p.tree)}
    names = ALL_FACTS if () in read else frozenset(path[0] for path in read)
    arguments = frozenset(path[1:] for path in read if path[:1] in (("args",), ()))
    return Shard(
        sound,
        handle(sound.values()),
        names & ALL_FACTS,
        arguments,
        None if () in arguments else frozenset(path[0] for path in arguments),
        tuple(p.id for p in own if p.id in broken),
        pinned=any(p.id not in broken and p.pins for p in own),
    )


def handle(policies: Iterable[Policy]) -> PolicySet:
    """From what was parsed already, under the ids their authors gave them."""
    return PolicySet.from_pst(pst.PolicySet({}, {policy.id: policy.tree for policy in policies}, ()))
