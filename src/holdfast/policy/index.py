"""Which policies of a large bundle can cover one tool?

Found by what their scopes name, so that a bundle may be as large as it likes: looking for a tool's policies
takes as long as there are policies for it (DEC-6).
"""

from collections.abc import Iterable
from operator import itemgetter

from holdfast.policy.bundle import Policy
from holdfast.policy.reads import Named, covers, named

Numbered = tuple[int, Policy]


class Index:
    def __init__(self, policies: Iterable[Policy]) -> None:
        self._everywhere: list[Numbered] = []
        self._named: dict[Named, list[Numbered]] = {}
        for one in enumerate(policies):
            names = named(one[1].tree)
            if names is None:
                self._everywhere.append(one)
            for name in names or ():
                self._named.setdefault(name, []).append(one)

    def of(self, tool: str, namespace: str) -> list[Policy]:
        """In the order of the bundle."""
        found = dict(self._everywhere)
        for name in (("Tool", tool), ("Namespace", namespace)):
            found.update(self._named.get(name, ()))
        ordered = sorted(found.items(), key=itemgetter(0))
        return [policy for _, policy in ordered if covers(policy.tree, tool, namespace)]
