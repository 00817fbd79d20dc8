"""Can operators see and try channels from the command line and over HTTP, and only they?"""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast.gateway import Gateway
from holdfast.servers.app import build
from tests.channels.receiver import SECRET, Receiver
from tests.cli.conftest import CONFIG, Ended, Holdfast, desk, holdfast
from tests.requirements import requirement
from tests.servers.asgi import Client
from tests.servers.conftest import LOCAL
from tests.servers.test_operate import fits

__all__ = ["desk", "holdfast"]

HELD = ("call", "desk.close_all", "--args", '{"older_than_days": 9}', "--key", "k1")


@pytest.fixture
def channels(desk: Path, receiver: Receiver) -> Path:
    (desk / "hook.key").write_text(SECRET)
    said = f"""
secrets: {{hook: {{file: hook.key}}}}
channels:
  ops:
    webhook: {{url: "{receiver.url}", secret: "${{secret:hook}}"}}
"""
    (desk / "holdfast.yaml").write_text(CONFIG + said)
    return desk


@requirement("APR-7", "NAM-1")
async def test_a_channel_is_tried_and_looked_at_from_the_command_line(
    channels: Path, holdfast: Holdfast, receiver: Receiver
) -> None:
    async def command(*arguments: str) -> Ended:
        return await asyncio.to_thread(holdfast, *arguments)

    tried = await command("channels", "test", "ops", "--as", "ana")
    assert (tried.code, tried.out.split()) == (0, ["sent", "ops"])
    assert receiver.events == ["test"]
    receiver.answers += [(500, {})]
    tried = await command("channels", "test", "ops", "--as", "ana", "--json")
    assert (tried.code, tried.json["results"][0]["sent"]) == (1, False)
    assert "500" in tried.json["results"][0]["said"]
    assert (await command("channels", "test", "opps", "--as", "ana")).code == 3
    for arguments in (("channels",), ("channels", "test", "ops")):
        refused = await command(*arguments, "--as", "eve")
        assert (refused.code, "no operator" in refused.err) == (3, True)
    assert (await command(*HELD)).code == 4
    seen = await command("channels", "--as", "ana", "--json")
    [ops] = seen.json["channels"]
    assert (ops["name"], ops["kind"], ops["sent"]) == ("ops", "webhook", 1)
    assert "ops" in (await command("channels", "--as", "ana")).out


@requirement("APR-7", "NAM-3")
async def test_operators_see_channels_over_http(channels: Path, receiver: Receiver) -> None:
    receiver.answers += [(500, {})]
    async with Gateway.open(channels / "holdfast.yaml") as gateway:
        app = build(gateway)

        def client(name: str) -> Client:
            return Client(app, {**LOCAL, "x-holdfast-user": name})

        assert (await client("eve").get("/v1/channels")).status == 403
        seen: dict[str, Any] = fits("Channels", (await client("ana").get("/v1/channels")).json())
    assert seen["channels"] == [
        {
            "name": "ops",
            "kind": "webhook",
            "events": ["asked", "escalated", "alert"],
            "roles": [],
            "sent": 0,
            "waiting": 0,
            "failed": 0,
            "last_sent_at": None,
            "said": "",
        }
    ]


@requirement("APR-7")
def test_where_no_channel_is_set_it_says_what_to_do(desk: Path, holdfast: Holdfast) -> None:
    assert "write them under 'channels'" in holdfast("channels", "--as", "ana").out
