"""Is a contract refused whose part in a session could not be played?"""

from typing import Any

import pytest

from holdfast import Effect, Floor, Undo, tool
from holdfast.catalog.adapt import offers
from holdfast.catalog.catalog import MemoryCatalog
from holdfast.model.errors import AdmissionError
from tests.requirements import requirement
from tests.upstream_sessions.till import ENTRY, TAKEN_OUT, Till, tools

WRITE: dict[str, Any] = {
    "effect": Effect.LOW_RISK_INTERNAL,
    "undo": Undo.EXACT,
    "manifest": ENTRY,
    "idempotency": "none",
}


def refused(*, session: dict[str, Any], optional: bool = False, **said: Any) -> str:
    declared = {**WRITE, **said}
    if declared["effect"] is Effect.READ_ONLY:
        declared = {"effect": Effect.READ_ONLY, **said}

    async def end(tx: str, more: str) -> str:
        """End something."""
        return tx

    async def ends(tx: int = 1, more: str = "") -> str:
        """End something."""
        return str(tx)

    def admitted() -> None:
        made = tool(name="end", session={"name": "till", **session}, **declared)(ends if optional else end)
        MemoryCatalog().register(offers("till", [*tools(Till()), made]))

    with pytest.raises(AdmissionError) as error:
        admitted()
    return str(error.value)


@requirement("EXE-8", "CON-2")
@pytest.mark.parametrize(
    ("session", "said", "why"),
    [
        ({"role": "commit", "handle": "tx"}, {"effect": Effect.READ_ONLY}, "changes what the upstream keeps"),
        ({"role": "step", "handle": "nothing"}, {}, "names 'nothing', which is no required argument"),
        ({"role": "rollback", "handle": "tx"}, {}, "'more' cannot be required"),
        (
            {"role": "rollback", "handle": "tx"},
            {"floor": Floor.USER},
            "nobody may have to wait for a rollback",
        ),
        ({"role": "begin", "handle": "args.tx"}, {}, "uses unknown names ['args']"),
        ({"role": "begin", "handle": "result."}, {}, "does not compile"),
        (
            {"role": "step", "handle": "tx"},
            {"effect": Effect.READ_ONLY, "cache_ttl_s": 5.0},
            "answers at once and anew",
        ),
        (
            {"role": "step", "handle": "tx"},
            {"compensation": {"tool": "till.rollback", "arguments": {"tx": "=args.tx"}}},
            "what is committed is undone without one",
        ),
        (
            {"role": "step", "handle": "tx"},
            {"state": {"read": {"tool": "till.total", "arguments": {"tx": "=args.tx"}}}},
            "works in a session of its caller; a gate has none",
        ),
    ],
)
def test_what_cannot_be_played_is_refused(session: dict[str, Any], said: dict[str, Any], why: str) -> None:
    assert why in refused(session=session, **said)


@requirement("EXE-8", "CON-2")
def test_the_argument_that_carries_a_session_takes_a_text_and_is_required() -> None:
    assert "'tx', which is no required argument" in refused(
        session={"role": "step", "handle": "tx"}, optional=True
    )


@requirement("EXE-8")
def test_a_good_one_is_admitted_and_its_digest_says_so() -> None:
    session = {"name": "till", "role": "step", "handle": "tx"}
    plain = tool(name="add", compensation=TAKEN_OUT, **WRITE)(_add)
    part = tool(name="add", compensation=TAKEN_OUT, session=session, **WRITE)(_add)
    one, other = (offers("till", [made])[0].contract for made in (plain, part))
    assert one.transactional.session is None
    assert other.transactional.session is not None
    assert one.digest != other.digest


async def _add(tx: str) -> dict[str, Any]:
    """Add something."""
    return {"entry": tx}
