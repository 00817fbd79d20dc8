"""Which policies can have a say about one tool?

Only those are evaluated: a bundle may be large, what applies to one tool stays small (DEC-6).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cedarpy import PolicySet, policies_to_json_str

from holdfast.policy.bundle import Policy
from holdfast.policy.reads import Path, covers, paths
from holdfast.policy.schema import CONTEXT, Subject

ALL_FACTS = frozenset((*(name.rstrip("?") for name in CONTEXT), "args"))


@dataclass(frozen=True, slots=True)
class Shard:
    policies: Mapping[str, Policy]
    handle: PolicySet
    names: frozenset[str]
    """Members of the context that any of them reads."""
    arguments: frozenset[Path]
    """Paths of arguments that any of them reads; `()` stands for all of them."""
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


def shard(policies: Sequence[Policy], subject: Subject, broken: frozenset[str]) -> Shard:
    own = [p for p in policies if covers(p.tree, subject.name, subject.namespace)]
    sound = {p.id: p for p in own if p.id not in broken}
    read = {path for p in sound.values() for path in paths(p.tree)}
    names = ALL_FACTS if () in read else frozenset(path[0] for path in read)
    return Shard(
        sound,
        handle(sound.values()),
        names & ALL_FACTS,
        frozenset(path[1:] for path in read if path[:1] in (("args",), ())),
        tuple(p.id for p in own if p.id in broken),
    )


def handle(policies: Iterable[Policy]) -> PolicySet:
    """Parsed once, under the ids their authors gave them."""
    parsed = {}
    for policy in policies:
        [tree] = json.loads(policies_to_json_str(policy.statement.text))["staticPolicies"].values()
        parsed[policy.id] = tree
    whole = {"staticPolicies": parsed, "templates": {}, "templateLinks": []}
    return PolicySet.from_json_str(json.dumps(whole))
