"""Does everything a run does belong to the trace of the call that wanted it, with its edges? CHN-5."""

from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan

from holdfast.chains.edges import edges
from holdfast.chains.reading import read
from holdfast.model.errors import Code, NoEffect
from holdfast.model.observation import Status
from holdfast.model.trail import Origin, Parent
from holdfast.model.view import Wanted
from holdfast.telemetry import attributes as a
from tests.chains.books import add, books, transaction
from tests.chains.counter import ANNOUNCE, INPUT, LOOK, Counter, counter
from tests.chains.world import do
from tests.requirements import requirement
from tests.stored import ALL
from tests.telemetry.world import SPAN, TRACE, Seen, said, span_id

LINKED = {
    "chain": "linked",
    "saga": True,
    "input": INPUT,
    "steps": [
        do("reserve"),
        {
            "parallel": [
                [do("pack")],
                [{"id": "charge", "tool": "shop.charge", "with": {"item": "=reserve.id"}}],
            ]
        },
        do("ship", when="charge.id != '' && pack.id != ''"),
        do("bill"),
    ],
}
NESTED = {
    "chain": "outer",
    "input": INPUT,
    "steps": [{"id": "inner", "tool": "chains.look", "with": {"item": "=input.item"}}],
}


def calls(seen: Seen) -> dict[str, ReadableSpan]:
    """By the tool; each is called once."""
    found = {str(said(span)[a.TOOL]): span for span in seen.calls()}
    assert len(found) == len(seen.calls())
    return found


def parent(span: ReadableSpan) -> str:
    return "" if span.parent is None else f"{span.parent.span_id:016x}"


def trace(span: ReadableSpan) -> str:
    return f"{span.context.trace_id:032x}"


async def bodies(here: Counter, *tools: str) -> dict[str, dict[str, Any]]:
    """What the records of these calls say, by the tool."""
    olga, found = here.caller("olga"), {}
    [run] = await here.gateway.chains.list(olga)
    for line in (await here.gateway.chains.look(olga, run.id)).lines:
        if line.tool in tools:
            story = await here.gateway.timeline.of(olga, line.call_id)
            found[line.tool] = {"part_of": story.part_of, "after": story.after, "trace": story.trace_id}
    return found


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@requirement("CHN-5", "TEL-1", "AUD-1")
async def test_every_step_and_what_takes_it_back_is_inside_the_span_of_the_chain_s_call(
    kind: str, tmp_path: Path
) -> None:
    seen = Seen()
    async with counter(kind, tmp_path, LINKED, adapt=seen.adapt) as here:
        here.world.failing["bill"] = 1
        done = await here.call("chains.linked", key="k-1")
        assert (done.status, here.world.standing) == (Status.FAILED, [])
        told = await bodies(here, "shop.reserve", "shop.ship", "shop.uncharge")
    found = calls(seen)
    chain = found.pop("chains.linked")
    assert {name.partition(".")[2] for name in found} == {
        *("reserve", "pack", "charge", "ship", "bill"),
        *("unship", "uncharge", "unpack", "unreserve"),
    }
    assert {trace(span) for span in found.values()} == {trace(chain)} == {done.trace_id}
    assert {parent(span) for span in found.values()} == {span_id(chain)}
    assert {said(span)[a.PART_OF] for span in found.values()} == {done.call_id}

    ids = {name: str(said(span)[a.CALL]) for name, span in found.items()}
    after = {name: set(said(span).get(a.AFTER, ())) for name, span in found.items()}
    assert after["shop.reserve"] == after["shop.pack"] == set()
    assert after["shop.charge"] == {ids["shop.reserve"]}
    assert after["shop.ship"] == {ids["shop.charge"], ids["shop.pack"]}
    assert after["shop.uncharge"] == {ids["shop.charge"]}

    assert {one["part_of"] for one in told.values()} == {done.call_id}
    assert {one["trace"] for one in told.values()} == {done.trace_id}
    assert set(told["shop.ship"]["after"]) == after["shop.ship"]
    assert told["shop.uncharge"]["after"] == (ids["shop.charge"],)
    assert told["shop.reserve"]["after"] == ()


@requirement("CHN-5", "CHN-7")
async def test_a_run_that_another_process_goes_on_with_stays_in_its_trace(tmp_path: Path) -> None:
    before, later = Seen(), Seen()
    origin: dict[str, Any] = {"trace_id": TRACE, "parent": Parent(SPAN, True, "vendor=1")}
    async with counter("sqlite", tmp_path, ANNOUNCE, adapt=before.adapt) as here:
        held = await here.call("chains.announce", key="k-1", **origin)
        assert (held.trace_id, here.world.did) == (TRACE, ["reserve"])
        chain = calls(before)["chains.announce"]
        assert (trace(chain), parent(chain)) == (TRACE, SPAN)
    async with counter("sqlite", tmp_path, ANNOUNCE, adapt=later.adapt) as here:
        await here.gateway.chains.open()
        await here.decided()
        await here.settled("announce")
        assert here.world.did == ["send"]
    sent = calls(later)["shop.send"]
    assert (trace(sent), parent(sent)) == (TRACE, span_id(chain))
    assert sent.context.trace_state.to_header() == "vendor=1"
    assert said(sent)[a.PART_OF] == held.call_id


@requirement("CHN-5", "CHN-6")
async def test_a_chain_in_a_chain_is_a_branch_of_the_same_tree(tmp_path: Path) -> None:
    seen = Seen()
    async with counter("memory", tmp_path, LOOK, NESTED, adapt=seen.adapt) as here:
        done = await here.call("chains.outer")
    outer, inner, look = (calls(seen)[name] for name in ("chains.outer", "chains.look", "shop.look"))
    assert {trace(one) for one in (outer, inner, look)} == {done.trace_id}
    assert (parent(inner), parent(look)) == (span_id(outer), span_id(inner))
    assert said(look)[a.PART_OF] == said(inner)[a.CALL]


@requirement("CHN-5")
async def test_what_nobody_samples_is_in_its_trace_too_and_makes_no_span(tmp_path: Path) -> None:
    seen = Seen(sample=0.0)
    async with counter("memory", tmp_path, LINKED, adapt=seen.adapt) as here:
        done = await here.call("chains.linked", key="k-1")
        told = await bodies(here, "shop.reserve", "shop.ship")
    assert (done.status, seen.spans) == (Status.DONE, [])
    assert {one["trace"] for one in told.values()} == {done.trace_id}


@requirement("CHN-5", "TEL-1")
async def test_a_run_that_no_call_began_is_in_the_trace_of_whoever_began_it_or_in_one_of_its_own(
    tmp_path: Path,
) -> None:
    seen = Seen()
    async with counter("memory", tmp_path, LOOK, adapt=seen.adapt) as here:
        headers = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
        body = {"chain": "look", "input": {"item": "tea"}, "key": "k-1"}
        begun = await here.client("ada").post("/v1/runs", body, headers)
        assert begun.status in (200, 202)
        await here.settled("look")
        asked = calls(seen)["shop.look"]
        assert (trace(asked), parent(asked), begun.json()["trace_id"]) == (TRACE, SPAN, TRACE)
        seen.exporter.clear()
        assert (await here.client("ada").post("/v1/runs", {**body, "key": "k-2"})).status in (200, 202)
        await here.settled("look")
        alone = calls(seen)["shop.look"]
    assert (trace(alone) != TRACE, parent(alone)) == (True, "")


@pytest.mark.parametrize("kind", ALL)
@requirement("CHN-5", "EXE-8", "AUD-1")
async def test_what_ends_a_transaction_is_in_the_trace_too_and_rests_upon_what_was_done_in_it(
    kind: str, tmp_path: Path
) -> None:
    async with books(kind, tmp_path) as here:
        await here.run(do("reserve"), transaction(add("tea"), add("milk")))
        here.till.breaks["before add"] = NoEffect("the drawer is stuck", Code.DEPENDENCY_UNAVAILABLE)
        await here.run(do("reserve"), transaction(add("tea")), key="k-2")
        await here.gateway.views.fresh()
        calls = (await here.gateway.views.calls(here.olga, Wanted(limit=100))).rows
        stories = [await here.gateway.timeline.of(here.olga, row.call_id) for row in reversed(calls)]
    done = {(one.tool, one.trace_id) for one in stories if one.tool in ("till.commit", "till.rollback")}
    first, second = (one.trace_id for one in stories if one.tool == "shop.reserve")
    assert done == {("till.commit", first), ("till.rollback", second)}
    told = {one.tool: one.after for one in stories if one.trace_id == first}
    begun, tea, milk = (
        one.call_id for one in stories if one.trace_id == first and one.tool in ("till.begin", "till.add")
    )
    assert told["till.add"] == (begun,)
    assert told["till.commit"] == (begun, tea, milk)
    [back] = [one for one in stories if one.tool == "till.rollback"]
    assert back.after == tuple(
        one.call_id for one in stories if (one.tool, one.trace_id) == ("till.begin", second)
    )


@requirement("CHN-5")
def test_conditions_and_rounds_are_edges_too() -> None:
    chain = read(
        {
            "chain": "ways",
            "steps": [
                do("look"),
                do("pack"),
                {
                    "branch": [
                        {"when": "look.price > 9", "do": do("charge")},
                        {"when": "pack.id != ''", "do": do("ship")},
                        {"otherwise": do("bill")},
                    ]
                },
                {"repeat": 3, "until": "reserve.id != ''", "do": do("reserve")},
            ],
        }
    )
    assert edges(chain) == {
        "look": frozenset(),
        "pack": frozenset(),
        "charge": {"look"},
        "ship": {"look", "pack"},
        "bill": {"look", "pack"},
        "reserve": {"reserve"},
    }


@requirement("CHN-2", "CHN-5")
def test_what_a_model_chose_and_a_session_are_edges_too() -> None:
    asked = {"tool": "shop.look", "id": "ask", "with": {"item": "=pack.id"}}
    cases = {"yes": do("charge"), "no": [do("ship")]}
    chain = read(
        {
            "chain": "ways",
            "steps": [
                do("pack"),
                {"branch": {"ask": asked, "cases": cases, "otherwise": do("bill")}},
                transaction(add("tea")),
            ],
        }
    )
    assert edges(chain) == {
        "pack": frozenset(),
        "ask": {"pack"},
        **{name: {"ask"} for name in ("charge", "ship", "bill")},
        "book": frozenset(),
        "tea": {"book"},
    }


def test_an_origin_is_the_same_when_it_was_kept() -> None:
    for origin in (Origin(TRACE), Origin(TRACE, Parent(SPAN, True, "a=b", remote=False))):
        assert Origin.found(origin.kept()) == origin
    assert Origin.found(None) is None
