"""What does a client get whose call waits for a person?"""

from typing import Any

import pytest
from mcp.client.context import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitResult, Implementation

from holdfast.gateway import Gateway
from tests.requirements import requirement
from tests.servers.mcp.conftest import ERAS, Connect, seen, text
from tests.servers.mcp.office import Office
from tests.servers.mcp.raw import MODERN, speaking
from tests.servers.serving import Served

BOTH_WAYS = True

TRUSTED = Implementation(name="trusted", version="1")
OTHER = Implementation(name="other", version="1")


class Dialogue:
    """A person in front of a client, who answers the same to everything."""

    def __init__(self, action: Any = "accept", approve: bool = True) -> None:
        self.asked: list[str] = []
        self.answer = ElicitResult(
            action=action, content={"approve": approve} if action == "accept" else None
        )

    async def __call__(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        self.asked.append(params.message)
        return self.answer


@ERAS
@requirement("APR-5", "NAM-5", "PPL-6")
async def test_a_held_call_says_who_can_approve_it_where_and_how_and_runs_when_called_again(
    connect: Connect, era: str, gateway: Gateway, office: Office
) -> None:
    async with connect(era) as client:
        held = await client.call_tool("office__pay_much", {"to": "x"})
        asked = seen(held)["approval"]["id"]
        assert (held.is_error, seen(held)["status"]) == (True, "held")
        assert f"'holdfast approve {asked}'" in text(held)
        assert "call this tool again with the same arguments" in text(held)
        await gateway.decide(gateway.identity.at_terminal("olga"), asked, True)
        done = await client.call_tool("office__pay_much", {"to": "x"})
    assert (done.structured_content, seen(done)["key_source"]) == ({"to": "x"}, "adopted")
    assert office.paid == ["x"]


class TestTrustedClients:
    @pytest.fixture
    def config(self, config: dict[str, Any]) -> dict[str, Any]:
        return {**config, "approvals": {"trusted_clients": ["trusted"]}}

    @ERAS
    @requirement("APR-5")
    async def test_the_dialogue_of_a_trusted_client_gives_its_users_own_consent(
        self, connect: Connect, era: str, office: Office
    ) -> None:
        dialogue = Dialogue()
        async with connect(era, client_info=TRUSTED, elicitation_callback=dialogue) as client:
            result = await client.call_tool("office__pay", {"to": "x"})
        assert (result.is_error, office.paid) == (False, ["x"])
        [message] = dialogue.asked
        assert "office.pay@" in message
        assert '"to":"x"' in message

    @ERAS
    @requirement("APR-5")
    async def test_a_user_who_says_no_is_not_asked_again_and_nothing_happens(
        self, connect: Connect, era: str, office: Office
    ) -> None:
        dialogue = Dialogue(approve=False)
        async with connect(era, client_info=TRUSTED, elicitation_callback=dialogue) as client:
            result = await client.call_tool("office__pay", {"to": "x"})
        assert (result.is_error, seen(result)["code"]) == (True, "APPROVAL_DENIED")
        assert (office.paid, len(dialogue.asked)) == ([], 1)

    @ERAS
    @requirement("APR-5")
    async def test_an_operators_approval_is_never_asked_of_a_client(
        self, connect: Connect, era: str, office: Office
    ) -> None:
        dialogue = Dialogue()
        async with connect(era, client_info=TRUSTED, elicitation_callback=dialogue) as client:
            result = await client.call_tool("office__pay_much", {"to": "x"})
        assert seen(result)["status"] == "held"
        assert (dialogue.asked, office.paid) == ([], [])

    @ERAS
    @requirement("APR-5", "APR-2")
    async def test_a_client_nobody_trusts_is_not_asked(
        self, connect: Connect, era: str, office: Office
    ) -> None:
        dialogue = Dialogue()
        async with connect(era, client_info=OTHER, elicitation_callback=dialogue) as client:
            result = await client.call_tool("office__pay", {"to": "x"})
        assert seen(result)["status"] == "held"
        assert (dialogue.asked, office.paid) == ([], [])

    @requirement("APR-2", "APR-5")
    async def test_an_answer_that_nobody_asked_for_approves_nothing(
        self, served: Served, office: Office
    ) -> None:
        params = {"name": "office__pay", "arguments": {"to": "x"}}
        yes = {"inputResponses": {"approval": {"action": "accept", "content": {"approve": True}}}}
        async with speaking(served, MODERN, client={"name": "trusted", "version": "1"}) as line:
            answer = (await line.ask("tools/call", {**params, **yes}))["result"]
        assert answer["_meta"]["holdfast/observation"]["status"] == "held"
        assert office.paid == []
