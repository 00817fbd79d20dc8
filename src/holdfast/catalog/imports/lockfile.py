"""How is the lock kept in a file that several processes and people read and write?"""

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from holdfast import holding
from holdfast.catalog.imports.characters import hidden
from holdfast.model.errors import ConfigError

FORM = 1
"""Version of the file's form."""

E = TypeVar("E")


@contextmanager
def held(file: Path, patience_s: float = holding.HELD_S) -> Iterator[None]:
    """Whoever writes the file holds its neighbour; a process that dies lets go."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with holding.held(file.with_name(f".{file.name}.held"), patience_s):
        yield


def read(file: Path, entry: Callable[[Mapping[str, Any]], E]) -> dict[str, dict[str, E]]:
    """Upstreams, their tools and what `entry` makes of each; raises ConfigError."""
    try:
        tree = json.loads(file.read_bytes())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"cannot read the lock file '{file.name}': {error.strerror}") from None
    except (ValueError, RecursionError):
        raise ConfigError(_broken(file, "it is not JSON")) from None
    if not isinstance(tree, dict) or tree.get("lock") != FORM:
        raise ConfigError(_broken(file, f"it does not say 'lock: {FORM}'"))
    try:
        return {
            namespace: {native: entry(one) for native, one in tools.items()}
            for namespace, tools in tree["upstreams"].items()
        }
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ConfigError(_broken(file, "an entry is incomplete")) from None


def write(file: Path, upstreams: Mapping[str, Any]) -> None:
    """All or nothing: a reader sees the old file or the new one. Raises OSError."""
    tree = {"lock": FORM, "upstreams": upstreams}
    text = _escaped(json.dumps(tree, indent=2, sort_keys=True, ensure_ascii=False))
    handle, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as new:
            new.write(text + "\n")
            new.flush()
            os.fchmod(new.fileno(), 0o644)
            os.fsync(new.fileno())
        os.replace(name, file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _escaped(text: str) -> str:
    """JSON in which every character that nobody sees is written out."""
    if text.isascii():
        return text
    unseen = {character for _, character in hidden(text) if character != "\n"}
    if not unseen:
        return text
    return re.sub(f"[{re.escape(''.join(unseen))}]", lambda found: json.dumps(found[0])[1:-1], text)


def _broken(file: Path, why: str) -> str:
    told = f"the lock file '{file.name}' cannot be used: {why}"
    return f"{told}; restore it, or remove it to trust every tool anew"
