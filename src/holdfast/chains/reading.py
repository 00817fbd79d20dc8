"""How does a file become a chain?

Everything that is wrong with its shape is told at once, each with its place. Whether the tools exist and fit
together is asked later, by `check`.
"""

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from re import compile as pattern
from typing import Any, TypeVar

import yaml

from holdfast.chains.declared import (
    FAILURES,
    Arm,
    Branch,
    Case,
    Chain,
    Choice,
    Join,
    Node,
    Parallel,
    Place,
    Repeat,
    Showing,
    Step,
    Transaction,
    Undoing,
)
from holdfast.chains.faults import Findings
from holdfast.model import defaults
from holdfast.model.errors import ConfigError

T = TypeVar("T")

NAME = pattern(r"[a-z][a-z0-9_-]{0,63}")
STEP = pattern(r"[a-z][a-z0-9_]{0,63}")
"""A step's name is a name in conditions too."""
RESERVED = frozenset({"input", "result", "steps", "true", "false", "null", "in"})
MOST_TIMES = 1000
LONGEST_CASE = 64
_CHAIN = (
    "chain",
    "version",
    "description",
    "input",
    "output",
    "output_schema",
    "deadline_ms",
    "saga",
    "steps",
)
_STEP = ("id", "tool", "version", "with", "when", "retries", "share", "failure", "fallbacks", "undo", "prove")
_ASK = ("id", "tool", "version", "with", "retries", "share", "failure", "fallbacks")
_BEGIN = ("id", "tool", "version", "with", "retries", "share")
_CHOICE = ("ask", "choice", "confidence", "threshold", "cases", "otherwise")
_KINDS = {
    "tool": _STEP,
    "parallel": ("parallel", "join"),
    "branch": ("branch",),
    "repeat": ("repeat", "until", "do"),
    "transaction": ("transaction",),
}


def load(path: Path) -> Chain:
    """Raises ConfigError with everything that is wrong with the file's shape."""
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read the chain '{path}': {error.strerror}") from None
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        mark, why = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise ConfigError(f"'{path.name}' is not valid YAML{where}{f': {why}' if why else ''}") from None
    return read(tree, source=path.name)


def read(tree: Any, source: str = "chain") -> Chain:
    findings = Findings()
    chain = _Reader(findings).chain(tree, source)
    if findings.faults or chain is None:
        raise ConfigError("\n  ".join([f"{source} is no chain", *map(str, findings.faults)]))
    return chain


class _Reader:
    def __init__(self, findings: Findings) -> None:
        self._wrong = findings.wrong
        self._ids: set[str] = set()

    def chain(self, tree: Any, source: str) -> Chain | None:
        if not isinstance(tree, Mapping):
            self._wrong((), "a chain is a mapping with 'chain' and 'steps'")
            return None
        self._known(tree, _CHAIN, ())
        name = tree.get("chain")
        if not isinstance(name, str) or not NAME.fullmatch(name):
            self._wrong(("chain",), "a chain has a name of small letters, digits, '-' and '_'")
        body = self._body(tree.get("steps"), ("steps",))
        deadline = self._given(tree, "deadline_ms", int, (), lambda ms: ms > 0, "a whole number above 0")
        schema = self._given(tree, "input", dict, (), bool, "a JSON Schema of an object")
        answered = self._given(tree, "output_schema", dict, (), bool, "a JSON Schema")
        return Chain(
            name=str(name),
            body=body,
            version=self._given(tree, "version", str, ()) or "1.0.0",
            description=self._given(tree, "description", str, ()) or "",
            input_schema=schema or {"type": "object", "properties": {}},
            output=tree.get("output"),
            output_schema=answered,
            deadline_ms=deadline,
            saga=self._given(tree, "saga", bool, ()) or False,
            source=source,
        )

    def _body(self, tree: Any, place: Place) -> tuple[Node, ...]:
        if isinstance(tree, Mapping):  # one step needs no list
            tree = [tree]
        if not isinstance(tree, Sequence) or isinstance(tree, str) or not tree:
            self._wrong(place, "write a list with one step at least")
            return ()
        found = [self._node(item, (*place, number)) for number, item in enumerate(tree)]
        return tuple(node for node in found if node is not None)

    def _node(self, tree: Any, place: Place) -> Node | None:
        if not isinstance(tree, Mapping):
            self._wrong(place, "a step is a mapping with 'id' and 'tool'")
            return None
        kinds = [kind for kind in _KINDS if kind in tree]
        if len(kinds) != 1:
            self._wrong(place, f"this is one of {', '.join(map(repr, _KINDS))}, and says exactly one of them")
            return None
        self._known(tree, _KINDS[kinds[0]], place)
        read: dict[str, Callable[[Mapping[str, Any], Place], Node]] = {
            "tool": self._step,
            "parallel": self._parallel,
            "branch": self._branch,
            "repeat": self._repeat,
            "transaction": self._transaction,
        }
        return read[kinds[0]](tree, place)

    def _step(self, tree: Mapping[str, Any], place: Place) -> Step:
        name, failure = tree.get("id"), tree.get("failure")
        if not isinstance(name, str) or not STEP.fullmatch(name) or name in RESERVED:
            self._wrong(
                (*place, "id"), "a step has a name of small letters, digits and '_', and no reserved one"
            )
        elif name in self._ids:
            self._wrong((*place, "id"), f"another step is called {name!r} already")
        self._ids.add(str(name))
        if failure is not None and failure not in FAILURES:
            self._wrong((*place, "failure"), f"say one of {', '.join(map(repr, FAILURES))}")
            failure = None
        fallbacks = self._given(tree, "fallbacks", list, place) or []
        if not all(isinstance(tool, str) for tool in fallbacks):
            self._wrong((*place, "fallbacks"), "this is a list of tools")
        if failure == "fallback" and not fallbacks:
            self._wrong((*place, "fallbacks"), "name the tools that stand in for it")
        return Step(
            id=str(name),
            tool=self._given(tree, "tool", str, place) or "",
            arguments=self._given(tree, "with", dict, place) or {},
            version=self._given(tree, "version", str, place),
            when=self._given(tree, "when", str, place),
            retries=self._given(tree, "retries", int, place, lambda n: 0 <= n <= 10, "from 0 to 10") or 0,
            share=self._given(tree, "share", (int, float), place, lambda s: 0 < s < 1, "between 0 and 1"),
            failure=failure,
            fallbacks=tuple(str(tool) for tool in fallbacks),
            undo=self._undoing(tree.get("undo"), (*place, "undo")),
            prove=self._showing(tree.get("prove"), (*place, "prove")),
            place=place,
        )

    def _undoing(self, tree: Any, place: Place) -> Undoing | None:
        if tree is None:
            return None
        if not isinstance(tree, Mapping):
            self._wrong(place, "this is a mapping with 'tool' and 'with'")
            return None
        self._known(tree, ("tool", "with"), place)
        tool = self._given(tree, "tool", str, place)
        if not tool:
            self._wrong((*place, "tool"), "name the tool that takes it back")
        return Undoing(tool=tool or "", arguments=self._given(tree, "with", dict, place) or {})

    def _showing(self, tree: Any, place: Place) -> Showing | None:
        if tree is None:
            return None
        if not isinstance(tree, Mapping) or not isinstance(tree.get("read"), Mapping):
            self._wrong(place, "this is a mapping with 'read: {tool, with}', and 'value' for a part of it")
            return None
        self._known(tree, ("read", "value"), place)
        read, inside = tree["read"], (*place, "read")
        self._known(read, ("tool", "with"), inside)
        tool = self._given(read, "tool", str, inside)
        if not tool:
            self._wrong((*inside, "tool"), "name the tool that reads what this step changes")
        given = self._given(read, "with", dict, inside) or {}
        return Showing(tool=tool or "", arguments=given, value=self._given(tree, "value", str, place))

    def _parallel(self, tree: Mapping[str, Any], place: Place) -> Parallel:
        written = self._given(tree, "parallel", list, place) or []
        if len(written) < 2:
            self._wrong((*place, "parallel"), "name two branches at least")
        inside = (*place, "parallel")
        branches = [self._body(item, (*inside, number)) for number, item in enumerate(written)]
        join = self._join(tree.get("join", "all"), (*place, "join"))
        return Parallel(branches=tuple(branches), join=join, place=place)

    def _join(self, tree: Any, place: Place) -> Join:
        match tree:
            case "all" | "first":
                return Join(kind=tree)
            case {"quorum": int() | float() as share, **rest} if not rest and 0 < share <= 1:
                return Join(kind="quorum", quorum=float(share))
            case {"best": str() as score, **rest} if not rest:
                return Join(kind="best", score=score)
        self._wrong(place, "say 'all', 'first', {quorum: 0.5} with a share, or {best: CEL over 'result'}")
        return Join()

    def _branch(self, tree: Mapping[str, Any], place: Place) -> Branch | Choice:
        if isinstance(tree["branch"], Mapping):
            return self._choice(tree["branch"], (*place, "branch"))
        written = self._given(tree, "branch", list, place) or []
        inside = (*place, "branch")
        arms = [self._arm(arm, (*inside, n), last=n == len(written) - 1) for n, arm in enumerate(written)]
        if not arms:
            self._wrong(inside, "name one arm at least")
        return Branch(arms=tuple(arm for arm in arms if arm is not None), place=place)

    def _arm(self, tree: Any, place: Place, *, last: bool) -> Arm | None:
        match tree:
            case {"when": str() as when, "do": body, **rest} if not rest:
                return Arm(when=when, body=self._body(body, (*place, "do")))
            case {"otherwise": body, **rest} if not rest and last:
                return Arm(when=None, body=self._body(body, (*place, "otherwise")))
        self._wrong(place, "an arm says 'when' and 'do'; the last one may say 'otherwise' alone")
        return None

    def _choice(self, tree: Mapping[str, Any], place: Place) -> Choice:
        self._known(tree, _CHOICE, place)
        named = self._given(tree, "cases", dict, place) or {}
        if not named:
            self._wrong((*place, "cases"), "name one case at least, each with the steps that it leads to")
        sure = self._given(
            tree, "threshold", (int, float), place, lambda t: 0 < t <= 1, "above 0, and 1 at most"
        )
        rest = tree.get("otherwise")
        return Choice(
            ask=self._ask(tree.get("ask"), (*place, "ask")),
            cases=tuple(self._case(name, body, (*place, "cases", str(name))) for name, body in named.items()),
            choice=self._answer(tree, "choice", place),
            confidence=self._answer(tree, "confidence", place),
            threshold=defaults.CHOICE_CONFIDENCE if sure is None else float(sure),
            otherwise=() if rest is None else self._body(rest, (*place, "otherwise")),
            place=place,
        )

    def _ask(self, tree: Any, place: Place) -> Step:
        if not isinstance(tree, Mapping) or "tool" not in tree:
            self._wrong(place, "this is a mapping with 'tool' and 'with': the tool that names a case")
            return Step(id="", tool="", place=place)
        self._known(tree, _ASK, place)
        return self._step({"id": "choice", **tree}, place)

    def _case(self, name: Any, body: Any, place: Place) -> Case:
        if not isinstance(name, str) or not 0 < len(name) <= LONGEST_CASE or not name.isprintable():
            self._wrong(
                place, f"a case has a name of 1 to {LONGEST_CASE} letters; 'yes' and 'no' need quotes"
            )
        return Case(name=str(name), body=self._body(body, place))

    def _answer(self, tree: Mapping[str, Any], name: str, place: Place) -> str:
        """A path into the answer, not into what the chain knows; with or without its `=`."""
        return (self._given(tree, name, str, place) or name).removeprefix("=")

    def _repeat(self, tree: Mapping[str, Any], place: Place) -> Repeat:
        most = self._given(
            tree, "repeat", int, place, lambda n: 1 <= n <= MOST_TIMES, f"from 1 to {MOST_TIMES}"
        )
        body = self._body(tree.get("do"), (*place, "do"))
        return Repeat(most=most or 1, body=body, until=self._given(tree, "until", str, place), place=place)

    def _transaction(self, tree: Mapping[str, Any], place: Place) -> Transaction:
        said, inside = tree["transaction"], (*place, "transaction")
        if not isinstance(said, Mapping) or not isinstance(said.get("begin"), Mapping):
            self._wrong(inside, "this is a mapping with 'begin: {tool, with}' and 'steps'")
            return Transaction(begin=Step(id="", tool=""), body=(), place=place)
        self._known(said, ("begin", "steps"), inside)
        begin = said["begin"]
        self._known(begin, _BEGIN, (*inside, "begin"))
        return Transaction(
            begin=self._step({"id": "transaction", **begin}, (*inside, "begin")),
            body=self._body(said.get("steps"), (*inside, "steps")),
            place=place,
        )

    def _known(self, tree: Mapping[str, Any], names: Sequence[str], place: Place) -> None:
        for name in tree:
            if name not in names:
                near = get_close_matches(str(name), names, 1)
                told = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(names)}"
                self._wrong((*place, str(name)), f"{name!r} is not known here{told}")

    def _given(
        self,
        tree: Mapping[str, Any],
        name: str,
        kind: type[T] | tuple[type[T], ...],
        place: Place,
        good: Callable[[T], bool] = lambda _: True,
        should: str = "",
    ) -> T | None:
        found = tree.get(name)
        if found is None:
            return None
        truth = isinstance(found, bool) and kind is not bool
        if truth or not isinstance(found, kind) or not good(found):
            kinds = kind if isinstance(kind, tuple) else (kind,)
            plain = {str: "text", int: "a whole number", float: "a number", dict: "a mapping", list: "a list"}
            words = should or " or ".join(plain.get(one, one.__name__) for one in kinds)
            self._wrong((*place, name), f"this must be {words}")
            return None
        return found
