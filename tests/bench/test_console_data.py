"""Is a store that was filled for the benches one that a gateway could have left?"""

from pathlib import Path

import pytest

from bench.console_data import FATES, fill
from holdfast import Gateway, Principal
from holdfast import config as configuration
from holdfast.gateway import auditing, logfile
from holdfast.model.view import Wanted
from tests.requirements import requirement
from tests.stored import DURABLE, place, url_of

OLGA = Principal(user="olga", roles=frozenset({"operator"}), scopes=frozenset({"**"}))


@requirement("PPL-2")
@pytest.mark.parametrize("kind", DURABLE)
async def test_every_call_is_in_the_log_and_in_the_view_and_the_log_verifies(
    kind: str, tmp_path: Path
) -> None:
    async with place(kind, tmp_path):
        said = {"store": url_of(kind, tmp_path), "upstreams": {"b": {"functions": "bench.tools:TOOLS"}}}
        config = configuration.parse(said, folder=tmp_path)
        await fill(config, 600)
        async with Gateway.open(config) as gateway:
            rows = (await gateway.views.calls(OLGA, Wanted(limit=500))).rows
            rest = (await gateway.views.calls(OLGA, Wanted(limit=500, before=rows[-1].call_id))).rows
            used = await gateway.views.by_tool(OLGA, 0)
        report = logfile.verify(
            logfile.place(config), auditing.checkpoint_path(config), logfile.public_key(config)
        )
    assert len({row.call_id for row in (*rows, *rest)}) == 600
    assert rows[0].tool.startswith("b.")
    assert {row.status for row in (*rows, *rest)} >= {"done", "failed", "refused"}
    assert sum(use.calls for use in used) >= 600
    assert sum(FATES.values()) == 1000
    assert report.ok, report.lines()
