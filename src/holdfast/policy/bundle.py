"""Which policies belong together, and under which version?

A bundle is a folder of `.cedar` files, with an optional `bundle.yaml` that names and describes it. Its
version is its name and a digest of everything in it: two bundles with one version are the same.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files as resources
from pathlib import Path
from typing import Any

import orjson
import yaml
from cedarpy import policies_to_pst, pst

from holdfast.policy.obligations import Duties, Pin, duties, pins, reason
from holdfast.policy.text import Place, Statement, statements

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
RESERVED = ("none", "starter")
"""Names that mean something else to whoever reads a version."""
ABOUT = "bundle.yaml"
MOST_BYTES = 4_000_000
"""Far more than anybody reviews; every process keeps the text of the bundle in force."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that keeps a bundle from being promoted."""

    place: Place
    text: str
    policy: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


class BadBundle(Exception):
    """It cannot even be read; carries every reason."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


@dataclass(frozen=True)
class Policy:
    """One policy, parsed, with what it is bound to."""

    id: str
    statement: Statement
    tree: pst.Template

    @property
    def permits(self) -> bool:
        return self.tree.effect == "permit"

    @cached_property
    def reason(self) -> str:
        return reason(self.tree.annotations)

    @cached_property
    def duties(self) -> Duties:
        return duties(self.tree.annotations)

    @cached_property
    def entities(self) -> frozenset[pst.EntityUid]:
        """Everything it names."""
        return frozenset(pst.entity_uids(self.tree))

    @cached_property
    def pins(self) -> tuple[Pin, ...]:
        """The contracts it was written for; none: for whatever its scope covers."""
        text = self.tree.annotations.get("contract")
        return () if text is None else pins(text)

    def fits(self, upstream: str | None, tool: str, digest: str) -> bool:
        """Whether it was written for this contract."""
        return not self.pins or (upstream, tool, digest) in self.pins


@dataclass(frozen=True)
class Bundle:
    name: str
    files: Mapping[str, str]
    description: str = ""
    faults: tuple[Problem, ...] = field(default=(), compare=False)
    """What is wrong with the folder itself."""

    @cached_property
    def content(self) -> str:
        """Everything, as the store keeps it."""
        tree = {"name": self.name, "description": self.description, "files": dict(sorted(self.files.items()))}
        return orjson.dumps(tree).decode()

    @cached_property
    def version(self) -> str:
        return f"{self.name}/{hashlib.sha256(self.content.encode()).hexdigest()[:12]}"

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        return tuple(s for file, text in sorted(self.files.items()) for s in statements(file, text))

    @classmethod
    def stored(cls, content: str) -> "Bundle":
        tree = orjson.loads(content)
        return cls(tree["name"], tree["files"], tree["description"])


def parsed(statement: Statement) -> pst.Template:
    """Raises ValueError in Cedar's words, or ours where it is no policy that can be used here."""
    found = policies_to_pst(statement.text)
    if found.templates:
        raise ValueError("it has a slot ('?principal' or '?resource'); write the policy out for each")
    [policy] = found.static_policies.values()
    return policy


def load(folder: Path) -> Bundle:
    """Read a folder; what is wrong in it is kept in `faults`. Raises BadBundle when there is none."""
    if not folder.is_dir():
        raise BadBundle([Problem(Place(folder.name), f"there is no folder {str(folder)!r}; make it")])
    faults: list[Problem] = []
    texts = dict(_texts(folder, faults))
    if not texts and not faults:
        faults.append(Problem(Place(folder.name), "there is no '.cedar' file in this folder; add one"))
    name, description = _about(folder, faults)
    return Bundle(name, texts, description, tuple(faults))


def starter() -> Bundle:
    """The bundle that is shipped for development."""
    folder = resources("holdfast.policy").joinpath("starter")
    texts = {file.name: file.read_text("utf-8") for file in folder.iterdir() if file.name.endswith(".cedar")}
    return Bundle("starter", texts, "for development on this machine only")


def _texts(folder: Path, faults: list[Problem]) -> Iterator[tuple[str, str]]:
    room = MOST_BYTES
    for path in sorted(folder.rglob("*.cedar")):
        name = path.relative_to(folder).as_posix()
        try:
            text = path.read_text("utf-8")
        except (UnicodeDecodeError, OSError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            faults.append(Problem(Place(name), f"it cannot be read: {why}"))
            continue
        room -= len(text)
        if room < 0:
            faults.append(Problem(Place(name), f"the bundle has more than {MOST_BYTES} characters; split it"))
            return
        yield name, text


def _about(folder: Path, faults: list[Problem]) -> tuple[str, str]:
    path = folder / ABOUT
    default = folder.resolve().name.lower()
    default = default if NAME.fullmatch(default) and default not in RESERVED else "bundle"
    if not path.exists():
        return default, ""
    said = _read_about(path, faults)
    name, description = said.get("name", default), said.get("description", "")
    if unknown := sorted(map(str, said.keys() - {"name", "description"})):
        text = f"unknown key {unknown[0]!r}; known are 'name' and 'description'"
        faults.append(Problem(Place(ABOUT), text))
    if not isinstance(name, str) or not NAME.fullmatch(name):
        faults.append(Problem(Place(ABOUT), "'name' must be lower-case letters, digits and '-'"))
    elif name in RESERVED:
        faults.append(Problem(Place(ABOUT), f"the name {name!r} means something else here; choose another"))
    return str(name), str(description)


def _read_about(path: Path, faults: list[Problem]) -> dict[Any, Any]:
    try:
        said = yaml.safe_load(path.read_text("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, OSError):
        faults.append(Problem(Place(ABOUT), "it is not valid YAML"))
        return {}
    if not isinstance(said, dict):
        faults.append(Problem(Place(ABOUT), "it must be a mapping with 'name' and 'description'"))
        return {}
    return said
