"""How does a file become a configuration?"""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from holdfast.config.explain import explain, kind
from holdfast.config.place import Fault, Place, like
from holdfast.config.references import misplaced, written_out
from holdfast.config.tree import Config
from holdfast.config.unbuilt import without_unbuilt
from holdfast.model.errors import ConfigError

VARIABLE = re.compile(r"\$(\$?)\{([A-Za-z_][A-Za-z0-9_]*)\}")


def load(path: str | os.PathLike[str], environ: Mapping[str, str] | None = None) -> Config:
    """Read a file; raises ConfigError with everything that is wrong with it."""
    file = Path(path).absolute()
    return parse(_read(file), folder=file.parent, source=str(path), environ=environ)


def parse(
    tree: Mapping[str, Any],
    *,
    folder: Path | None = None,
    source: str = "config",
    environ: Mapping[str, str] | None = None,
) -> Config:
    """Check a mapping; raises ConfigError with everything that is wrong with it."""
    faults: list[Fault] = []
    plain = _expand(tree, (), os.environ if environ is None else environ, faults)
    plain = without_unbuilt(plain, (), faults)
    try:
        config = Config.model_validate(plain)
    except ValidationError as error:
        faults += explain(error, plain, faults)
    if faults:
        raise ConfigError("\n  ".join([f"{source} cannot be used", *map(str, faults)]))
    return config.placed(folder or Path.cwd(), source)


def _read(file: Path) -> Mapping[str, Any]:
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"there is no {file.name!r} in {str(file.parent)!r}; give --config FILE") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{file.name} is not UTF-8 text; save it as such") from None
    except OSError as error:
        raise ConfigError(f"cannot read {str(file)!r}: {error.strerror}") from None
    tree = _toml(file.name, text) if file.suffix == ".toml" else _yaml(file.name, text)
    if tree is None:  # an empty file
        return {}
    if not isinstance(tree, dict):
        raise ConfigError(f"{file.name} must be a mapping of keys, not {kind(tree)}")
    return tree


def _toml(name: str, text: str) -> Any:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name} is not valid TOML: {error}") from None


def _yaml(name: str, text: str) -> Any:
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigError(f"{name} is not valid YAML{where}: {error.problem}") from None
    except (yaml.YAMLError, RecursionError):
        raise ConfigError(f"{name} is not valid YAML") from None


class _Loader(yaml.SafeLoader):
    """YAML without the trap of a key given twice, where the last one silently wins."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    problem = f"key {key.value!r} is given twice"
                    raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def _expand(node: Any, here: Place, environ: Mapping[str, str], faults: list[Fault]) -> Any:
    """`${NAME}` becomes the variable's value; `$${NAME}` stays as `${NAME}`, `${secret:NAME}` for later."""
    match node:
        case Mapping():
            return {str(k): _expand(v, (*here, str(k)), environ, faults) for k, v in node.items()}
        case list() | tuple():
            return [_expand(v, (*here, str(i)), environ, faults) for i, v in enumerate(node)]
        case str() if like(here, "auth.people.*.approver_secret"):
            return _secret(node, here, environ, faults)
        case str():
            missing = [
                name for escaped, name in VARIABLE.findall(node) if not escaped and name not in environ
            ]
            faults += [Fault(here, f"environment variable {name!r} is not set; set it") for name in missing]
            if "${secret:" in node and (fault := misplaced(here, node)) is not None:
                faults.append(fault)
            if (fault := written_out(here, node)) is not None:
                faults.append(fault)
            return VARIABLE.sub(lambda m: m[0][1:] if m[1] else environ.get(m[2], m[0]), node)
        case _:
            return node


def _secret(value: str, here: Place, environ: Mapping[str, str], faults: list[Fault]) -> str:
    """A secret is never in the file. Where its variable is unset, nobody can prove to be that person."""
    if value.startswith("scrypt:"):
        return value
    if (named := VARIABLE.fullmatch(value)) and not named[1]:
        return f"plain:{environ.get(named[2], '')}"
    faults.append(Fault(here, "no secret in the file; write '${NAME}', or what 'holdfast keys hash' prints"))
    return "plain:"
