"""How is a statement said to PostgreSQL?"""

import re
from functools import cache

from holdfast.stores.sql.engine import Values

_NUMBERED = re.compile(r"\?(\d+)")
_NEXT = re.compile(r"\?")
_LOCK = "/* FOR UPDATE */"


def said(statement: str, values: Values) -> tuple[str, Values]:
    """The same statement with this server's placeholders and the row locks it asks for; and its values."""
    text, used = translated(statement)
    return text, values if used is None else [values[place] for place in used]


@cache
def translated(statement: str) -> tuple[str, tuple[int, ...] | None]:
    """The text, and which values it uses where that is not all of them: the server wants no others.

    Statements are constants, so each is translated once.
    """
    text = statement.replace(_LOCK, _LOCK.strip("/* "))
    numbers = sorted({int(number) for number in _NUMBERED.findall(text)})
    if not numbers:
        parts = _NEXT.split(text)
        return "".join(f"{part}${place}" for place, part in enumerate(parts[:-1], 1)) + parts[-1], None
    new = {str(number): f"${place}" for place, number in enumerate(numbers, 1)}
    whole = numbers[-1] == len(numbers)
    return _NUMBERED.sub(lambda found: new[found[1]], text), None if whole else tuple(n - 1 for n in numbers)


def quoted(text: str) -> str:
    """A string as a literal, for statements that take no parameters."""
    if "\0" in text:
        raise ValueError("text with a NUL character cannot be stored")
    return "'" + text.replace("'", "''") + "'"
