"""Is anything on this machine reached that a stranger names, however it is written? POL-6."""

import pytest

from holdfast.model.egress.rules import Rules
from tests.egress.canary import canary
from tests.egress.spellings import reachable, spellings
from tests.egress.trap import Trap
from tests.egress.ways import CONTROLS, WAYS, Unguarded, fetched_redirect, guarded, redirect
from tests.requirements import requirement

LEAST = 100
UNASKED = ("a document", "resource metadata", "a schema")
"""Ways on which the gateway has the stranger's address without asking anybody."""
FORMS = (
    *(
        "//{there}/x",
        "///{there}/x",
        "HTTP://{there}/x",
        "hTTp:{there}",
        "http:/{there}/x",
        "http:\\\\{there}/x",
    ),
    *("\\\\{there}/x", "/\\{there}/x", "http://{here}@{there}/x", "http://{here}%2f@{there}/x"),
    *("http://{here}#@{there}/x", "http://{here}\\@{there}/x", "http://u:p@{there}/x", "\thttp://{there}/x"),
    *(
        "https://{there}/x",
        "ws://{there}/x",
        "ftp://{there}/x",
        "http://{there}",
        "http://{here}, http://{there}",
    ),
)


@requirement("POL-6")
@pytest.mark.parametrize("way", WAYS)
async def test_what_a_stranger_names_on_this_machine_is_never_reached(way: str) -> None:
    hosts = spellings()
    assert len(hosts) >= LEAST
    with canary() as bird:
        async with Trap().open() as trap:
            for host in hosts:
                await WAYS[way](trap, guarded(trap), f"http://{host}:{bird.port}/there")
            assert way in UNASKED or len(trap.asked) >= len(hosts), "nobody was lured"
        assert bird.reached() == 0


@requirement("POL-6")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_leads_nowhere_else_however_it_is_written(form: str, status: int) -> None:
    with canary() as bird:
        async with Trap().open() as trap:
            here = trap.origin.removeprefix("http://")
            for host in ("127.0.0.1", "127.1", "[::1]", "localhost", "0"):
                place = form.format(there=f"{host}:{bird.port}", here=here)
                for way in (redirect, fetched_redirect):
                    await way(trap, guarded(trap), place, status=status)
            assert len(trap.asked) >= 10
        assert bird.reached() == 0


@requirement("POL-6")
@pytest.mark.parametrize("way", CONTROLS)
async def test_without_the_guard_it_is_reached(way: str) -> None:
    """So that the test above can fail."""
    there: set[str] = set()
    with canary() as bird:
        hosts = reachable(spellings(), version_6=bird.version_6)
        async with Trap().open() as trap:
            before = 0
            for host in hosts:
                await CONTROLS[way](trap, Unguarded(Rules()), f"http://{host}:{bird.port}/there")
                if (count := bird.reached()) > before:
                    there.add(host)
                    before = count
    assert len(there) >= LEAST, sorted(hosts - there)
