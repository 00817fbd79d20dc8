"""Can a token server find the key that checks what the gateway says?"""

from joserfc import jwt
from joserfc.jwk import KeySet

from holdfast.servers.app import build
from holdfast.testing import gateway
from tests.requirements import requirement
from tests.servers.asgi import Client


@requirement("AUT-3")
async def test_the_public_key_is_there_for_anybody_and_checks_what_is_said() -> None:
    async with gateway(config={"base_url": "https://gateway.example"}) as gate:
        answer = await Client(build(gate), {"host": "127.0.0.1:8080"}).get("/.well-known/jwks.json")
        assert gate.subjects is not None
        said = gate.subjects.issue("acme", "ada", "bot", "https://sts.example/token")
    assert answer.status == 200
    [key] = answer.json()["keys"]
    assert "d" not in key
    claims = jwt.decode(said, KeySet.import_key_set(answer.json()), algorithms=["ES256"]).claims
    assert claims["iss"] == "https://gateway.example"
