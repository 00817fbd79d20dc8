"""How is a chain written down, so that reading it gives the same chain?"""

from typing import Any

from holdfast.chains.declared import (
    Arm,
    Branch,
    Chain,
    Choice,
    Join,
    Node,
    Parallel,
    Repeat,
    Showing,
    Step,
    Transaction,
)


def written(chain: Chain) -> dict[str, Any]:
    """As `reading.read` takes it."""
    tree: dict[str, Any] = {
        "chain": chain.name,
        "version": chain.version,
        "description": chain.description,
        "input": dict(chain.input_schema),
        "output": chain.output,
        "output_schema": None if chain.output_schema is None else dict(chain.output_schema),
        "deadline_ms": chain.deadline_ms,
        "saga": chain.saga,
        "steps": _body(chain.body),
    }
    return {name: value for name, value in tree.items() if value not in (None, "")}


def _body(body: tuple[Node, ...]) -> list[dict[str, Any]]:
    return [_node(node) for node in body]


def _node(node: Node) -> dict[str, Any]:
    match node:
        case Step():
            return _step(node)
        case Parallel():
            return {"parallel": [_body(branch) for branch in node.branches], "join": _join(node.join)}
        case Branch():
            return {"branch": [_arm(arm) for arm in node.arms]}
        case Choice():
            return {"branch": _choice(node)}
        case Repeat():
            until = {} if node.until is None else {"until": node.until}
            return {"repeat": node.most, **until, "do": _body(node.body)}
        case Transaction():
            return {"transaction": {"begin": _step(node.begin), "steps": _body(node.body)}}


def step_written(step: Step) -> dict[str, Any]:
    """One step, as `written` has it."""
    return _step(step)


def _showing(showing: Showing) -> dict[str, Any]:
    part = {} if showing.value is None else {"value": showing.value}
    return {"read": {"tool": showing.tool, "with": dict(showing.arguments)}, **part}


def _step(step: Step) -> dict[str, Any]:
    undo = step.undo
    said: dict[str, Any] = {
        "id": step.id,
        "tool": step.tool,
        "version": step.version,
        "with": dict(step.arguments) or None,
        "when": step.when,
        "retries": step.retries or None,
        "share": step.share,
        "failure": step.failure,
        "fallbacks": list(step.fallbacks) or None,
        "undo": None if undo is None else {"tool": undo.tool, "with": dict(undo.arguments)},
        "prove": None if step.prove is None else _showing(step.prove),
    }
    return {name: value for name, value in said.items() if value is not None}


def _arm(arm: Arm) -> dict[str, Any]:
    return {"otherwise": _body(arm.body)} if arm.when is None else {"when": arm.when, "do": _body(arm.body)}


def _choice(node: Choice) -> dict[str, Any]:
    rest = {"otherwise": _body(node.otherwise)} if node.otherwise else {}
    return {
        "ask": _step(node.ask),
        "choice": node.choice,
        "confidence": node.confidence,
        "threshold": node.threshold,
        "cases": {case.name: _body(case.body) for case in node.cases},
        **rest,
    }


def _join(join: Join) -> Any:
    match join.kind:
        case "quorum":
            return {"quorum": join.quorum}
        case "best":
            return {"best": join.score}
        case kind:
            return kind
