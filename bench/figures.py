"""Puts the kept results into the docs: `python -m bench.figures`.

No figure there is typed by hand. A block between `<!-- figures: NAME -->` and `<!-- end -->` is written from
`bench/results/`; the plots beside it are drawn from the same files. `--check` says whether they are.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from bench.contestants import ALL
from bench.goals import Goals
from bench.kept import ROOT, found
from bench.report import Figures, figured
from bench.ring import Round
from bench.svg import Bar, Panel, drawn

PAGE = ROOT / "docs" / "explanation" / "performance.md"
BLOCK = re.compile(r"(<!-- figures: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
MISSING = "Not measured yet: `make bench`.\n"
MOST_PARTS = 14
CUT = 3.0
"""Times our slowest: the scale of latencies ends there, or the fast ones could not be told apart."""


def _aligned(rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """A table; the first columns are words, the others are numbers."""
    head, *body = rows
    rule = ["---"] * left + ["--:"] * (len(head) - left)
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, rule, *body))


def _rounds(kept: Mapping[str, Any]) -> list[Round]:
    return [Round.of(one) for one in kept["rounds"]]


def _concurrencies(rounds: Sequence[Round]) -> list[int]:
    return sorted({one.concurrency for one in rounds})


def _mark(figures: Figures) -> str:
    return figures.contestant.name + ("" if figures.conclusive else " ?")


def gateways(kept: Mapping[str, Any]) -> str:
    rounds = _rounds(kept)
    parts = []
    for concurrency in reversed(_concurrencies(rounds)):
        rows = [["", "calls/s", "p50 ms", "p95 ms", "p99 ms", "CPU µs", "RSS MB"]]
        for one in figured(ALL, rounds, concurrency):
            names = (("p50_ms", 2), ("p95_ms", 2), ("p99_ms", 2), ("cpu_us", 0), ("rss_mb", 0))
            told = [_number(one.median(name), digits) for name, digits in names]
            rows.append([_mark(one), _number(one.per_second, 0), *told])
        parts.append(f"**{concurrency} at once**\n\n{_aligned(rows)}")
    return "\n".join(parts)


def goals(kept: Mapping[str, Any]) -> str:
    rows = [["", "wanted", "found", ""]]
    goals = Goals(ALL, _rounds(kept), kept["fsync_ms"], kept.get("cores"))
    rows += [[one.goal, one.wanted, one.found, one.verdict] for one in goals.judged()]
    limits = "".join(f"- {said.replace(' us ', ' µs ')}\n" for said in goals.limits())
    return _aligned(rows) + (f"\nWhat a second worker could give at most here:\n\n{limits}" if limits else "")


def machine(kept: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in kept["versions"].items())
    return f"{kept['at'][:10]}; {kept['machine']}; one fsync {kept['fsync_ms']:.2f} ms. {versions}.\n"


def parts(kept: Mapping[str, Any]) -> str:
    tables = kept["tables"]
    rows = [["CPU µs of a call", *(one["tool"] for one in tables)]]
    rows += [[title, *(f"{one['parts'][title]:.1f}" for one in tables)] for title in tables[0]["parts"]]
    sums = (("**sum**", "sum", ".0f"), ("measured unwatched", "total", ".0f"), ("difference", "off", "+.1%"))
    rows += [[title, *(format(one[name], form) for one in tables)] for title, name, form in sums]
    return _aligned(rows)


def growth(kept: Mapping[str, Any]) -> str:
    rows = [["", "from", "to", "read", "write", "sweep"]]
    for one in kept["growth"]:
        names = ("read_us", "write_us", "sweep_ms")
        costs = [f"{one[name][-1] / one[name][0]:.2f} x, {one['orders'][name]}" for name in names]
        rows.append([one["what"], f"{one['sizes'][0]:,}", f"{one['sizes'][-1]:,}", *costs])
    started = "".join(
        f"- {one['what']}: {one['seconds']:.2f} s (wanted: under {one['wanted']:g} s)\n"
        for one in kept["starts"]
    )
    return f"{_aligned(rows)}\n{started}"


def memory(kept: Mapping[str, Any]) -> str:
    return f"{kept['said']}\n"


def workers(kept: Mapping[str, Any]) -> str:
    rows = [[f"calls/s at 32, {kept['share']:g} of a core each", "one worker", "had", "two", "each had", ""]]
    for tool, by in kept["calls"].items():
        one, two = (median(by[count]) for count in ("1", "2"))
        had, each = (f"{median(kept['shares'][tool][count]):.2f}" for count in ("1", "2"))
        rows.append([tool, f"{one:,.0f}", had, f"{two:,.0f}", each, f"{two / one:.2f} x"])
    return f"{_aligned(rows)}\n"


def postgres(kept: Mapping[str, Any]) -> str:
    rows = [[f"{kept['at_once']} at once per process", "processes", "writes/s", "CPU µs", "of the floor"]]
    for one in kept["lines"]:
        told = (f"{one['per_second']:,.0f}", f"{one['cpu_us']:.0f}", f"{one['of_floor']:.0%}")
        rows.append([one["what"], str(one["processes"]), *told])
    return _aligned(rows)


def console(kept: Mapping[str, Any]) -> str:
    rows = [[f"page, with {kept['calls']:,} calls", "first ms", "p50 ms", "p95 ms", "max ms", "CPU ms"]]
    for name, one in kept["pages"].items():
        told = (one[figure] for figure in ("first_ms", "p50_ms", "p95_ms", "max_ms", "cpu_p50_ms"))
        rows.append([name, *(f"{figure:.0f}" for figure in told)])
    return f"{_aligned(rows)}\nOthers took {kept['others']:.0%} of a core meanwhile.\n"


BLOCKS: dict[str, tuple[str, Callable[[Mapping[str, Any]], str]]] = {
    "machine": ("gateways", machine),
    "gateways": ("gateways", gateways),
    "goals": ("gateways", goals),
    "parts": ("parts", parts),
    "growth": ("growth", growth),
    "memory": ("memory", memory),
    "workers": ("workers", workers),
    "postgres": ("postgres", postgres),
    "console": ("console", console),
}


def filled(page: str) -> str:
    """The page with every block as the results say."""

    def block(match: re.Match[str]) -> str:
        source, told = BLOCKS[match[2]]
        kept = found(source)
        return f"{match[1]}\n{MISSING if kept is None else told(kept)}\n{match[3]}"

    return BLOCK.sub(block, page)


def plots() -> Iterator[tuple[str, str]]:
    """Name and text of each that there are results for."""
    if (kept := found("gateways")) is not None:
        yield "performance-gateways.svg", drawn(list(_gateway_panels(kept)), "Calls per second and latency")
    if (kept := found("parts")) is not None:
        yield "performance-parts.svg", drawn(list(_part_panels(kept)), "CPU time of a call by its parts")


def _gateway_panels(kept: Mapping[str, Any]) -> Iterator[Panel]:
    rounds = _rounds(kept)
    known = _concurrencies(rounds)
    many = sorted(figured(ALL, rounds, known[-1]), key=lambda one: -one.per_second)
    direct = next((one for one in many if one.contestant.name == "direct"), None)
    note = "" if direct is None else f"the upstream itself, called directly: {direct.per_second:,.0f}"
    bars = [
        Bar(_mark(one), one.per_second, f"{one.per_second:,.0f}", _kind(one))
        for one in many
        if one is not direct
    ]
    yield Panel(f"Calls per second, {known[-1]} at once (more is better)", bars, note)
    if known[0] == known[-1]:
        return
    timed = [
        (one, took) for one in figured(ALL, rounds, known[0]) if (took := one.median("p50_ms")) is not None
    ]
    timed.sort(key=lambda pair: pair[1])
    bars = [Bar(_mark(one), took, f"{took:.2f}", _kind(one)) for one, took in timed]
    cap = CUT * max((took for one, took in timed if not one.contestant.peer), default=1.0)
    cut = "bars that end in an arrow are longer than the page" if timed[-1][1] > cap else ""
    yield Panel("Milliseconds of one call, one at a time, p50 (less is better)", bars, cut, cap)


def _part_panels(kept: Mapping[str, Any]) -> Iterator[Panel]:
    for table in kept["tables"]:
        ranked = sorted(table["parts"].items(), key=lambda pair: -pair[1])
        bars = [Bar(title, us, f"{us:.0f}") for title, us in ranked[:MOST_PARTS]]
        if left := ranked[MOST_PARTS:]:
            rest = sum(us for _, us in left)
            bars.append(Bar(f"{len(left)} others together", rest, f"{rest:.0f}", "theirs"))
        note = f"together {table['sum']:.0f}; the unwatched server: {table['total']:.0f}"
        yield Panel(f"CPU microseconds of a governed {table['tool']}, by part", bars, note)


def _kind(figures: Figures) -> str:
    if figures.contestant.peer:
        return "theirs"
    return "ours" if figures.contestant.open is not None else "other"


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def stale() -> list[str]:
    """What in the docs is not as the results say."""
    page = PAGE.read_text()
    found = [PAGE.name] if filled(page) != page else []
    for name, text in plots():
        path = PAGE.with_name(name)
        if not path.exists() or path.read_text() != text:
            found.append(name)
    return found


def main(arguments: Sequence[str]) -> int:
    if "--check" in arguments:
        for name in (wrong := stale()):
            print(f"{name} is not as bench/results says; run python -m bench.figures")
        return 1 if wrong else 0
    PAGE.write_text(filled(PAGE.read_text()))
    for name, text in plots():
        PAGE.with_name(name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
