"""What does an overlay say about tools that nobody has looked at yet?

A guess is written down so that somebody can read and correct it. What seems to read is let through, what
seems to write asks you, and what seems risky is left as it is: unclassified, so that an operator is asked.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from holdfast.cli.wrap import files
from holdfast.cli.wrap.files import Fate
from holdfast.cli.wrap.result import Guess, Listed
from holdfast.cli.wrap.upstreams import Plan

HEAD = """# What the tools of '{namespace}' do, guessed from names and descriptions. A guess is not the truth:
# read each line, correct it, and say more where you know more (docs/how-to/wrap-an-existing-setup.md).
version: 1
"""
EMPTY = """# Nothing is known of these tools yet. What nobody classified is held for an operator.
version: 1
tools: {}
"""
READS = "READ_ONLY"
WRITES = ("EPHEMERAL_WRITE", "LOW_RISK_INTERNAL", "MEDIUM_RISK_WRITE")


def write(plan: Plan, out: Path, listed: Mapping[str, Listed]) -> dict[Path, Fate]:
    """One file for each server; where nothing was learnt, what is there stays."""
    fates: dict[Path, Fate] = {}
    for one in plan.wrapped:
        path = out / files.OVERLAYS / f"{one.namespace}.yaml"
        said = listed.get(one.namespace)
        if said is not None and said.reached:
            fates[path] = files.put(path, text(one.namespace, said.guesses))
        else:
            fates[path] = Fate.UNCHANGED if path.exists() else files.put(path, EMPTY)
    return fates


def text(namespace: str, guesses: Iterable[Guess]) -> str:
    lines = [line for guess in guesses for line in _entry(namespace, guess)]
    return HEAD.format(namespace=namespace) + ("tools:\n" + "".join(lines) if lines else "tools: {}\n")


def _entry(namespace: str, guess: Guess) -> Iterator[str]:
    from holdfast.catalog.imports.names import local_name
    from holdfast.cli.screen import visible

    # A name that reads as a pattern would speak of others, so it is given as ours.
    name = _key(local_name(guess.tool) if re.search(r"[*?\[]", guess.tool) else guess.tool)
    why = visible(guess.reason).replace("\n", " ")
    if guess.effect == READS:
        yield f"  # {why}\n  {name}: {{effect: READ_ONLY}}\n"
    elif guess.effect in WRITES:
        yield f"  # {why}; you are asked each time\n  {name}:\n"
        yield f"    effect: {guess.effect}\n"
        yield "    undo: partial\n    floor: user\n    idempotency: none\n"
        yield f'    manifest: [["{namespace}", UPDATE, unknown]]\n'
    else:
        yield f"  # {guess.effect}: {why}; an operator is asked each time\n  {name}: {{}}\n"


def _key(name: str) -> str:
    """A JSON string is a YAML one, whatever is in it; a plain word needs no quotes."""
    import yaml

    plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name) and yaml.safe_load(name) == name
    return name if plain else json.dumps(name)


def lock(plan: Plan, out: Path, listed: Mapping[str, Listed]) -> tuple[dict[Path, Fate], list[str]]:
    """Keep what each tool looks like now; what was locked before stays as it was accepted."""
    path = out / files.LOCK
    reached = [one for one in plan.wrapped if (said := listed.get(one.namespace)) and said.reached]
    if not reached:
        return {}, []
    from holdfast.catalog.imports.imported import import_tools
    from holdfast.catalog.imports.lock import Lock
    from holdfast.catalog.imports.overlay import Overlay

    before = locked = Lock.load(path)
    notes: list[str] = []
    now = datetime.now(UTC).isoformat(timespec="seconds")
    for one in reached:
        overlay = Overlay.load(out / files.OVERLAYS / f"{one.namespace}.yaml")
        imported = import_tools(
            one.namespace,
            listed[one.namespace].tools,
            overlay=overlay,
            lock=locked,
            trust_annotations=False,
            now=now,
            plain=False,
        )
        locked = imported.lock
        notes += [f"{one.namespace}: {report}" for report in imported.reports]
    if locked == before:
        return {path: Fate.UNCHANGED}, notes
    locked.save(path)
    return {path: Fate.WRITTEN}, notes
