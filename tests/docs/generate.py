"""Writes the reference pages that are read off the code: `python -m tests.docs.generate`."""

from collections.abc import Callable, Iterable

from holdfast.model.defaults import FIGURES
from holdfast.model.errors import TABLE
from tests.docs.pages import ROOT
from tests.telemetry.reference import telemetry

CODES = """# Codes

Every refusal and every failure carries one of these {count} codes; the set is closed. The table is `TABLE` in
`src/holdfast/model/errors.py`; this page is generated from it.

`retryable` is the authority: do not repeat what it does not call retryable, whatever the HTTP status
suggests. *Repairable* means that another proposal may pass. *Fail closed* means stop: trying around it is
not the answer. *Escalate* means that a person should know.

"""

WIRES = """
## On the wire

The HTTP status of `APPROVAL_REQUIRED` is that of a held call. Over MCP `result` is a tool result with
`isError`, `protocol` an error of the protocol itself.

"""

FIGURES_PAGE = """# Figures

What holds where neither a contract nor the configuration says otherwise. The table is
`src/holdfast/model/defaults.py`; this page is generated from it. Figures of parts that are not built yet are
listed too: they are promises, and their tests come with those parts.

"""

_FLAGS = {"r": "retryable", "p": "repairable", "a": "needs approval", "f": "fail closed", "e": "escalate"}


def codes() -> str:
    told = table(
        ("code", "next action", "remedy"),
        (
            (f"`{code}`", f"`{entry.next_action}`", ", ".join(_FLAGS[flag] for flag in entry.flags) or "none")
            for code, entry in TABLE.items()
        ),
    )
    wires = table(
        ("code", "HTTP", "JSON-RPC", "MCP", "gRPC", "family", "taxonomy class"),
        (
            (f"`{code}`", str(e.http), str(e.jsonrpc), e.mcp, e.grpc, e.family, e.s4)
            for code, e in TABLE.items()
        ),
    )
    return CODES.format(count=len(TABLE)) + told + WIRES + wires


def figures() -> str:
    rows = (
        (f"`{f.name}`", f"{f.value:,g}" if f.value < 1e6 else f"{f.value:,.0f}", f.unit, f.why)
        for f in FIGURES
    )
    return FIGURES_PAGE + table(("figure", "value", "unit", "meaning"), rows)


def table(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    return row(headings) + "|---" * len(headings) + "|\n" + "".join(map(row, rows))


def row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


PAGES: dict[str, Callable[[], str]] = {
    "docs/reference/codes.md": codes,
    "docs/reference/figures.md": figures,
    "docs/reference/telemetry.md": telemetry,
}


def main() -> None:
    for name, make in PAGES.items():
        (ROOT / name).write_text(make())


if __name__ == "__main__":
    main()
