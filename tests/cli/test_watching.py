"""Is every call told to whoever watches, once as it was answered and once when it ends?"""

from dataclasses import dataclass, field

from holdfast.cli.watching import AGAIN_S, Watching
from holdfast.model.call import Principal
from holdfast.model.view import CallRow, Wanted

BY = Principal(user="ana", agent="cli")


def row(number: int, status: str = "done", *, at: float = 0.0, tool: str = "desk.get") -> CallRow:
    return CallRow(
        tenant="t",
        call_id=f"call_{number:04}",
        at=at,
        updated_at=at,
        tool=tool,
        version="1.0.0",
        caller="ann",
        agent="bot",
        effect="READ_ONLY",
        status=status,
        code="",
        latency_ms=1.0,
        attempts=1,
        replayed=False,
        alarms=0,
        task="",
        approval_id="",
        cost=0,
    )


@dataclass(frozen=True)
class Page:
    rows: tuple[CallRow, ...]
    more: bool


@dataclass
class Written:
    """Calls in memory, as `gateway.views` lists them."""

    known: dict[str, CallRow] = field(default_factory=dict)
    looks: int = 0

    def write(self, *rows: CallRow) -> None:
        self.known.update({one.call_id: one for one in rows})

    async def fresh(self) -> None: ...

    async def calls(self, by: Principal, wanted: Wanted) -> Page:
        found = [one for one in self.known.values() if wanted.tool in (None, one.tool)]
        if wanted.until is not None:
            found = [one for one in found if one.at < wanted.until]
        found.sort(key=lambda one: one.call_id, reverse=wanted.after is None)
        found = [one for one in found if wanted.after is None or one.call_id > wanted.after]
        return Page(tuple(found[: wanted.limit]), len(found) > wanted.limit)

    async def call(self, by: Principal, call_id: str) -> CallRow | None:
        self.looks += 1
        return self.known.get(call_id)


async def told(watching: Watching, now: float) -> list[tuple[str, str]]:
    return [(one.call_id[-1], one.status) for one in await watching.news(now)]


async def test_what_happened_before_is_no_news_and_what_happens_is_told_once() -> None:
    calls = Written()
    calls.write(row(1), row(2, at=90.0))
    watching = Watching(calls, BY)
    await watching.begin(100.0)
    assert await told(watching, 100.0) == []
    calls.write(row(3, at=101.0), row(4, "failed", at=102.0))
    assert await told(watching, 103.0) == [("3", "done"), ("4", "failed")]
    assert await told(watching, 104.0) == []


async def test_a_slow_call_is_told_although_quicker_ones_came_later() -> None:
    calls = Written()
    watching = Watching(calls, BY)
    await watching.begin(0.0)
    calls.write(row(5, at=10.0))
    assert await told(watching, 10.0) == [("5", "done")]
    calls.write(row(4, at=30.0))
    assert await told(watching, 30.0) == [("4", "done")]


async def test_a_call_that_runs_is_told_when_it_is_over() -> None:
    calls = Written()
    watching = Watching(calls, BY)
    await watching.begin(0.0)
    calls.write(row(1, "running", at=1.0))
    assert await told(watching, 1.0) == []
    calls.write(row(1, "done", at=1.0))
    assert await told(watching, 9 * AGAIN_S) == [("1", "done")]


async def test_a_held_call_is_told_again_when_it_ends_however_late_and_then_let_go() -> None:
    calls = Written()
    watching = Watching(calls, BY)
    await watching.begin(0.0)
    calls.write(row(1, "held", at=1.0))
    assert await told(watching, 1.0) == [("1", "held")]
    assert await told(watching, 5 * AGAIN_S) == []
    assert await told(watching, 6 * AGAIN_S) == []
    calls.write(row(1, "done", at=1.0))
    assert await told(watching, 9 * AGAIN_S) == [("1", "done")]
    looked = calls.looks
    assert await told(watching, 10 * AGAIN_S) == []
    assert calls.looks == looked


async def test_only_the_status_that_is_wanted_is_told_also_of_calls_that_were_held() -> None:
    calls = Written()
    watching = Watching(calls, BY, status="done", tool="desk.get")
    await watching.begin(0.0)
    calls.write(row(1, "held", at=1.0), row(2, "failed", at=1.0), row(3, at=1.0, tool="desk.other"))
    assert await told(watching, 2.0) == []
    calls.write(row(1, "done", at=1.0))
    assert await told(watching, 3 * AGAIN_S) == [("1", "done")]


async def test_more_calls_than_a_page_holds_are_all_told() -> None:
    calls = Written()
    watching = Watching(calls, BY)
    await watching.begin(0.0)
    calls.write(*(row(number, at=1.0) for number in range(1, 1201)))
    assert len(await told(watching, 2.0)) == 1200
    assert await told(watching, 2.0) == []
