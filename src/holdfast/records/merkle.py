"""How do a few hashes prove that a record is in the log, and that the log only grew?

The Merkle tree of RFC 6962: a leaf is hashed after 0x00, a node after 0x01, so neither can stand for the
other. Every complete subtree has one hash for ever; with those kept, a proof reads O(log n) of them and an
append makes one on average.
"""

import hashlib
from collections.abc import Callable, Sequence

EMPTY = hashlib.sha256(b"").digest()
"""The root of a tree without leaves."""

Nodes = Callable[[int, int], bytes]
"""The hash of a complete subtree by level and place: level 0 are the leaves, level k covers 2**k of them."""
Made = tuple[int, int, bytes]
"""A complete subtree that came to be: level, place, hash."""

_sha256 = hashlib.sha256


def leaf_hash(data: bytes) -> bytes:
    return _sha256(b"\0" + data).digest()


def leaf_hashes(data: Sequence[bytes]) -> list[bytes]:
    return [_sha256(b"\0" + one).digest() for one in data]


def node_hash(left: bytes, right: bytes) -> bytes:
    return _sha256(b"\1" + left + right).digest()


class Frontier:
    """The right edge of a tree: all that is needed to append, and to know the root."""

    __slots__ = ("_edge", "size")

    def __init__(self, size: int = 0, nodes: Nodes | None = None) -> None:
        self.size = size
        self._edge: list[bytes] = []
        """Complete subtrees from left to right, one for each bit of the size."""
        if size and nodes is not None:
            self._edge = [nodes(level, place) for level, place in _edge(size)]

    def append(self, leaf: bytes) -> list[Made]:
        """Take one leaf hash; the complete subtrees it made, the leaf itself first."""
        made: list[Made] = [(0, self.size, leaf)]
        edge, place, level = self._edge, self.size, 0
        while place & 1:
            leaf = _sha256(b"\1" + edge.pop() + leaf).digest()
            place >>= 1
            level += 1
            made.append((level, place, leaf))
        edge.append(leaf)
        self.size += 1
        return made

    def extend(self, leaves: Sequence[bytes]) -> list[Made]:
        """Take many leaf hashes at once; the complete subtrees they made above them, the lowest first."""
        made: list[Made] = []
        edge, size, level = self._edge, self.size, 0
        row, place = list(leaves), size
        right: list[bytes] = []  # the edge below the row, the smallest first
        while row:
            if place & 1:
                row.insert(0, edge.pop())
                place -= 1
            if len(row) & 1:
                right.append(row.pop())
            pairs = iter(row)
            row = [_sha256(b"\1" + one + other).digest() for one, other in zip(pairs, pairs, strict=True)]
            level, place = level + 1, place >> 1
            made += [(level, at, hashed) for at, hashed in enumerate(row, place)]
        edge += reversed(right)
        self.size = size + len(leaves)
        return made

    def copy(self) -> "Frontier":
        other = Frontier(self.size)
        other._edge = self._edge.copy()
        return other

    def root(self) -> bytes:
        if not self._edge:
            return EMPTY
        *left, found = self._edge
        for node in reversed(left):
            found = node_hash(node, found)
        return found


def _edge(size: int) -> list[tuple[int, int]]:
    """Level and place of each complete subtree at the right edge, the largest first."""
    found, start = [], 0
    for level in reversed(range(size.bit_length())):
        if size >> level & 1:
            found.append((level, start >> level))
            start += 1 << level
    return found


def root_of(nodes: Nodes, size: int) -> bytes:
    return _range(nodes, 0, size) if size else EMPTY


def inclusion_proof(nodes: Nodes, index: int, size: int) -> list[bytes]:
    """The path from leaf `index` to the root of the first `size` leaves; RFC 6962 2.1.1."""
    if not 0 <= index < size:
        raise ValueError(f"leaf {index} is not in a tree of {size}")
    path: list[bytes] = []
    start, end = 0, size
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            path.append(_range(nodes, middle, end))
            end = middle
        else:
            path.append(_range(nodes, start, middle))
            start = middle
    return path[::-1]


def consistency_proof(nodes: Nodes, first: int, second: int) -> list[bytes]:
    """That the first `first` leaves are still the first of `second`; RFC 6962 2.1.2."""
    if not 0 < first <= second:
        raise ValueError(f"a tree of {second} does not grow out of one of {first}")
    path: list[bytes] = []
    start, end, whole = 0, second, True
    while first != end:
        middle = start + _split(end - start)
        if first <= middle:
            path.append(_range(nodes, middle, end))
            end = middle
        else:
            path.append(_range(nodes, start, middle))
            start, whole = middle, False
    if not whole:
        path.append(_range(nodes, start, end))
    return path[::-1]


def root_from_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes]) -> bytes | None:
    """The root that `proof` leads to; None when it has the wrong length for this place."""
    if not 0 <= index < size:
        return None
    place, last, found = index, size - 1, leaf
    for step in proof:
        if last == 0:
            return None
        if place & 1 or place == last:
            found = node_hash(step, found)
            while not place & 1 and place:
                place >>= 1
                last >>= 1
        else:
            found = node_hash(found, step)
        place >>= 1
        last >>= 1
    return found if last == 0 else None


def is_included(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    return root_from_inclusion(leaf, index, size, proof) == root


def is_consistent(
    first: int, first_root: bytes, second: int, second_root: bytes, proof: Sequence[bytes]
) -> bool:
    """Whether the tree of `second` leaves has that of `first` as its beginning."""
    if first == second:
        return first_root == second_root and not proof
    if first == 0:
        return first_root == EMPTY and not proof
    if first > second or not proof:
        return False
    steps = list(proof)
    if first & (first - 1) == 0:
        steps.insert(0, first_root)  # a power of two is a complete subtree, so the proof leaves it out
    place, last = first - 1, second - 1
    while place & 1:
        place >>= 1
        last >>= 1
    old = new = steps[0]
    for step in steps[1:]:
        if last == 0:
            return False
        if place & 1 or place == last:
            old, new = node_hash(step, old), node_hash(step, new)
            while not place & 1 and place:
                place >>= 1
                last >>= 1
        else:
            new = node_hash(new, step)
        place >>= 1
        last >>= 1
    return last == 0 and old == first_root and new == second_root


def _split(count: int) -> int:
    """The largest power of two below `count`."""
    return 1 << (count - 1).bit_length() - 1


def _range(nodes: Nodes, start: int, end: int) -> bytes:
    """The hash of the leaves from `start` to `end`, as the recursion of RFC 6962 cuts them."""
    count = end - start
    if count & (count - 1) == 0:
        level = count.bit_length() - 1
        return nodes(level, start >> level)
    middle = start + _split(count)
    return node_hash(_range(nodes, start, middle), _range(nodes, middle, end))
