"""Bars on a page: a small SVG that reads on light and dark ground, without any library."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, LABEL, VALUE = 820, 292, 110
ROW, BAR, HEAD, GAP = 24, 15, 44, 22
STYLE = """
text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2937 }
.title { font-weight: 600; font-size: 14px }
.value { font-variant-numeric: tabular-nums; fill: #4b5563 }
.note { font-size: 11px; fill: #6b7280 }
.axis { stroke: #9ca3af; stroke-width: 1 }
.ours { fill: #0f766e } .theirs { fill: #94a3b8 } .other { fill: #d97706 }
@media (prefers-color-scheme: dark) {
  text { fill: #e5e7eb } .value { fill: #9ca3af } .note { fill: #9ca3af } .axis { stroke: #6b7280 }
  .ours { fill: #2dd4bf } .theirs { fill: #64748b } .other { fill: #f59e0b }
}
"""


@dataclass(frozen=True)
class Bar:
    label: str
    value: float
    text: str
    kind: str = "ours"
    """`ours`, `theirs` or `other`: which colour."""


@dataclass(frozen=True)
class Panel:
    title: str
    bars: Sequence[Bar]
    note: str = ""
    cap: float | None = None
    """Where the scale ends: bars beyond it are cut off, and say so."""

    @property
    def height(self) -> int:
        return HEAD + ROW * len(self.bars) + GAP


def drawn(panels: Sequence[Panel], about: str) -> str:
    height = sum(panel.height for panel in panels)
    top, parts = 0, []
    for panel in panels:
        parts += _panel(panel, top)
        top += panel.height
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" role="img" aria-label="{escape(about)}">'
    )
    return "\n".join((head, f"<title>{escape(about)}</title>", f"<style>{STYLE}</style>", *parts, "</svg>\n"))


def _panel(panel: Panel, top: int) -> list[str]:
    most = min(max((bar.value for bar in panel.bars), default=0.0) or 1.0, panel.cap or math.inf)
    end = top + HEAD + ROW * len(panel.bars)
    lines = [
        f'<text class="title" x="8" y="{top + 20}">{escape(panel.title)}</text>',
        f'<text class="note" x="8" y="{top + 36}">{escape(panel.note)}</text>',
        f'<line class="axis" x1="{LABEL}" x2="{LABEL}" y1="{top + HEAD}" y2="{end}"/>',
    ]
    for number, bar in enumerate(panel.bars):
        y, wide = top + HEAD + ROW * number, (WIDTH - LABEL - VALUE) * min(bar.value / most, 1.0)
        base, text = y + BAR + 1, bar.text if bar.value <= most else f"⟩ {bar.text}"
        lines += [
            f'<text x="{LABEL - 8}" y="{base}" text-anchor="end">{escape(bar.label)}</text>',
            f'<rect class="{bar.kind}" x="{LABEL}" y="{y + 4}" width="{max(wide, 1):.1f}" height="{BAR}"/>',
            f'<text class="value" x="{LABEL + wide + 6:.1f}" y="{base}">{escape(text)}</text>',
        ]
    return lines
