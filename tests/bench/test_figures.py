"""Do the docs say what was measured, and only what may be concluded?"""

import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bench import figures
from bench.contestants import ALL, DIRECT, OURS, PEERS
from bench.goals import Goals
from bench.pace import TIMES, Pace
from bench.report import doubts, weaker
from bench.ring import Round
from bench.svg import Bar, Panel, drawn

SVG = "{http://www.w3.org/2000/svg}"


def a_round(name: str, concurrency: int = 32, **more: Any) -> Round:
    quiet = Round(
        contestant=name,
        concurrency=concurrency,
        calls=100,
        faults=0,
        fault="",
        per_second=1_000.0,
        p50_ms=1.0,
        p95_ms=2.0,
        p99_ms=3.0,
        cpu_us=300.0,
        rss_mb=100.0,
        others=0.0,
        reached=True,
    )
    return replace(quiet, **more)


def verdicts(*rounds: Round) -> dict[str, str]:
    return {one.goal: one.verdict for one in Goals(ALL, rounds, fsync_ms=0.5).judged()}


def test_a_promise_is_judged_from_undisturbed_rounds() -> None:
    said = verdicts(
        a_round("holdfast read", per_second=3_000.0),
        a_round("supergateway", per_second=2_400.0),
        a_round("fastmcp proxy", per_second=700.0),
    )
    assert said == {
        "holdfast read, calls/s at 32, beside the fastest peer": "kept",
        "holdfast read, calls/s at 32, beside the best FastMCP": "not kept",
    }


@pytest.mark.parametrize("how", [{"others": 0.2}, {"slower": 1.3}], ids=["others", "a slow machine"])
@pytest.mark.parametrize("disturbed", ["holdfast read", "supergateway"])
def test_nothing_is_concluded_from_rounds_that_were_disturbed(disturbed: str, how: dict[str, Any]) -> None:
    both = ("holdfast read", "supergateway")
    rounds = [a_round(name, **(how if name == disturbed else {})) for name in both]
    assert set(verdicts(*rounds).values()) == {"no conclusion"}
    [doubt] = doubts(rounds)
    assert doubt.startswith("1 of 2 rounds were disturbed")


def test_what_a_second_worker_can_give_is_told_from_what_everybody_takes_of_the_cores() -> None:
    one = a_round("holdfast read", per_second=4_000.0, cpu_us=200.0, around_us=50.0)
    [said] = Goals(ALL, (one,), fsync_ms=0.5, cores=2).limits()
    assert said.endswith("2 cores carry at most 8,000 of these a second, 2.00 x one worker")
    assert Goals(ALL, (a_round("holdfast read"),), fsync_ms=0.5).limits() == []  # kept before it was measured


def test_a_write_may_take_two_fsyncs_and_six_direct_calls() -> None:
    direct = a_round("direct", concurrency=1, p50_ms=0.2)
    goal = "holdfast durable write, p50 at 1, in ms: 2 fsyncs + 6 x direct"
    assert verdicts(direct, a_round("holdfast durable write", 1, p50_ms=2.2))[goal] == "kept"
    assert verdicts(direct, a_round("holdfast durable write", 1, p50_ms=2.3))[goal] == "not kept"


def test_every_block_of_the_page_is_known_and_filling_it_twice_changes_nothing() -> None:
    page = figures.PAGE.read_text()
    named = [match[2] for match in figures.BLOCK.finditer(page)]
    assert sorted(named) == sorted(figures.BLOCKS)
    once = figures.filled(page)
    assert figures.filled(once) == once


def test_the_docs_say_what_the_kept_results_say() -> None:
    assert figures.stale() == []  # make docs


def test_a_block_shows_what_was_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {"tables": [{"tool": "read", "parts": {"begin": 40.0}, "sum": 40.0, "total": 42.0, "off": -0.048}]}
    monkeypatch.setattr(figures, "found", lambda name: kept if name == "parts" else None)
    page = "<!-- figures: parts -->\nold\n<!-- end -->\n<!-- figures: growth -->\nold\n<!-- end -->\n"
    said = figures.filled(page)
    assert "| begin | 40.0 |" in said
    assert "| difference | -4.8% |" in said
    assert "Not measured yet" in said
    assert "old" not in said


def test_names_are_told_apart_by_who_made_the_gateway() -> None:
    assert all(who.peer for who in PEERS)
    assert not any(who.peer for who in (*OURS, DIRECT))
    names = [who.name for who in ALL]
    assert len(set(names)) == len(names)


def test_a_plot_is_an_svg_whose_bars_are_as_long_as_their_values() -> None:
    bars = [Bar("a & b", 50.0, "50"), Bar("c", 100.0, "100", "theirs"), Bar("d", 900.0, "900")]
    root = ET.fromstring(drawn([Panel("title <1>", bars, cap=100.0)], "about"))
    wide = [float(rect.attrib["width"]) for rect in root.iter(f"{SVG}rect")]
    assert wide[1] == pytest.approx(2 * wide[0])
    assert wide[2] == wide[1]
    assert "⟩ 900" in [text.text for text in root.iter(f"{SVG}text")]


def test_the_machines_pace_is_told_beside_its_best() -> None:
    now = 0.0

    def taking(*lengths: float) -> Callable[[], None]:
        left = iter(lengths)

        def work() -> None:
            nonlocal now
            now += next(left)

        return work

    steady, uneven = (
        [1.0] * (13 * TIMES),
        [*[3.0] * (10 * TIMES), *[6.0] * TIMES, *[2.0] * TIMES, *[3.0] * TIMES],
    )
    pace = Pace([taking(*steady), taking(*uneven)], lambda: now)
    assert [pace.slower() for _ in range(3)] == [2.0, 1.0, 1.5]
    assert pace.best_ms == [1000.0, 2000.0]


def test_a_moments_interruption_is_not_the_machines_pace() -> None:
    now, left = 0.0, iter([*[1.0] * (10 * TIMES), 9.0, *[1.0] * (TIMES - 1)])

    def work() -> None:
        nonlocal now
        now += next(left)

    assert Pace([work], lambda: now).slower() == 1.0


def test_the_work_takes_time() -> None:
    assert all(took > 0 for took in Pace().best_ms)


def test_a_machine_that_was_slow_all_the_time_is_told() -> None:
    kept = {"machine": "one", "at": "2026-01-02T03:04:05", "pace_ms": [1.0, 2.0]}
    assert weaker([1.1, 2.2], "one", kept) == []
    [said] = weaker([1.0, 2.6], "one", kept)
    assert "1.30 x what it took on 2026-01-02" in said
    assert weaker([1.0, 2.6], "another", kept) == []
    assert weaker([2.6], "one", kept) == []
    assert weaker([1.0, 2.6], "one", {"machine": "one", "at": "2026-01-02"}) == []
    assert weaker([1.0, 2.6], "one", None) == []
