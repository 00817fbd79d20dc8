"""Which namespace does a server get?"""

import re
import unicodedata
from collections.abc import Iterable

LONGEST = 32
TAKEN = ("all",)
"""`holdfast halt all` means every upstream."""


def namespaces(names: Iterable[str]) -> dict[str, str]:
    """By the server's name: `[a-z0-9-]`, at most 32, no two alike; the first comer keeps the plain one."""
    used = set(TAKEN)
    given: dict[str, str] = {}
    for name in names:
        given[name] = _free(_plain(name), used)
        used.add(given[name])
    return given


def _plain(name: str) -> str:
    letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", letters).strip("-")[:LONGEST].strip("-") or "server"


def _free(wanted: str, used: set[str]) -> str:
    found, number = wanted, 1
    while found in used:
        number += 1
        end = f"-{number}"
        found = wanted[: LONGEST - len(end)].rstrip("-") + end
    return found
