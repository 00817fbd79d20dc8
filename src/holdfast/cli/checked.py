"""What is shown of policies that were checked?"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.cli.screen import fail, show, table, text

if TYPE_CHECKING:
    from holdfast.gateway.inspect import Inspected
    from holdfast.policy.bundle import Policy
    from holdfast.policy.effects import Effect
    from holdfast.policy.overlap import Finding

STYLES = {"warning": "yellow", "note": "cyan"}
NAMED = 2
"""Tools that are named in a row; the rest is counted."""

SAID = ("contract", "redact", "verify")
Cell = str | tuple[str, str]


def show_checked(seen: "Inspected") -> None:
    policies = seen.report.policies
    rows = [((p.id, "bold"), p.tree.effect, _asks(p), str(p.statement.place)) for p in policies]
    if rows:
        show(table(("policy", "effect", "asks for", "at"), rows))
    if seen.examination.effects:
        headings = ("policy", "tools", "changes", "for example")
        show(text(""), table(headings, _changes(seen)))
    if seen.examination.findings:
        show(text(""))
    for finding in seen.examination.findings:
        show(text((f"{finding.level}: ", f"bold {STYLES[finding.level]}"), str(finding)))
    for problem in seen.report.problems:
        fail(str(problem))
    if seen.report.ok:
        show(text(""), _summary(seen))


def show_pins(seen: "Inspected") -> None:
    """To be pasted before each policy."""
    if not seen.examination.pins:
        show(text("no policy names its tools; name them in the scope: 'action == Action::\"...\"'"))
    for policy, pins in seen.examination.pins:
        bound = "" if set(policy.pins) != set(pins) else "  bound to them already"
        show(text((f"// {policy.statement.place} {policy.id}{bound}", "dim")))
        show(text(f'@contract("{", ".join(map(str, pins))}")'))


def _summary(seen: "Inspected") -> Any:
    warnings, all_ = len(seen.examination.warnings), len(seen.examination.findings)
    said = [f"{len(seen.report.policies)} policies"]
    said += [f"{warnings} warning{'s' if warnings > 1 else ''}"] if warnings else []
    said += [f"{all_ - warnings} note{'s' if all_ - warnings > 1 else ''}"] if all_ > warnings else []
    return text(("good", "bold green"), f"  {seen.bundle.version}  {', '.join(said)}")


def _asks(policy: "Policy") -> str:
    said = policy.tree.annotations
    shown = [said["approval"]] if "approval" in said else []
    shown += [f"{name} {said[name]}" for name in ("redact", "verify") if name in said]
    return ", ".join(shown)


def _changes(seen: "Inspected") -> Iterator[tuple[Cell, ...]]:
    shown: set[str] = set()
    for effect in seen.examination.effects:
        name = "" if effect.policy in shown else effect.policy
        shown.add(effect.policy)
        yield (
            (name, "bold"),
            _tools(effect.tools),
            (f"{effect.without} \u2192 {effect.with_}", _style(effect.with_)),
            (effect.example, "dim"),
        )
    changed = {effect.policy for effect in seen.examination.effects}
    for policy in seen.report.policies:
        if policy.id not in changed:
            yield (policy.id, "bold"), "", ("nothing was found that it changes", "dim"), ""


def _style(outcome: str) -> str:
    return {"refused": "red", "allowed": "green"}.get(outcome.partition(",")[0], "yellow")


def _tools(names: Sequence[str]) -> str:
    if len(names) <= NAMED:
        return ", ".join(names)
    return f"{names[0]} and {len(names) - 1} more"


def told(seen: "Inspected") -> dict[str, Any]:
    """For programs."""
    return {
        "version": seen.bundle.version,
        "ok": seen.report.ok,
        "policies": [
            {
                "id": p.id,
                "effect": p.tree.effect,
                "approval": p.tree.annotations.get("approval"),
                "place": str(p.statement.place),
                **{name: text for name, text in p.tree.annotations.items() if name in SAID},
            }
            for p in seen.report.policies
        ],
        "problems": [
            {"file": p.place.file, "line": p.place.line, "column": p.place.column, "text": p.text}
            for p in seen.report.problems
        ],
        "findings": [_finding(one) for one in seen.examination.findings],
        "changes": [_change(one) for one in seen.examination.effects],
        "pins": [
            {"policy": policy.id, "contract": ", ".join(map(str, pins))}
            for policy, pins in seen.examination.pins
        ],
    }


def _finding(one: "Finding") -> dict[str, Any]:
    return {
        "kind": one.kind,
        "level": one.level,
        "policy": one.policy,
        "with": one.with_ or None,
        "file": one.place.file,
        "line": one.place.line,
        "column": one.place.column,
        "text": one.text,
    }


def _change(one: "Effect") -> dict[str, Any]:
    return one.to_dict()
