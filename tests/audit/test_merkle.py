"""Are the proofs those of RFC 6962? Held against a recursion written down straight from its text."""

import hashlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holdfast.records import merkle
from holdfast.records.merkle import Frontier
from tests.requirements import requirement

LEAVES = [f"leaf {n}".encode() for n in range(70)]
MOST = 64


def mth(data: list[bytes]) -> bytes:
    """RFC 6962 2.1, as it is written."""
    n = len(data)
    if n == 0:
        return hashlib.sha256().digest()
    if n == 1:
        return hashlib.sha256(b"\x00" + data[0]).digest()
    k = split(n)
    return hashlib.sha256(b"\x01" + mth(data[:k]) + mth(data[k:])).digest()


def path(m: int, data: list[bytes]) -> list[bytes]:
    """RFC 6962 2.1.1"""
    n = len(data)
    if n == 1:
        return []
    k = split(n)
    if m < k:
        return [*path(m, data[:k]), mth(data[k:])]
    return [*path(m - k, data[k:]), mth(data[:k])]


def subproof(m: int, data: list[bytes], complete: bool) -> list[bytes]:
    """RFC 6962 2.1.2"""
    n = len(data)
    if m == n:
        return [] if complete else [mth(data)]
    k = split(n)
    if m <= k:
        return [*subproof(m, data[:k], complete), mth(data[k:])]
    return [*subproof(m - k, data[k:], False), mth(data[:k])]


def split(n: int) -> int:
    k = 1
    while 2 * k < n:
        k *= 2
    return k


class Kept(dict[tuple[int, int], bytes]):
    """Every complete subtree of the first `size` leaves."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.frontier = Frontier()
        for data in LEAVES[:size]:
            for level, place, made in self.frontier.append(merkle.leaf_hash(data)):
                assert (level, place) not in self
                self[level, place] = made

    def node(self, level: int, place: int) -> bytes:
        return self[level, place]


ALL = Kept(len(LEAVES))


@requirement("AUD-1")
def test_the_empty_tree_has_the_root_of_the_rfc() -> None:
    assert Frontier().root().hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert merkle.root_of(ALL.node, 0) == Frontier().root()


@requirement("AUD-1")
def test_every_tree_up_to_64_leaves_has_the_root_of_the_recursion() -> None:
    for size in range(MOST + 1):
        expected = mth(LEAVES[:size])
        assert Kept(size).frontier.root() == expected
        assert merkle.root_of(ALL.node, size) == expected


@requirement("AUD-1")
def test_a_tree_continued_from_its_kept_subtrees_is_the_same_tree() -> None:
    for size in range(MOST + 1):
        continued = Frontier(size, ALL.node)
        assert continued.root() == mth(LEAVES[:size])
        for data in LEAVES[size:]:
            continued.append(merkle.leaf_hash(data))
        assert continued.root() == mth(LEAVES)


@requirement("AUD-1")
def test_leaves_taken_together_make_what_they_make_one_by_one() -> None:
    hashed = [merkle.leaf_hash(data) for data in LEAVES]
    for size in range(MOST + 1):
        for end in range(size, MOST + 1):
            together, single = Frontier(size, ALL.node), Frontier(size, ALL.node)
            untouched = together.copy()
            made = together.extend(hashed[size:end])
            one_by_one = [node for leaf in hashed[size:end] for node in single.append(leaf)[1:]]
            assert sorted(made) == sorted(one_by_one)
            assert (together.size, together.root()) == (single.size, single.root())
            assert (untouched.size, untouched.root()) == (size, mth(LEAVES[:size]))


@requirement("AUD-1")
def test_every_leaf_of_every_tree_up_to_64_is_proved_as_the_rfc_says() -> None:
    for size in range(1, MOST + 1):
        root = mth(LEAVES[:size])
        for index in range(size):
            proof = merkle.inclusion_proof(ALL.node, index, size)
            assert proof == path(index, LEAVES[:size])
            assert merkle.is_included(merkle.leaf_hash(LEAVES[index]), index, size, proof, root)


@requirement("AUD-1")
def test_every_pair_of_trees_up_to_64_is_proved_to_have_grown_as_the_rfc_says() -> None:
    for second in range(1, MOST + 1):
        for first in range(1, second + 1):
            proof = merkle.consistency_proof(ALL.node, first, second)
            assert proof == subproof(first, LEAVES[:second], True)
            roots = mth(LEAVES[:first]), mth(LEAVES[:second])
            assert merkle.is_consistent(first, roots[0], second, roots[1], proof)


@requirement("AUD-1")
@given(st.data())
def test_no_other_leaf_place_size_or_path_proves_inclusion(data: Any) -> None:
    size = data.draw(st.integers(1, MOST))
    index = data.draw(st.integers(0, size - 1))
    root, leaf = mth(LEAVES[:size]), merkle.leaf_hash(LEAVES[index])
    proof = merkle.inclusion_proof(ALL.node, index, size)
    other = data.draw(st.integers(0, MOST).filter(lambda n: n != index))
    assert not merkle.is_included(merkle.leaf_hash(LEAVES[other]), index, size, proof, root)
    assert not merkle.is_included(leaf, index, size, [*proof, root], root)
    if proof:
        cut = data.draw(st.integers(0, len(proof) - 1))
        bent = [bytes([step[0] ^ 1, *step[1:]]) if n == cut else step for n, step in enumerate(proof)]
        assert not merkle.is_included(leaf, index, size, bent, root)
        assert not merkle.is_included(leaf, index, size, proof[:cut] + proof[cut + 1 :], root)
        assert not merkle.is_included(leaf, other, size, proof, root)


@requirement("AUD-1")
@given(st.data())
def test_a_rewritten_beginning_is_never_consistent(data: Any) -> None:
    second = data.draw(st.integers(2, MOST))
    first = data.draw(st.integers(1, second))
    at = data.draw(st.integers(0, first - 1))
    forged = [*LEAVES[:at], b"forged", *LEAVES[at + 1 : second]]
    proof = merkle.consistency_proof(ALL.node, first, second)
    assert not merkle.is_consistent(first, mth(forged[:first]), second, mth(LEAVES[:second]), proof)
    assert not merkle.is_consistent(first, mth(LEAVES[:first]), second, mth(forged), proof)
    rebuilt = subproof(first, forged, True)
    assert not merkle.is_consistent(first, mth(LEAVES[:first]), second, mth(forged), rebuilt)


@requirement("AUD-1")
def test_a_leaf_cannot_stand_for_a_node() -> None:
    left, right = merkle.leaf_hash(b"a"), merkle.leaf_hash(b"b")
    assert merkle.leaf_hash(left + right) != merkle.node_hash(left, right)


@requirement("AUD-1")
def test_an_append_makes_one_subtree_on_average_and_a_proof_reads_few() -> None:
    made = sum(len(Frontier(size, ALL.node).append(b"x" * 32)) for size in range(MOST))
    assert made < 2 * MOST
    reads: list[tuple[int, int]] = []

    def counted(level: int, place: int) -> bytes:
        reads.append((level, place))
        return ALL[level, place]

    merkle.inclusion_proof(counted, 0, 63)
    assert len(reads) <= 2 * 6
