"""What does a client learn when something is wrong here?"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, ValidationError

from holdfast.model.errors import TABLE, Code, ConfigError, Forbidden, NotFound, StoreError
from holdfast.model.observation import Observation, Status
from holdfast.ports import Catalog, Listing, Ports
from holdfast.servers.app import build
from holdfast.servers.mcp.errors import code_of, told
from holdfast.servers.mcp.results import NEXT, paragraph
from tests.requirements import requirement
from tests.servers.mcp.conftest import ERAS, opened
from tests.servers.mcp.office import Office
from tests.servers.mcp.raw import speaking
from tests.servers.serving import serving

LEAK = "cannot reach db.internal.example with hunter2"


class _Strict(BaseModel):
    a: int


@requirement("VAL-2", "NAM-5")
def test_every_remedy_of_the_code_table_has_words_for_a_model() -> None:
    assert {entry.next_action for entry in TABLE.values()} <= set(NEXT)


@requirement("VAL-2")
@pytest.mark.parametrize("code", list(Code))
def test_no_code_of_ours_is_taken_for_one_of_the_protocols_own(code: Code) -> None:
    assert code_of(code) not in range(-32099, -32019)


@requirement("NAM-5")
@pytest.mark.parametrize("code", list(Code))
def test_every_refusal_is_one_paragraph_with_its_code_and_call(code: Code) -> None:
    seen = Observation(
        call_id="call_1",
        tool="t.x",
        status=Status.REFUSED,
        code=code,
        message="something is wrong",
        remedy=TABLE[code].remedy(retry_after_ms=2500),
    )
    said = paragraph(seen)
    assert said.startswith("Something is wrong. ")
    assert said.endswith(f"({code.value}, call call_1)")
    assert "(in 2 s)" in said
    assert "\n" not in said


@requirement("LIF-5")
@pytest.mark.parametrize("error", [RuntimeError(LEAK), StoreError(LEAK), ConfigError(LEAK), OSError(LEAK)])
def test_what_broke_inside_is_a_number_to_the_client(error: Exception) -> None:
    said = told(error, "tools/call")
    assert isinstance(said, MCPError)
    assert LEAK not in f"{said.message} {said.data}"
    assert said.code == -32603
    assert set(said.data) == {"incident"}


def test_what_was_meant_for_the_client_is_told_as_it_is() -> None:
    wrong = MCPError(-32602, "no")
    assert told(wrong, "x") is wrong
    assert str(told(NotFound("there is no such thing"), "x")) == "there is no such thing"
    assert str(told(Forbidden("you may not"), "x")) == "you may not"
    with pytest.raises(ValidationError) as raised:
        _Strict.model_validate({})
    assert told(raised.value, "x") is raised.value


class Brittle:
    """A catalog that can be looked up in and, once broken, no longer listed."""

    def __init__(self, catalog: Catalog) -> None:
        self.find, self.exact = catalog.find, catalog.exact
        self._catalog, self.broken = catalog, False

    def list(self) -> Sequence[Listing]:
        if self.broken:
            raise RuntimeError(LEAK)
        return self._catalog.list()


@ERAS
@requirement("LIF-5")
async def test_a_gateway_that_breaks_in_the_middle_answers_without_saying_why(
    config: dict[str, Any], office: Office, era: str
) -> None:
    brittle: list[Brittle] = []

    def adapt(ports: Ports, runtime: Any) -> tuple[Ports, Any]:
        brittle.append(Brittle(ports.catalog))
        return replace(ports, catalog=brittle[0]), runtime

    async with opened(config, office, adapt=adapt) as gateway:
        app = build(gateway)
        async with app.state.mcp.running(), serving(app) as served, speaking(served, era) as line:
            brittle[0].broken = True
            error = (await line.ask("tools/list"))["error"]
            assert "result" in await line.ask("tools/call", {"name": "office__count", "arguments": {}})
    assert (error["code"], LEAK in str(error)) == (-32603, False)
    assert error["data"]["incident"]
