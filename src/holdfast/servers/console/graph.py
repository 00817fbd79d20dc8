"""Where does each step of a chain stand on a page? Columns by how deep it is, lanes by its branch.

What takes a step back stands below it. Nothing here is markup: a template draws it, and escapes all of it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from holdfast.chains.declared import Branch, Chain, Choice, Join, Node, Parallel, Repeat, Step, Transaction

WIDE, HIGH, UNDO_HIGH = 150, 46, 22
GAP_X, GAP_Y = 34, 26
MARGIN = 16
LANE = HIGH + UNDO_HIGH + 6 + GAP_Y
COLUMN = WIDE + GAP_X
MOST_LETTERS = 19
"""Of a name in a box; all of it is in the table below."""


@dataclass(frozen=True, slots=True)
class Box:
    """A step, or a place where ways part or meet."""

    name: str
    column: int
    lane: int
    tool: str = ""
    says: str = ""
    kind: str = "step"
    state: str = "open"
    undo: str = ""
    """What became of its undoing: '' where it was not tried."""

    @property
    def x(self) -> int:
        return MARGIN + self.column * COLUMN

    @property
    def y(self) -> int:
        return MARGIN + self.lane * LANE

    @property
    def middle(self) -> int:
        return self.y + HIGH // 2

    @property
    def undo_y(self) -> int:
        return self.y + HIGH + 6


@dataclass(frozen=True, slots=True)
class Edge:
    path: str
    kind: str = "way"


@dataclass(frozen=True, slots=True)
class Graph:
    width: int
    height: int
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    wide: int = WIDE
    high: int = HIGH
    undo_high: int = UNDO_HIGH


def graph(chain: Chain, states: Mapping[str, str], undone: Mapping[str, str], order: Sequence[str]) -> Graph:
    """`states` and `undone` by step; `order`: the steps that were taken back, the first one first."""
    drawn = _Drawing(states, undone)
    drawn.body(chain.body, 0, 0, [])
    by_name = {box.name: box for box in drawn.boxes if box.kind == "step"}
    back = [by_name[name] for name in order if name in by_name]
    edges = [_way(before, after) for before, after in drawn.links]
    edges += [_back(one, two) for one, two in pairwise(back)]
    columns = max((box.column for box in drawn.boxes), default=0) + 1
    lanes = max((box.lane for box in drawn.boxes), default=0) + 1
    size = (2 * MARGIN + columns * COLUMN - GAP_X, 2 * MARGIN + lanes * LANE - GAP_Y)
    return Graph(*size, tuple(drawn.boxes), tuple(edges))


def short(text: str) -> str:
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}…"


@dataclass(slots=True)
class _Drawing:
    states: Mapping[str, str]
    undone: Mapping[str, str]
    boxes: list[Box] = field(default_factory=list)
    links: list[tuple[Box, Box]] = field(default_factory=list)

    def body(
        self, body: Sequence[Node], column: int, lane: int, before: list[Box], says: str = ""
    ) -> tuple[int, int, list[Box]]:
        """Draws nodes one after the other: the next column, how many lanes it took, and where it ends."""
        lanes = 1
        for node in body:
            column, used, before = self._node(node, column, lane, before, says)
            lanes, says = max(lanes, used), ""
        return column, lanes, before

    def _node(
        self, node: Node, column: int, lane: int, before: list[Box], says: str
    ) -> tuple[int, int, list[Box]]:
        match node:
            case Step():
                return self._step(node, column, lane, before, says)
            case Parallel():
                column, lanes, ends = self._side_by_side(
                    [(branch, "") for branch in node.branches], column, lane, before
                )
                met = self._box(Box(_joined(node.join), column, lane, kind="join"), ends)
                return column + 1, lanes, [met]
            case Branch():
                fork = self._box(Box("which?", column, lane, says=says, kind="join"), before)
                arms = [(arm.body, f"if {arm.when}" if arm.when else "otherwise") for arm in node.arms]
                after, lanes, ends = self._side_by_side(arms, column + 1, lane, [fork])
                open_end = [] if any(arm.when is None for arm in node.arms) else [fork]
                return after, lanes, [*ends, *open_end]
            case Choice():
                column, _, asked = self._step(node.ask, column, lane, before, says)
                fork = self._box(Box("which?", column, lane, kind="join"), asked)
                ways = [(case.body, f"if {case.name}") for case in node.cases]
                ways += [(node.otherwise, "otherwise")] if node.otherwise else []
                return self._side_by_side(ways, column + 1, lane, [fork])
            case Transaction():
                column, _, begun = self._step(node.begin, column, lane, before, says)
                column, lanes, ends = self.body(node.body, column, lane, begun)
                return column + 1, lanes, [self._box(Box("commit", column, lane, kind="join"), ends)]
            case Repeat():
                until = f", until {node.until}" if node.until else ""
                return self.body(node.body, column, lane, before, f"at most {node.most} times{until}")

    def _side_by_side(
        self, ways: Sequence[tuple[Sequence[Node], str]], column: int, lane: int, before: list[Box]
    ) -> tuple[int, int, list[Box]]:
        lanes, furthest, ends = 0, column, list[Box]()
        for body, says in ways:
            after, used, last = self.body(body, column, lane + lanes, before, says)
            lanes, furthest = lanes + used, max(furthest, after)
            ends += last
        return furthest, lanes, ends

    def _step(
        self, step: Step, column: int, lane: int, before: list[Box], says: str
    ) -> tuple[int, int, list[Box]]:
        told = says or (f"if {step.when}" if step.when else "")
        state, undo = self.states.get(step.id, "open"), self.undone.get(step.id, "")
        box = self._box(Box(step.id, column, lane, step.tool, told, "step", state, undo), before)
        return column + 1, 1, [box]

    def _box(self, box: Box, before: list[Box]) -> Box:
        self.boxes.append(box)
        self.links += [(one, box) for one in before]
        return box


def _joined(join: Join) -> str:
    return f"quorum {join.quorum:g}" if join.kind == "quorum" else join.kind


def _way(before: Box, after: Box) -> Edge:
    """From the right of one to the left of the other, bent where the lane is another."""
    x1, y1, x2, y2 = before.x + WIDE, before.middle, after.x, after.middle
    half = x2 - GAP_X // 2
    path = f"M{x1} {y1} H{x2}" if y1 == y2 else f"M{x1} {y1} H{half} V{y2} H{x2}"
    return Edge(path)


def _back(one: Box, other: Box) -> Edge:
    """The way in which things were taken back."""
    y1, y2 = one.undo_y + UNDO_HIGH // 2, other.undo_y + UNDO_HIGH // 2
    if one.x == other.x:  # around the boxes between them
        return Edge(f"M{one.x} {y1} H{one.x - 9} V{y2} H{one.x}", "back")
    x1 = one.x if other.x < one.x else one.x + WIDE
    x2 = other.x + WIDE if other.x < one.x else other.x
    return Edge(f"M{x1} {y1} L{x2} {y2}", "back")


def words(graph: Graph) -> Iterator[str]:
    """The same for whoever does not see it."""
    for box in graph.boxes:
        if box.kind == "step":
            yield f"{box.name}: {box.undo or box.state}"
