"""In which order is a set-up wrapped? Read, ask, write our own files, and only then touch the client's."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from holdfast.cli.screen import console
from holdfast.cli.wrap import files
from holdfast.cli.wrap.applied import Done, Trail
from holdfast.cli.wrap.clients import Setup, setups
from holdfast.cli.wrap.files import Fate
from holdfast.cli.wrap.jsonc import parse
from holdfast.cli.wrap.paste import Serve, edited, entry, name_of, shown
from holdfast.cli.wrap.result import Result
from holdfast.cli.wrap.upstreams import Plan, plan
from holdfast.model.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Order:
    """What somebody asked for."""

    trail: Trail
    out: Path
    project: str | None
    serve: Serve
    apply: bool
    connect: bool


def already(trail: Trail, project: str | None) -> str | None:
    """Why there is nothing to do; None where there is."""
    if trail.applied():
        return Done.ALREADY.value
    planned = plan(_chosen(trail.file, _text(trail.file), project), Path.cwd(), os.environ)
    if planned.wrapped:
        return None
    if planned.gateway is not None:
        return f"nothing to wrap: {planned.gateway!r} is Holdfast already"
    told = "".join(f"\n  {name}: {why}" for name, why in planned.left.items())
    raise ConfigError(f"{str(trail.file)!r} names no server that could be wrapped{told}")


def work(order: Order) -> Result:
    before = _bytes(order.trail.file)
    text = _text(order.trail.file, before)
    planned = plan(_chosen(order.trail.file, text, order.project), order.out, os.environ)
    if order.apply and planned.gateway is not None:
        added = ", ".join(repr(one.server.name) for one in planned.wrapped)
        raise ConfigError(
            f"{order.trail.file.name!r} has Holdfast as {planned.gateway!r} and {added} beside it; take what "
            "was added out, run with --undo, put it back in, and wrap again"
        )
    config = order.out / files.CONFIG
    made = entry(planned, config, order.serve)
    result = _written(order, planned, config, made)
    result = replace(result, notes=(*_elsewhere(order.trail.file, text, planned.setup), *result.notes))
    if not order.apply or result.to_add:
        return result
    after = edited(text, planned, result.name, made)
    order.trail.apply(before, after.encode(), planned.setup.path)
    told = shown(planned, made, applied=True)
    return replace(result, applied=True, backup=order.trail.backup, entry=told)


def _written(order: Order, planned: Plan, config: Path, made: Mapping[str, Any]) -> Result:
    from holdfast.cli.wrap import overlays
    from holdfast.cli.wrap.discover import discover

    if order.connect and sys.stderr.isatty():
        console(error=True).print(f"asking {len(planned.wrapped)} servers for their tools ...", style="dim")
    listed = discover(planned, order.out, stand_ins(planned)) if order.connect else {}
    body = files.config(planned, order.trail.file.name, {n: said.settings for n, said in listed.items()})
    _check(planned, body, order.out)
    to_add, fates = "", {config: _put_config(config, body, planned)}
    if fates[config] in (Fate.KEPT, Fate.OTHERS):
        missing = files.missing(config.read_text(encoding="utf-8"), planned.wrapped)
        to_add = files.lines(missing) if missing else ""
    fates |= overlays.write(planned, order.out, listed)
    locked, notes = overlays.lock(planned, order.out, listed)
    return Result(
        file=order.trail.file,
        plan=planned,
        config=config,
        listed=listed,
        fates=fates | locked,
        notes=tuple(notes),
        name=name_of(planned),
        entry=shown(planned, made),
        to_add=to_add,
    )


def _put_config(config: Path, body: str, planned: Plan) -> Fate:
    """Where the file there is ours and fronts other servers too, writing it again would lose those."""
    there = config.read_text(encoding="utf-8") if config.exists() else ""
    if files.untouched(there) and files.others(there, planned.wrapped):
        return Fate.OTHERS
    return files.put(config, body)


def _check(planned: Plan, body: str, out: Path) -> None:
    """What is written can be read; raises ConfigError with what is wrong in the client's words."""
    import yaml

    from holdfast.config import parse as checked

    checked(yaml.safe_load(body), folder=out, source="what would be written", environ=stand_ins(planned))


def stand_ins(planned: Plan) -> dict[str, str]:
    """Every variable the configuration refers to, with something in place of what is not known now."""
    wholes = {one.settings.get("url") for one in planned.wrapped}
    return dict(os.environ) | {
        name: reference.value or ("http://127.0.0.1/" if f"${{{name}}}" in wholes else "unset")
        for name, reference in planned.references.given.items()
    }


def _chosen(file: Path, text: str, project: str | None) -> Setup:
    found = _setups(file, text)
    if project is not None:
        wanted = Path(project).absolute()
        found = [setup for setup in found if setup.project and Path(setup.project) == wanted]
        if not found:
            raise ConfigError(f"{file.name!r} has no servers for the project {project!r}")
        return found[0]
    general = [setup for setup in found if setup.project is None]
    if not general and len(found) > 1:
        there = "\n  ".join(f"--project {setup.project}" for setup in found)
        raise ConfigError(f"{file.name!r} has servers for several projects; choose one\n  {there}")
    return (general or found)[0]


def _setups(file: Path, text: str) -> list[Setup]:
    try:
        found = setups(file, parse(text))
        for setup in found:
            if twice := next(setup.node.twice(), None):
                raise ConfigError(f"{twice!r} is given twice below {setup.place!r}; remove one of them")
    except ConfigError as error:
        raise ConfigError(f"{str(file)!r} cannot be read: {error}") from None
    return found


def _elsewhere(file: Path, text: str, chosen: Setup) -> list[str]:
    """Servers of other places in the file, which stay as they are: one project's are not another's."""
    return [
        f"{setup.place} has servers too; to wrap those: "
        + (f"--project {setup.project} --out DIR" if setup.project else "leave out --project")
        for setup in _setups(file, text)
        if setup.path != chosen.path
    ]


def _bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"there is no {str(file)!r}; give the file of your MCP client") from None
    except OSError as error:
        raise ConfigError(f"cannot read {str(file)!r}: {(error.strerror or '').lower()}") from None


def _text(file: Path, content: bytes | None = None) -> str:
    content = _bytes(file) if content is None else content
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{str(file)!r} is not UTF-8 text; save it as such") from None
