"""How does a chain look as a graph? Mermaid, which many pages and editors draw."""

from collections.abc import Mapping

from holdfast.chains.declared import Branch, Chain, Choice, Node, Parallel, Repeat, Step, Transaction
from holdfast.chains.faults import shown

_STYLES = {
    "done": "fill:#e3f3e7,stroke:#1b6e37",
    "failed": "fill:#fbe6e3,stroke:#ab1f14",
    "undone": "fill:#f0e7f9,stroke:#6b35a0",
    "skipped": "fill:#f2efea,stroke:#625d55",
    "waiting": "fill:#fbf0d6,stroke:#835600",
}

_BRACKETS = frozenset("()[]{}")


def mermaid(chain: Chain, states: Mapping[str, str] | None = None) -> str:
    """`states`: what became of steps, by their names."""
    drawn = _Drawing()
    last = drawn.body(chain.body, ["start"])
    drawn.lines = ["flowchart TD", "  start([input])", *drawn.lines, "  finish([output])"]
    drawn.link(last, "finish")
    used = {state for name, state in (states or {}).items() if name in drawn.names and state in _STYLES}
    for name, state in (states or {}).items():
        if name in drawn.names and state in _STYLES:
            drawn.lines.append(f"  class {name} {state}")
    drawn.lines += [f"  classDef {state} {_STYLES[state]}" for state in sorted(used)]
    return "\n".join(drawn.lines) + "\n"


class _Drawing:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: set[str] = set()

    def body(self, body: tuple[Node, ...], before: list[str], label: str = "") -> list[str]:
        """Draws nodes after `before`; where the next is to begin."""
        for node in body:
            before = self._node(node, before, label)
            label = ""
        return before

    def link(self, before: list[str], to: str, label: str = "") -> None:
        said = f"|{_label(label)}|" if label else ""
        self.lines += [f"  {name} -->{said} {to}" for name in before]

    def _node(self, node: Node, before: list[str], label: str) -> list[str]:
        match node:
            case Step():
                return self._step(node, before, label)
            case Parallel():
                return self._parallel(node, before, label)
            case Branch():
                return self._branch(node, before, label)
            case Choice():
                return self._choice(node, before, label)
            case Repeat():
                return self._repeat(node, before, label)
            case Transaction():
                return self._transaction(node, before, label)

    def _step(self, step: Step, before: list[str], label: str) -> list[str]:
        self.names.add(step.id)
        self.lines.append(f'  {step.id}["{_text(step.id)}<br/>{_text(step.tool)}"]')
        self.link(before, step.id, label or (f"if {step.when}" if step.when else ""))
        if step.undo is not None:
            self.lines += [
                f'  {step.id}_undo["{_text(step.undo.tool)}"]',
                f"  {step.id} -.->|undo| {step.id}_undo",
            ]
        return [step.id]

    def _parallel(self, node: Parallel, before: list[str], label: str) -> list[str]:
        name = _name(node)
        join = {"quorum": f"quorum {node.join.quorum:g}", "best": "best"}.get(node.join.kind, node.join.kind)
        self.lines += [f"  {name}_fork{{{{ }}}}", f"  {name}_join{{{{{join}}}}}"]
        self.link(before, f"{name}_fork", label)
        for branch in node.branches:
            self.link(self.body(branch, [f"{name}_fork"]), f"{name}_join")
        return [f"{name}_join"]

    def _branch(self, node: Branch, before: list[str], label: str) -> list[str]:
        name = _name(node)
        self.lines.append(f"  {name}{{which}}")
        self.link(before, name, label)
        ends: list[str] = []
        for arm in node.arms:
            ends += self.body(arm.body, [name], arm.when or "otherwise")
        return ends if any(arm.when is None for arm in node.arms) else [*ends, name]

    def _choice(self, node: Choice, before: list[str], label: str) -> list[str]:
        """Who is asked, then the way that was named."""
        name = _name(node)
        self.lines.append(f"  {name}{{which}}")
        self.link(self._step(node.ask, before, label), name)
        ends: list[str] = []
        for case in node.cases:
            ends += self.body(case.body, [name], case.name)
        if node.otherwise:
            return ends + self.body(node.otherwise, [name], "otherwise")
        self.lines.append(f"  {name}_person[/a person chooses/]")
        self.link([name], f"{name}_person", f"less than {node.threshold:g} sure")
        self.lines.append(f"  {name}_person -.-> {name}")
        return ends

    def _transaction(self, node: Transaction, before: list[str], label: str) -> list[str]:
        """All of it, or back to before it."""
        name = _name(node)
        ends = self.body(node.body, self._step(node.begin, before, label))
        self.lines.append(f"  {name}_commit[[commit]]")
        self.link(ends, f"{name}_commit")
        self.lines.append(f"  {name}_commit -.->|or roll back| {node.begin.id}")
        return [f"{name}_commit"]

    def _repeat(self, node: Repeat, before: list[str], label: str) -> list[str]:
        name = _name(node)
        self.lines.append(f"  {name}(({node.most} x))")
        self.link(before, name, label)
        ends = self.body(node.body, [name])
        self.link(ends, name, "again")
        return ends


def _name(node: Parallel | Branch | Choice | Repeat | Transaction) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in shown(node.place)).strip("_") or "node"


def _label(text: str) -> str:
    """Brackets are what boxes are drawn with, outside of quotes."""
    return f'"{_text(text)}"' if _BRACKETS.intersection(text) else _text(text)


def _text(text: str) -> str:
    """Nothing in it is Mermaid's own."""
    plain = text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
    return plain.replace("|", "&#124;").replace("\n", " ")
