"""How are the figures shown: in a terminal, as Markdown, as JSON?"""

import json
import platform
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from holdfast_faults.figures import Figures, Row

COLUMNS = {
    "keys": "keys",
    "deliveries": "deliveries",
    "struck": "in mid-call",
    "effects": "effects",
    "duplicated": "duplicated",
    "most": "most per key",
    "lost_acknowledgements": "done, no effect",
    "unwanted": "unwanted",
    "unknown": "unknown",
    "failed": "failed",
    "refused": "refused",
    "unanswered": "unanswered",
    "errors": "errors",
    "lost": "lost",
    "seconds": "s",
}


def line(row: Row) -> str:
    """One row as it comes in."""
    head = f"{row.gateway:<21}{row.scenario:<22}"
    if row.figures is None:
        return f"{head}{'n/a' if not row.applies else 'broken'}: {row.why}"
    told = row.figures
    return (
        f"{head}{told.keys:>4} keys {told.deliveries:>5} deliveries  duplicated {told.duplicated:>3}"
        f"  done without effect {told.lost_acknowledgements:>3}  unknown {told.unknown:>3}"
        f"  failed {told.failed:>3}  unanswered {told.unanswered:>3}  {told.seconds:>6.1f} s"
    )


def terminal(rows: Sequence[Row]) -> str:
    heads = ["gateway", "scenario", *COLUMNS.values()]
    table = [heads, *([row.gateway, row.scenario, *_cells(row)] for row in rows)]
    whole = [cells for cells in table if len(cells) == len(heads)]
    widths = [max(len(cells[i]) for cells in whole) for i in range(len(heads))]
    widths[0] = max(len(row.gateway) for row in rows) if rows else widths[0]
    widths[1] = max(len(cells[1]) for cells in table)
    return "\n".join(_aligned(cells, widths) for cells in table)


def markdown(rows: Sequence[Row]) -> str:
    """Every figure; then what matters most, gateway by scenario."""
    heads = ["gateway", "scenario", *COLUMNS.values()]
    lines = [_piped(heads), _piped(["---", "---", *("---:" for _ in COLUMNS)])]
    for row in rows:
        cells = _cells(row)
        cells += [""] * (len(COLUMNS) - len(cells))
        lines.append(_piped([row.gateway, row.scenario, *cells]))
    return "\n".join(lines)


def summary(rows: Sequence[Row]) -> str:
    """Duplicated effects by gateway and scenario, of how many keys."""
    scenarios, gateways = _once(row.scenario for row in rows), _once(row.gateway for row in rows)
    found = {(row.gateway, row.scenario): row for row in rows}
    lines = [
        _piped(["keys with more than one effect", *gateways]),
        _piped(["---", *("---:" for _ in gateways)]),
    ]
    lines += [_piped([name, *(_short(found.get((g, name))) for g in gateways)]) for name in scenarios]
    return "\n".join(lines)


def keep(file: Path, rows: Sequence[Row], about: dict[str, Any]) -> None:
    """The figures only: no path, no host, nothing of who ran it."""
    kept = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.system()} {platform.machine()}, python {platform.python_version()}",
        **about,
        "rows": [row.as_json() for row in rows],
    }
    file.write_text(json.dumps(kept, indent=1) + "\n")


def _short(row: Row | None) -> str:
    if row is None:
        return ""
    if row.figures is None:
        return "broken" if row.applies else "n/a"
    told = row.figures
    notes = []
    if told.effects and told.struck < told.keys:  # what the fault did not reach proves nothing
        notes.append(f"{told.struck} in mid-call")
    if left := told.unanswered + told.failed:
        notes.append(f"{left} without an answer")
    return f"{told.duplicated + told.unwanted} of {told.keys}" + (f" ({', '.join(notes)})" if notes else "")


def _cells(row: Row) -> list[str]:
    if row.figures is None:
        return [f"{'broken' if row.applies else 'n/a'}: {row.why}"]
    return [_cell(row.figures, name) for name in COLUMNS]


def _cell(figures: Figures, name: str) -> str:
    return str(getattr(figures, name))


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    words = [cells[0].ljust(widths[0]), cells[1].ljust(widths[1])]
    rest = cells[2:]
    if len(rest) == 1:
        return "  ".join([*words, *rest])
    return "  ".join([*words, *(cell.rjust(width) for cell, width in zip(rest, widths[2:], strict=True))])


def _piped(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
