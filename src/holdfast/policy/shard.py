"""Which policies can have a say about one tool?

Only those are evaluated: a bundle may be large, what applies to one tool stays small (DEC-6).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import orjson
from cedarpy import PolicySet, policies_to_json_str

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

    def unseen(self, left_out: Iterable[str]) -> str | None:
        """The first of these pointers that a policy wanted to read."""
        for pointer in left_out:
            steps = tuple(pointer.split("/")[1:])
            for path in self.arguments:
                shorter = min(len(path), len(steps))
                if path[:shorter] == steps[:shorter]:
                    return pointer
        return None


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
    )


def handle(policies: Iterable[Policy]) -> PolicySet:
    """Parsed once, under the ids their authors gave them."""
    parsed = {policy.id: orjson.Fragment(_tree(policy.statement.text)) for policy in policies}
    whole = {"staticPolicies": parsed, "templates": {}, "templateLinks": []}
    return PolicySet.from_json_str(orjson.dumps(whole).decode())


@lru_cache(maxsize=16_384)  # a policy may cover every tool there is
def _tree(text: str) -> bytes:
    [tree] = orjson.loads(policies_to_json_str(text))["staticPolicies"].values()
    return orjson.dumps(tree)
