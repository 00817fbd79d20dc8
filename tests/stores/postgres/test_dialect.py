"""Is a statement said to PostgreSQL as it was meant?"""

import pytest

from holdfast.stores.postgres.dialect import quoted, said


@pytest.mark.parametrize(
    ("statement", "values", "text", "used"),
    [
        ("SELECT 1", (), "SELECT 1", ()),
        ("a = ? AND b = ?", (7, 8), "a = $1 AND b = $2", (7, 8)),
        ("a = ?2 AND b = ?1 AND c = ?2", (7, 8), "a = $2 AND b = $1 AND c = $2", (7, 8)),
        ("a = ?3 AND b = ?1", (7, 8, 9), "a = $2 AND b = $1", (7, 9)),
        ("a = ?10 AND b = ?1", tuple(range(10)), "a = $2 AND b = $1", (0, 9)),
        (
            "SELECT a FROM b WHERE c = ? /* FOR UPDATE */",
            (7,),
            "SELECT a FROM b WHERE c = $1 FOR UPDATE",
            (7,),
        ),
    ],
)
def test_placeholders_and_locks_are_those_of_the_server(
    statement: str, values: tuple[object, ...], text: str, used: tuple[object, ...]
) -> None:
    found, given = said(statement, values)
    assert (found, tuple(given)) == (text, used)


def test_a_string_stays_one_string_whatever_is_in_it() -> None:
    assert quoted("o'brien'; DROP TABLE x; --") == "'o''brien''; DROP TABLE x; --'"


def test_text_that_the_server_cannot_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="NUL"):
        quoted("a\0b")
