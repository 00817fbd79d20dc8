"""A contract made ready to be used on every call: everything compiled once, at admission."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.model.contract import Compensation, Contract, Reading
from holdfast.model.contract import Job as JobText
from holdfast.model.contract import Rule as RuleText
from holdfast.model.contract import Session as SessionText
from holdfast.model.expression import Expression, ExpressionError, Template
from holdfast.model.fields import FieldError
from holdfast.model.locks import Locks, locks
from holdfast.model.schema import Defaults, Validator, compile_schema
from holdfast.model.upstream_session import Role
from holdfast.model.vocabulary import Severity

Check = Callable[[Mapping[str, Any]], Awaitable[str | None] | str | None]
"""A semantic validator written in Python: returns what is wrong, or None."""

# What an expression may speak of, by where it stands.
ARGS = frozenset({"args"})
KEYED = ARGS | {"key"}
TARGET = ARGS | {"state"}
RESULT = ARGS | {"result"}
AFTER = ARGS | {"result", "state"}
EVIDENCE = ARGS | {"key", "state"}
ANSWER = frozenset({"result"})
NAMED = ARGS | {"key", "job"}
SEEN = frozenset({"state"})


@dataclass(frozen=True, slots=True)
class Rule:
    holds: Expression
    message: str
    path: str
    severity: Severity = Severity.CRITICAL

    @classmethod
    def compile(cls, text: RuleText, names: frozenset[str]) -> "Rule":
        severity = getattr(text, "severity", Severity.CRITICAL)
        return cls(Expression(text.holds, names), text.message, text.path, severity)


def broken(rules: Iterable[Rule], variables: Mapping[str, Any]) -> list[FieldError]:
    """The rules that are not met; one that cannot be evaluated has not been met."""
    faults = []
    for rule in rules:
        try:
            if rule.holds.holds(variables):
                continue
            said = rule.message
        except ExpressionError as error:
            said = f"{rule.message} ({error})"
        faults.append(FieldError(rule.path, rule.holds.source, "", said))
    return faults


@dataclass(frozen=True, slots=True)
class Read:
    tool: str
    arguments: Template

    @classmethod
    def compile(cls, reading: Reading | Compensation, names: frozenset[str]) -> "Read":
        return cls(reading.tool, Template(reading.arguments, names))


@dataclass(frozen=True, slots=True)
class Migrate:
    to: str
    arguments: Template | None


@dataclass(frozen=True, slots=True)
class State:
    read: Read
    version: Expression | None
    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class Post:
    read: Read
    holds: Expression
    message: str
    delay_s: float
    compensate: bool


@dataclass(frozen=True, slots=True)
class Probe:
    read: Read
    committed: Expression
    result: Expression | None
    settle_after_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """How what it submits is asked after; EXE-6."""

    said: JobText
    id: Expression
    poll: Read
    done: Expression
    failed: Expression | None
    result: Expression | None
    progress: Expression | None
    ends_in_s: Expression | None
    cancel: Read | None

    @classmethod
    def compile(cls, said: JobText) -> "Job":
        return cls(
            said=said,
            id=Expression(said.id, RESULT),
            poll=Read.compile(said.poll, NAMED),
            done=Expression(said.done, SEEN),
            failed=_seen(said.failed),
            result=_seen(said.result),
            progress=_seen(said.progress),
            ends_in_s=_seen(said.ends_in_s),
            cancel=None if said.cancel is None else Read.compile(said.cancel, NAMED),
        )


def _seen(source: str | None) -> Expression | None:
    return None if source is None else Expression(source, SEEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class InSession:
    """Its part in a session at the upstream; EXE-8."""

    name: str
    role: Role
    handle: Expression | None
    """Of `begin`: what the upstream calls the session, over `result`."""
    argument: str
    """Of the others: the argument that takes it."""
    idle_s: float

    @classmethod
    def compile(cls, said: SessionText) -> "InSession":
        begins = said.role == "begin"
        handle = Expression(said.handle, ANSWER) if begins else None
        argument = "" if begins else said.handle
        return cls(name=said.name, role=said.role, handle=handle, argument=argument, idle_s=said.idle_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One admitted tool version."""

    contract: Contract
    input: Validator
    output: Validator | None
    defaults: Defaults
    semantics: tuple[Rule, ...]
    """Rules over the arguments alone."""
    situation: tuple[Rule, ...]
    """Rules that also need looked-up state: judged after replay, since that state is what a call changes."""
    checks: tuple[Check, ...]
    lookups: dict[str, Read]
    state: State | None
    sanity: tuple[Rule, ...]
    postconditions: tuple[Post, ...]
    probe: Probe | None
    preview: Read | None
    in_band: Expression | None
    migration: Migrate | None = None
    compensation: Read | None = None
    """The call that takes the effect back; over `args` and `result`."""
    job: Job | None = None
    """What it submits; None where its answer is the outcome."""
    session: InSession | None = None
    """None where it works in no session of its upstream."""
    writes: bool = field(init=False)
    """Whether a call may change anything."""
    locks: Locks | None = field(init=False)
    """What nobody else may change while a call does; None where that is not told."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "writes", self.contract.effect.writes)
        object.__setattr__(self, "locks", locks(self.contract))

    @classmethod
    def compile(cls, contract: Contract, checks: tuple[Check, ...] = ()) -> "Tool":
        """Raises ExpressionError or SchemaError; admission has looked for all of them before."""
        face, effects = contract.affordance, contract.transactional
        state, probe, preview = contract.state, effects.probe, effects.preview
        rules = [Rule.compile(r, ARGS | set(contract.lookups)) for r in contract.semantics]
        return cls(
            contract=contract,
            input=compile_schema(face.input_schema),
            output=compile_schema(face.output_schema) if face.output_schema else None,
            defaults=Defaults(face.input_schema),
            semantics=tuple(rule for rule in rules if not rule.holds.uses & contract.lookups.keys()),
            situation=tuple(rule for rule in rules if rule.holds.uses & contract.lookups.keys()),
            checks=checks,
            lookups={name: Read.compile(r, ARGS) for name, r in contract.lookups.items()},
            state=None
            if state is None
            else State(
                Read.compile(state.read, ARGS),
                None if state.version is None else Expression(state.version, TARGET),
                tuple(Rule.compile(r, TARGET) for r in state.rules),
            ),
            sanity=tuple(Rule.compile(r, RESULT) for r in contract.sanity),
            postconditions=tuple(
                Post(
                    Read.compile(p.read, RESULT),
                    Expression(p.holds, AFTER),
                    p.message,
                    p.delay_s,
                    p.on_failure == "compensate",
                )
                for p in effects.postconditions
            ),
            probe=None
            if probe is None
            else Probe(
                Read.compile(probe.read, KEYED),
                Expression(probe.committed, EVIDENCE),
                None if probe.result is None else Expression(probe.result, EVIDENCE),
                probe.settle_after_s,
            ),
            preview=None if preview is None or preview.read is None else Read.compile(preview.read, ARGS),
            in_band=None
            if contract.error_contract.in_band is None
            else Expression(contract.error_contract.in_band, ANSWER),
            migration=None
            if (moved := contract.identity.migration) is None
            else Migrate(moved.to, None if moved.arguments is None else Template(moved.arguments, ARGS)),
            compensation=None if effects.compensation is None else Read.compile(effects.compensation, RESULT),
            session=None if effects.session is None else InSession.compile(effects.session),
            job=None if contract.runtime.job is None else Job.compile(contract.runtime.job),
        )
