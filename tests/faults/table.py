"""The table of docs/explanation/crash-points.md, read as the expectation it is."""

from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "crash-points.md"


def crash_table() -> dict[str, dict[str, str]]:
    """Rows by crash point, cells by column."""
    lines = [line.strip() for line in PAGE.read_text().splitlines() if line.startswith("|")]
    header, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0]: dict(zip(header[1:], row[1:], strict=True)) for row in rows}
