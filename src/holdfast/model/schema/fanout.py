"""How often may one value be looked at, because alternatives and references multiply?"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.model.schema.tree import Tree

_MANY = 1_000_000
"""Counted no further: numbers that double five thousand times are slow to add and to print."""


@dataclass(frozen=True, slots=True)
class Fanout:
    width: int
    """Ways in which one place of a value can be reached along alternatives, without recursion."""
    per_level: int
    """Ways in which a recursive schema comes back to itself per level of the value; 1 is harmless."""
    endless: tuple[str, ...]
    """Places from which references lead back to themselves without ever entering the value."""
    chain: int = 1
    """The longest way through references and alternatives that stays at one place of the value."""


def fanout(tree: Tree) -> Fanout:
    in_place = {p: [link.target for link in links] for p, links in tree.in_place.items()}
    everything = {p: in_place[p] + [link.target for link in tree.children[p]] for p in in_place}
    order: dict[str, int] = {}
    endless: list[str] = []
    for component in components(in_place):
        for place in component:
            order[place] = len(order)
        if _cyclic(component, in_place):
            endless.append(min(component))
    if endless:
        return Fanout(1, 1, tuple(sorted(endless)))
    chain: dict[str, int] = {}
    for place in sorted(order, key=order.__getitem__):
        chain[place] = 1 + max((chain[q] for q in in_place[place]), default=0)
    width: dict[str, int] = {}
    per_level = 1
    for component in components(everything):
        members = set(component)
        steps: dict[str, Counter[str]] = {}
        for place in sorted(component, key=order.__getitem__):
            below = (1 if link.target in members else width[link.target] for link in tree.children[place])
            ways = max(below, default=0) + sum(width[q] for q in in_place[place])
            width[place] = min(max(1, ways), _MANY)
            steps[place] = _steps(tree, place, members)
            for target in in_place[place]:
                steps[place].update(steps.get(target, Counter()))
            per_level = max(per_level, _most_to_one_place(steps[place]))
    return Fanout(width[""], per_level, (), max(chain.values()))


def _steps(tree: Tree, place: str, members: set[str]) -> Counter[str]:
    """Where a recursive schema goes from here: which member or item of the value, how many times."""
    counted: Counter[str] = Counter()
    for link in tree.children[place]:
        if link.target in members:
            if link.keyword == "properties":
                counted[f"/{link.key}"] += 1
            else:
                counted["{}" if link.keyword.endswith("Properties") else "[]"] += 1
    return counted


def _most_to_one_place(steps: Counter[str]) -> int:
    named = max((count for step, count in steps.items() if step.startswith("/")), default=0)
    return max(named + steps["{}"], steps["[]"])


def _cyclic(component: list[str], graph: dict[str, list[str]]) -> bool:
    return len(component) > 1 or component[0] in graph[component[0]]


def components(graph: dict[str, list[str]]) -> Iterator[list[str]]:
    """Strongly connected components, targets before sources (Tarjan, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    on_path: set[str] = set()
    for root in graph:
        if root in index:
            continue
        work = [(root, iter(graph[root]))]
        index[root] = low[root] = len(index)
        path.append(root)
        on_path.add(root)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    path.append(target)
                    on_path.add(target)
                    work.append((target, iter(graph[target])))
                    break
                if target in on_path:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = [path.pop()]
                    while component[-1] != node:
                        component.append(path.pop())
                    on_path.difference_update(component)
                    yield component
