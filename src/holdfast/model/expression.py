"""What does a small declared expression say about some data?

The Common Expression Language: no loops without a bound, no side effects, no
access to anything that was not handed in. Size limits stand in for the cost
limit the engine lacks.
"""

import importlib
import importlib.machinery
import importlib.util
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

MAX_SOURCE = 2048
MAX_NESTING = 24
MAX_STEPS = 250_000
"""Of loops inside loops; about half a second."""
_PARSING = re.compile(
    r"<input>:(?P<line>\d+):(?P<column>\d+): (?:Syntax error: )?(?P<said>.*?)(?: expecting .*)?$",
    re.MULTILINE,
)
_MACROS = frozenset({"all", "exists", "exists_one", "map", "filter"})
_OPENING = re.compile(rf"\.\s*(?:{'|'.join(sorted(_MACROS))})\s*\(|[()]")
_LITERAL = re.compile(r"""\"(?:[^"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'""")


def _engine() -> ModuleType:
    """Load the extension itself: `import cel` would also import its command line (0.6 s)."""
    spec = importlib.util.find_spec("cel")
    if spec is None or spec.origin is None:
        raise ImportError("package 'common-expression-language' is missing; install holdfast again")
    suffixes = tuple(importlib.machinery.EXTENSION_SUFFIXES)
    found = [p for p in Path(spec.origin).parent.glob("cel.*") if p.name.endswith(suffixes)]
    if not found:  # another layout than the one known: the slow import still works
        return importlib.import_module("cel")
    loader = importlib.machinery.ExtensionFileLoader("cel", str(found[0]))
    extension = importlib.util.spec_from_loader("cel", loader, origin=str(found[0]))
    if extension is None:
        raise ImportError("the expression engine cannot be loaded; install holdfast again")
    module = importlib.util.module_from_spec(extension)
    loader.exec_module(module)
    return module


_cel = _engine()


class ExpressionError(ValueError):
    """The expression cannot be compiled, or cannot be evaluated on this data."""


class Expression:
    """A compiled expression over the names it was compiled for."""

    __slots__ = ("_loops", "_program", "source", "uses")

    def __init__(self, source: str, names: frozenset[str] | set[str]) -> None:
        if len(source) > MAX_SOURCE:
            raise ExpressionError(f"expression is longer than {MAX_SOURCE} characters")
        if _nesting(source) > MAX_NESTING:
            raise ExpressionError(f"expression is nested deeper than {MAX_NESTING} levels")
        try:
            self._program = _cel.compile(source)
        except Exception as error:
            raise ExpressionError(f"expression {source!r} does not compile: {_fault(error)}") from error
        unknown = {name for name in self._program.variables() if name not in names} - _bound(source)
        if unknown:
            raise ExpressionError(
                f"expression {source!r} uses unknown names {sorted(unknown)}; known are {sorted(names)}"
            )
        self.source = source
        self.uses = names & set(self._program.variables())
        """The names it reads."""
        self._loops = _loops(source)

    def evaluate(self, variables: Mapping[str, Any]) -> Any:
        if self._loops > 1 and _longest(variables) ** self._loops > MAX_STEPS:
            raise ExpressionError(
                f"expression {self.source!r} loops too often over this much data; send less"
            )
        try:
            return self._program.execute(_cel.Context(variables=dict(variables)))
        except Exception as error:
            raise ExpressionError(f"expression {self.source!r} fails: {_first_line(error)}") from error

    def holds(self, variables: Mapping[str, Any]) -> bool:
        """True only for true: an expression that gives anything else is in error."""
        value = self.evaluate(variables)
        if not isinstance(value, bool):
            raise ExpressionError(
                f"expression {self.source!r} gives {type(value).__name__}, not true or false"
            )
        return value


class Template:
    """Arguments of a reading: strings that start with `=` are expressions."""

    __slots__ = ("_fill",)

    def __init__(self, template: Any, names: frozenset[str] | set[str]) -> None:
        self._fill: Callable[[Mapping[str, Any]], Any] = _compile_template(template, names)

    def fill(self, variables: Mapping[str, Any]) -> Any:
        return self._fill(variables)


def _compile_template(template: Any, names: frozenset[str] | set[str]) -> Callable[[Mapping[str, Any]], Any]:
    if isinstance(template, str) and template.startswith("="):
        return Expression(template[1:], names).evaluate
    if isinstance(template, dict):
        members = {key: _compile_template(value, names) for key, value in template.items()}
        return lambda variables: {key: fill(variables) for key, fill in members.items()}
    if isinstance(template, list | tuple):
        items = [_compile_template(value, names) for value in template]
        return lambda variables: [fill(variables) for fill in items]
    return lambda variables: template


def _nesting(source: str) -> int:
    depth = deepest = 0
    for char in source:
        if char in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in ")]}":
            depth -= 1
    return deepest


def _loops(source: str) -> int:
    """How many loops stand inside one another."""
    open_brackets: list[bool] = []
    deepest = 0
    for token in _OPENING.findall(_LITERAL.sub("''", source)):
        if token == ")":
            open_brackets[-1:] = []
        else:
            open_brackets.append(token != "(")
            deepest = max(deepest, sum(open_brackets))
    return deepest


def _longest(data: Any) -> int:
    """The most a single loop can run over this data."""
    longest = 0
    queue = [data]
    while queue:
        node = queue.pop()
        if isinstance(node, Mapping):
            longest = max(longest, len(node))
            queue.extend(node.values())
        elif isinstance(node, list | tuple):
            longest = max(longest, len(node))
            queue.extend(node)
    return longest


def _bound(source: str) -> set[str]:
    """Names a macro such as `all(x, ...)` binds."""
    names = set()
    for macro in _MACROS:
        for part in source.split(f".{macro}(")[1:]:
            name = part.split(",", 1)[0].strip()
            if name.isidentifier():
                names.add(name)
    return names


def _fault(error: Exception) -> str:
    """Where it goes wrong and what is there; not the grammar's list of all that might have been."""
    found = _PARSING.search(str(error))
    if found is None:
        return _first_line(error)
    said = found["said"].replace("mismatched input '<EOF>'", "something is missing")
    line = "" if found["line"] == "1" else f" of line {found['line']}"
    return f"at character {found['column']}{line}: {said}" + (" at the end" if said != found["said"] else "")


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
