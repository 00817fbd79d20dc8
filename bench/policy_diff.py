"""How long does a policy diff over many recorded calls take? `python -m bench.policy_diff`, half a minute.

    python -m bench.policy_diff 50000      with another number of calls

Real calls, read and write, by many callers with arguments of their own, recorded on SQLite; then one diff
that flips about a third of them, and one of a bundle that asks what sessions had seen. The whole of it:
reading the records, opening what is sealed in them, judging, telling. The aim is what a person waits; CPU is
printed beside it, for machines that do something else as well.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

import uvloop

from bench.kept import keep
from bench.tools import TOOLS
from holdfast import Gateway, Principal
from holdfast.gateway.diff import Diff, Wish
from holdfast.policy import Bundle

AIM_S, CALLS = 10.0, 10_000
"""No longer than this for so many calls."""
AT_ONCE = 64
CALLERS = [
    Principal(user=f"u{n}", agent="bench", scopes=frozenset({"**"}), trust=60, roles=frozenset({f"r{n % 3}"}))
    for n in range(50)
]
OLGA = Principal(user="olga", agent="cli", roles=frozenset({"operator"}))
OPEN = '@id("open") permit (principal, action, resource);\n'
LESS = Bundle(
    "less",
    {
        "a.cedar": OPEN
        + '@id("third") forbid (principal in Role::"r1", action, resource)'
        + ' when { context.args.item like "i-*" && context.at < datetime("2100-01-01T00:00:00Z") };\n'
        + '@id("asks") @approval("operator") permit (principal, action == Action::"b.mark", resource)'
        + ' when { context.args has colour && context.args.colour == "blue" };\n'
    },
)
SEEN = Bundle(
    "seen",
    {
        "a.cedar": OPEN
        + '@id("in") forbid (principal, action, resource) when { context.labels.contains("confidential") };\n'
    },
)


async def policy_diff(calls: int) -> dict[str, float]:
    assert TOOLS
    with tempfile.TemporaryDirectory() as folder:
        policies = Path(folder) / "open"
        policies.mkdir()
        (policies / "a.cedar").write_text(OPEN)
        config = {
            "store": f"sqlite:///{folder}/holdfast.db",
            "upstreams": {"b": {"functions": "bench.tools:TOOLS"}},
            "limits": {"ingress": {"rate": 1e9, "burst": 1e9}},
            "policies": str(policies),
        }
        async with Gateway.open(config) as gateway:
            await _call(gateway, calls)
            while await gateway._auditing.tidy():  # housekeeping does this in a gateway that runs
                pass
            print(f"policy diff over {calls:,} recorded calls, sqlite")
            return {
                "calls": calls,
                "flips_s": await _timed("a third of them flips", gateway, LESS, calls, calls // 4),
                "labels_s": await _timed("what sessions had seen", gateway, SEEN, calls, 0),
            }


async def _call(gateway: Gateway, calls: int) -> None:
    numbers = iter(range(calls))

    async def worker() -> None:
        for n in numbers:
            who, session = CALLERS[n % len(CALLERS)], f"s-{n % 500}"
            if n % 2:
                await gateway.call("b.look", {"item": f"i-{n}"}, principal=who, session=session)
            else:
                said = {"item": f"i-{n}", "colour": "blue" if n % 20 == 0 else "red"}
                await gateway.call("b.mark", said, principal=who, key=f"k-{n}", session=session)

    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))


async def _timed(what: str, gateway: Gateway, bundle: Bundle, calls: int, least: int) -> float:
    started, worked = time.perf_counter(), time.process_time()
    diff: Diff = await gateway.history.diff(OLGA, bundle, Wish(examples=5))
    wall, took = time.perf_counter() - started, time.process_time() - worked
    if diff.decisions != calls or diff.flips < least:
        raise SystemExit(f"{diff.decisions} decisions and {diff.flips} flips: that was another diff")
    print(
        f"  {what:24} {wall:6.2f} s, {took:6.2f} s CPU  {diff.flips:,} flips, {calls / wall:,.0f} decisions/s"
    )
    return wall


def main() -> None:
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else CALLS
    figures = uvloop.run(policy_diff(calls))
    slowest = max(figures["flips_s"], figures["labels_s"])
    if calls == CALLS:
        keep("policy-diff", **figures)
    if slowest > AIM_S * calls / CALLS:
        raise SystemExit(f"{slowest:.1f} s: more than {AIM_S:g} s for {CALLS:,} calls")


if __name__ == "__main__":
    main()
