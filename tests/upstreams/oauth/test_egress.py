"""What becomes of a sign-in when the authorization server may not be connected to?"""

import logging

import pytest

from holdfast.model.egress.rules import Rules
from holdfast.model.errors import Code, HoldfastError, NoEffect
from holdfast.upstreams.http.guard import Guard
from holdfast.upstreams.http.outgoing import Outgoing
from tests.requirements import requirement
from tests.upstreams.oauth.test_machines import ROBOT
from tests.upstreams.oauth.world import ALICE, World, told, world


def strict(w: World) -> Outgoing:
    """As a gateway has it when nobody listed the authorization server."""
    return Outgoing(Guard(Rules(written=(w.url,)), whose="upstreams.crm"))


@requirement("POL-6", "LIF-5")
async def test_an_authorization_server_inside_that_nobody_named_gets_no_secret(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    async with world(machines=["client_secret_post"]) as w:
        with pytest.raises(NoEffect, match="an egress rule does not let the gateway sign in") as refused:
            await w.call(w.authorizer(client=ROBOT, outgoing=strict(w)))
        assert refused.value.code is Code.POLICY_VIOLATION
        assert "127.0.0.1" not in str(refused.value)
        assert w.office.asked == []
        assert "name it as 'auth.issuer' or list it" in told(caplog.records)


@requirement("POL-6")
async def test_a_person_who_signs_in_is_told_what_to_do() -> None:
    async with world() as w:
        with pytest.raises(
            HoldfastError, match=r"name it as 'auth\.issuer' or list it under 'egress\.allow'"
        ):
            await w.sign_in(outgoing=strict(w))
        assert w.office.asked == []


@requirement("POL-6")
async def test_a_rule_that_came_later_costs_nobody_their_sign_in() -> None:
    async with world() as w:
        await w.sign_in()
        w.clock.jump(w.office.life_s)
        with pytest.raises(NoEffect) as refused:
            await w.call(w.authorizer(outgoing=strict(w)))
        assert refused.value.code is Code.POLICY_VIOLATION
        assert await w.call(w.authorizer()) == (200, "alice"), ALICE
