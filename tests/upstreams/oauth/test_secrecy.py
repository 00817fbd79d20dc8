"""Can a token, a code or a client's secret be found anywhere it should not be?"""

import logging
from pathlib import Path

import pytest

from holdfast.model.errors import HoldfastError, NoEffect
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.testing import ManualClock
from holdfast.upstreams.mcp.oauth_client import Client, Redirect
from tests.requirements import requirement
from tests.upstreams.oauth.world import ALICE, World, told, world


@requirement("AUT-3", "CON-6")
async def test_no_secret_is_in_the_files_the_log_or_an_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with world() as w:
        async with SqliteStore(tmp_path / "holdfast.db", ManualClock()) as store:
            w.store = store.tokens
            said = await everything_that_happens(w)
            files = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
        files |= {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
        secrets = w.office.secrets()
    assert len(secrets) > 8
    assert {"holdfast.db", "holdfast.db-wal"} <= set(files)
    log = told(caplog.records)
    assert "not renewed" in log, "the log was not looked at"
    for secret in secrets:
        assert [name for name, content in files.items() if secret.encode() in content] == []
        assert secret not in log
        assert secret not in said


@requirement("AUT-3")
def test_the_configured_secret_is_not_shown() -> None:
    assert "sesame" not in repr(Client(client_id="robot", client_secret="sesame"))


@requirement("AUT-3")
async def test_what_the_authorization_server_says_about_a_secret_is_not_repeated(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The SDK's errors quote whole answers, and the SDK logs its errors."""
    caplog.set_level(logging.DEBUG)
    async with world() as w:
        w.office.talkative = True
        with pytest.raises(HoldfastError, match="asking for a token failed") as ended:
            await w.sign_in()
        [code] = w.office.used
        log = told(caplog.records)
        assert "OAuth flow error" in log
        assert code not in log + str(ended.value)


async def everything_that_happens(w: World) -> str:
    """Signing in, calling, renewing early and late, failing in each way; what callers were told."""
    said = []
    await w.sign_in()
    gateway = w.authorizer()
    await w.call(gateway)
    await w.clock.advance(3600)
    await w.call(gateway)
    w.office.revoke("alice")
    await w.call(gateway)
    w.required.append("admin")
    said.append(await refused(w))
    w.office.down = True
    await w.clock.advance(3600)
    said.append(await refused(w))
    w.office.down = False
    w.office.revoke("alice", for_good=True)
    said.append(await refused(w))

    async def late(address: str) -> Redirect:
        answer = await w.browse(address)
        w.office.used |= set(w.office.codes)
        w.office.codes.clear()
        return answer

    with pytest.raises(HoldfastError) as failed:
        await w.authorizer(open_url=late).sign_in(ALICE)
    said.append(str(failed.value))
    await w.sign_in()
    return "\n".join(said)


async def refused(w: World) -> str:
    with pytest.raises(NoEffect) as refusal:
        await w.call(w.authorizer())
    return str(refusal.value)
