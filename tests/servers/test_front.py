"""Is what the short way remembers of its callers right for as long as it remembers it?"""

from holdfast.gateway import Gateway
from holdfast.identity import Grant, Identity, Person
from holdfast.servers.app import build
from tests.requirements import requirement
from tests.servers.asgi import Client
from tests.servers.conftest import LOCAL

COUNT = {"tool": "desk.count", "arguments": {}}


@requirement("AUT-4")
async def test_a_scope_that_ends_is_gone_at_the_next_request(gateway: Gateway) -> None:
    time = 0.0
    ann = Person(name="ann", grants=(Grant("notes:*", "bob", expires_at=10.0),), trust=80)
    gateway.identity = Identity.local([ann], os_user="ann", now=lambda: time)
    client = Client(build(gateway), LOCAL)
    assert [(await client.post("/v1/calls", COUNT)).status for _ in range(2)] == [200, 200]
    time = 10.0
    assert (await client.post("/v1/calls", COUNT)).status == 404  # for them there is no such tool any more


@requirement("AUT-1")
async def test_callers_are_told_apart_by_all_they_say(gateway: Gateway) -> None:
    ann = Client(build(gateway), {**LOCAL, "x-holdfast-user": "ann"})
    add = {"tool": "desk.add", "arguments": {"text": "a"}, "key": "k"}
    assert (await ann.post("/v1/calls", add)).status == 200
    assert (await ann.send("POST", "/v1/calls", [b"{}"], {"x-holdfast-agent": "a b"})).status == 401
    for other in ({"host": "example.com"}, {"host": "127.0.0.1:8080", "origin": "http://example.com"}):
        stranger = Client(ann.app, {"x-holdfast-user": "ann", **other})
        assert (await stranger.post("/v1/calls", add)).status == 403
    bob = Client(ann.app, {**LOCAL, "x-holdfast-user": "bob"})
    assert (await bob.post("/v1/calls", {**add, "key": "l"})).status == 404
    assert (await Client(ann.app, ann.headers, ("10.0.0.1", 1)).post("/v1/calls", add)).status == 403
