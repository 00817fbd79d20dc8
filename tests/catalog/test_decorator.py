"""Does one decorator make a function a tool, and say clearly when it cannot?"""

import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, Field

from holdfast.catalog.adapt import offers
from holdfast.catalog.catalog import MemoryCatalog
from holdfast.model.contract import EffectEntry, Idempotency, Probe, Reading
from holdfast.model.errors import AdmissionError, Code, ConfigError, NoEffect
from holdfast.model.function import FunctionTool, tool, toolset
from holdfast.model.invocation import Invocation
from holdfast.model.vocabulary import Effect, Floor, Operation, Undo
from tests.requirements import requirement

READ = Effect.READ_ONLY


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Line(BaseModel):
    sku: str = Field(min_length=1)
    quantity: int = 1


@dataclass
class Address:
    street: str


@tool(effect=READ, scopes=["orders:read"], tags=["orders"], cache_ttl_s=5)
async def find_orders(
    customer: str,
    status: Literal["open", "closed"] = "open",
    limit: Annotated[int, Field(ge=1, le=50, description="At most this many")] = 10,
) -> list[dict[str, str]]:
    """Find the orders of a customer.

    Newest first. Closed orders are kept for a year.

    Args:
        customer: Customer number, as in 'c-17'
        status: Which orders to look for
        limit: never shown, the annotation says more

    Returns:
        The orders.
    """
    return [{"customer": customer, "status": status, "limit": str(limit)}]


def schema_of(function: FunctionTool[..., Any]) -> dict[str, Any]:
    return function.build("shop").affordance.input_schema


def refused(function: Callable[..., Any]) -> tuple[str, ...]:
    with pytest.raises(AdmissionError) as caught:
        tool(effect=READ)(function).build("shop")
    return caught.value.reasons


@requirement("CON-7")
def test_the_schema_comes_from_the_hints_and_the_docstring() -> None:
    assert schema_of(find_orders) == {
        "type": "object",
        "properties": {
            "customer": {"type": "string", "description": "Customer number, as in 'c-17'"},
            "status": {
                "type": "string",
                "enum": ["open", "closed"],
                "default": "open",
                "description": "Which orders to look for",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": 50,
                "default": 10,
                "description": "At most this many",
            },
        },
        "required": ["customer"],
    }


@requirement("CON-7")
def test_the_rest_of_the_contract_comes_from_the_decorator() -> None:
    contract = find_orders.build("shop")
    assert contract.tool == "shop.find_orders"
    assert contract.version == find_orders.version == "1.0.0"
    assert contract.effect is READ
    assert contract.security.required_scopes == ("orders:read",)
    assert contract.identity.tags == ("orders",)
    assert contract.runtime.cache_ttl_s == 5
    assert contract.affordance.description == (
        "Find the orders of a customer.\n\nNewest first. Closed orders are kept for a year."
    )
    assert contract.affordance.output_schema == {
        "type": "array",
        "items": {"type": "object", "additionalProperties": {"type": "string"}},
    }


@requirement("CON-7")
def test_the_effect_is_never_guessed() -> None:
    with pytest.raises(TypeError, match="effect"):
        tool(scopes=["orders:read"])  # type: ignore[call-arg]


async def test_a_decorated_function_is_still_called_like_itself() -> None:
    assert await find_orders("c-1") == [{"customer": "c-1", "status": "open", "limit": "10"}]
    assert find_orders.__name__ == "find_orders"
    assert find_orders.is_async


def google(order: str) -> None:
    """Look.

    Args:
        order: the order's number
    """


def numpy(order: str) -> None:
    """Look.

    Parameters
    ----------
    order : str
        the order's number
    """


def sphinx(order: str) -> None:
    """Look.

    :param order: the order's number
    """


@requirement("CON-7")
@pytest.mark.parametrize("function", [google, numpy, sphinx])
def test_every_common_docstring_style_is_read(function: Callable[..., Any]) -> None:
    described = tool(effect=READ)(function)
    assert schema_of(described)["properties"]["order"]["description"] == "the order's number"
    assert described.build("shop").affordance.description == "Look."


# ---------------------------------------------------------------- what cannot be described


def takes_anything(*args: str, **more: str) -> None: ...
def positional(order: str, /) -> None: ...
def by_field(limit: int = Field(3, ge=1)) -> None: ...
def yields() -> Iterator[int]:
    yield 1


@requirement("CON-7")
@pytest.mark.parametrize(
    ("function", "words"),
    [
        (takes_anything, ["'*args: str' has no schema", "'**more: str' has no schema"]),
        (positional, ["'order' is positional-only"]),
        (by_field, ["'limit' has a Field as its default"]),
        (yields, ["it yields"]),
    ],
)
def test_a_shape_no_schema_describes_is_refused_where_it_is_written(
    function: Callable[..., Any], words: list[str]
) -> None:
    with pytest.raises(AdmissionError) as caught:
        tool(effect=READ)(function)
    assert len(caught.value.reasons) == len(words)
    for word, reason in zip(words, caught.value.reasons, strict=True):
        assert word in reason


class Opaque:
    pass


def untyped(order, shop: str):  # type: ignore[no-untyped-def]
    ...


def opaque(thing: Opaque, other: Opaque) -> Opaque:
    return thing


def misfit(limit: int = "three") -> None: ...  # type: ignore[assignment]


@requirement("CON-7")
@pytest.mark.parametrize(
    ("function", "words"),
    [
        (untyped, ["'order' has no type hint"]),
        (opaque, ["'thing' is a 'Opaque'", "'other' is a 'Opaque'", "the answer is a 'Opaque'"]),
        (misfit, ["default of parameter 'limit'"]),
    ],
)
def test_every_hint_that_is_no_json_is_named(function: Callable[..., Any], words: list[str]) -> None:
    reasons = refused(function)
    assert len(reasons) == len(words)
    for word, reason in zip(words, reasons, strict=True):
        assert word in reason


def test_a_hint_that_cannot_be_resolved_says_so() -> None:
    def unresolved(order: "Missing") -> None: ...  # type: ignore[name-defined] # noqa: F821

    assert "cannot be read" in refused(unresolved)[0]


def test_a_keyword_that_does_not_exist_gets_a_hint() -> None:
    mistaken: Any = {"scope": ["orders:read"]}
    with pytest.raises(AdmissionError, match=r"keyword 'scope' is not known; did you mean 'scopes'"):
        tool(effect=READ, **mistaken)(google).build("shop")


def test_every_wrong_part_is_named_with_its_path() -> None:
    with pytest.raises(AdmissionError) as caught:
        tool(effect=READ, timeout_ms=0, rate_limit={"calls": 3, "per": 1})(google).build("shop")
    assert [reason.split(":")[0].split(" is ")[0] for reason in caught.value.reasons] == [
        "'runtime.timeout_ms'",
        "'runtime.rate_limit.per_s'",
        "'runtime.rate_limit.per'",
    ]


# ---------------------------------------------------------------- arguments and answers


@tool(effect=READ)
def rich(
    when: datetime,
    day: date,
    amount: Decimal,
    colour: Colour,
    lines: list[Line],
    ids: tuple[UUID, ...] = (),
    home: Address | None = None,
) -> dict[str, Any]:
    return {
        "when": when,
        "day": day,
        "amount": amount,
        "colour": colour,
        "lines": lines,
        "ids": ids,
        "home": home,
    }


ARGUMENTS = {
    "when": "2030-01-02T03:04:05Z",
    "day": "2030-01-02",
    "amount": "10.50",
    "colour": "red",
    "lines": [{"sku": "a-1"}, {"sku": "b-2", "quantity": 2}],
}


@requirement("CON-7")
def test_arguments_arrive_as_the_types_the_function_asks_for() -> None:
    assert rich.prepare(ARGUMENTS) == {
        "when": datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC),
        "day": date(2030, 1, 2),
        "amount": Decimal("10.50"),
        "colour": Colour.RED,
        "lines": [Line(sku="a-1"), Line(sku="b-2", quantity=2)],
    }


@requirement("CON-7")
def test_answers_leave_as_json() -> None:
    assert rich.render(rich(**rich.prepare(ARGUMENTS))) == {
        "when": "2030-01-02T03:04:05Z",
        "day": "2030-01-02",
        "amount": "10.50",
        "colour": "red",
        "lines": [{"sku": "a-1", "quantity": 1}, {"sku": "b-2", "quantity": 2}],
        "ids": [],
        "home": None,
    }


@tool(effect=READ)
def plain(
    name: str, count: int, ratio: float, flags: list[bool], more: dict[str, Any], maybe: str | None
) -> list[str]:
    return []


@given(st.lists(st.text()), st.dictionaries(st.text(), st.none() | st.integers() | st.lists(st.text())))
def test_plain_json_passes_untouched(names: list[str], more: dict[str, Any]) -> None:
    arguments = {"name": "n", "count": 1, "ratio": 0.5, "flags": [True], "more": more, "maybe": None}
    prepared = plain.prepare(arguments)
    assert all(prepared[name] is value for name, value in arguments.items())
    assert plain.render(names) is names


def even(number: int) -> int:
    if number % 2:
        raise ValueError("must be even")
    return number


@tool(effect=READ)
def validated(number: Annotated[int, AfterValidator(even)], lines: list[Line]) -> None: ...


@requirement("CON-7")
def test_what_only_the_type_can_refuse_is_refused_before_anything_happens() -> None:
    with pytest.raises(NoEffect, match="'/number': value error, must be even") as caught:
        validated.prepare({"number": 3, "lines": []})
    assert caught.value.code is Code.SEMANTIC_INVALIDITY


@requirement("CON-5")
def test_nothing_is_coerced_on_the_way_in() -> None:
    with pytest.raises(NoEffect, match="'/lines/0/quantity'"):
        validated.prepare({"number": 2, "lines": [{"sku": "a", "quantity": "3"}]})


def test_an_answer_is_made_json_and_judged_elsewhere() -> None:
    @tool(effect=READ)
    def careless() -> Line:
        return Line(sku="a")

    assert careless.render({"sku": 3}) == {"sku": 3}
    assert careless.render(None) is None


def test_an_answer_with_no_json_form_is_an_error() -> None:
    with pytest.raises(ValueError, match="serialize"):
        rich.render({"thing": object})


def test_an_answer_nobody_described_is_made_json_all_the_same() -> None:
    @tool(effect=READ)
    def loose(day: str) -> Any:
        return day

    assert loose.build("shop").affordance.output_schema == {}
    assert loose.render({"day": date(2030, 1, 2), "colour": Colour.RED}) == {
        "day": "2030-01-02",
        "colour": "red",
    }


@requirement("CON-7")
def test_names_that_models_use_themselves_are_fine_as_parameters() -> None:
    @tool(effect=READ)
    def odd(schema: str, copy: bool, json: str, model_config: str, self_id: str) -> None: ...

    assert list(schema_of(odd)["properties"]) == ["schema", "copy", "json", "model_config", "self_id"]


# ---------------------------------------------------------------- the invocation and the key

INVOCATION = Invocation(key="k-1", call_id="c-1", tenant="t", trace_id="x", attempt=1, deadline_s=5)
WRITE: Mapping[str, Any] = {
    "effect": Effect.LOW_RISK_INTERNAL,
    "undo": Undo.EXACT,
    "manifest": [("orders", "UPDATE", "order")],
}


@requirement("CON-7")
def test_a_function_may_ask_for_its_invocation() -> None:
    @tool(**WRITE, idempotency="transaction")
    async def mark(order_id: str, invocation: Invocation) -> None: ...

    assert list(schema_of(mark)["properties"]) == ["order_id"]
    assert mark.invocation_parameter == "invocation"
    assert mark.prepare({"order_id": "o-1"}, INVOCATION) == {"order_id": "o-1", "invocation": INVOCATION}


@requirement("CON-7")
@pytest.mark.parametrize(
    "idempotency",
    [Idempotency(upstream="argument", name="dedup"), {"upstream": "argument", "name": "dedup"}],
)
def test_the_argument_of_the_key_is_filled_by_the_gateway(idempotency: Any) -> None:
    @tool(**WRITE, idempotency=idempotency)
    def mark(order_id: str, dedup: str) -> None: ...

    assert list(schema_of(mark)["properties"]) == ["order_id"]
    assert mark.prepare({"order_id": "o-1"}, INVOCATION) == {"order_id": "o-1", "dedup": "k-1"}


@requirement("CON-7")
@pytest.mark.parametrize(
    ("idempotency", "word"),
    [
        ("transaction", "never sees"),
        ("meta", "never sees"),
        (Idempotency(upstream="header", name="X-Key"), "no headers"),
        (Idempotency(upstream="argument", name="dedup"), "does not take 'dedup'"),
    ],
)
def test_a_function_that_is_given_no_key_cannot_honour_one(idempotency: Any, word: str) -> None:
    def mark(order_id: str) -> None: ...

    with pytest.raises(AdmissionError, match=word):
        tool(**WRITE, idempotency=idempotency)(mark).build("shop")


# ---------------------------------------------------------------- a whole toolset


@tool(effect=READ, scopes=["orders:read"])
def get_order(order_id: str) -> dict[str, str]:
    """Look one order up by its number."""
    return {"order_id": order_id}


@tool(
    effect=Effect.CRITICAL_MUTATION,
    undo=Undo.NONE,
    floor=Floor.TWO_PERSON,
    scopes=["orders:refund"],
    manifest=[
        ("orders", "UPDATE", "order"),
        EffectEntry(resource="cash", operation=Operation.CREATE, scope="all"),
    ],
    idempotency="none",
    preview={"read": {"tool": get_order, "arguments": {"order_id": "=args.order_id"}}},
    probe={
        "read": {"tool": "get_order", "arguments": {"order_id": "=args.order_id"}},
        "committed": "state.refunded",
    },
    postconditions=[
        {"read": {"tool": "shop.get_order", "arguments": {"order_id": "=args.order_id"}}, "holds": "true"}
    ],
    rollback_plan="charge the card again",
    semantics=[{"holds": "args.cents > 0", "message": "nothing to refund"}],
    checks=[lambda arguments: None],
)
async def refund(order_id: str, cents: int) -> dict[str, int]:
    """Pay money back to the card of an order."""
    return {"refunded": cents}


@requirement("CON-7")
def test_a_tool_of_the_same_namespace_is_named_shortly() -> None:
    promise = refund.build("shop").transactional
    assert promise.preview is not None
    assert promise.preview.read == Reading(tool="shop.get_order", arguments={"order_id": "=args.order_id"})
    assert isinstance(promise.probe, Probe)
    assert promise.probe.read.tool == "shop.get_order"
    assert [entry.operation for entry in promise.manifest] == [Operation.UPDATE, Operation.CREATE]


@requirement("CON-7")
def test_functions_are_admitted_together() -> None:
    tools = MemoryCatalog()
    tools.register(offers("shop", [refund, get_order]))
    listing = tools.find("shop.refund", None)
    assert listing is not None
    assert listing.upstream == "shop"
    assert len(listing.tool.checks) == 1


@requirement("CON-2")
def test_all_functions_that_cannot_be_described_are_named_at_once() -> None:
    spoiled: list[FunctionTool[..., Any]] = [tool(effect=READ)(untyped), tool(effect=READ)(misfit), get_order]
    with pytest.raises(AdmissionError, match=r"tools 'shop\.untyped', 'shop\.misfit' are"):
        offers("shop", spoiled)


class Shop:
    """Methods are tools of their object."""

    def __init__(self, name: str) -> None:
        self._name = name

    @tool(effect=READ)
    def where(self, order_id: str) -> str:
        """Say where an order is."""
        return f"{order_id} is at {self._name}"

    def not_a_tool(self) -> None: ...


class Branch(Shop):
    @tool(effect=READ)
    def opening(self) -> str:
        """Say when it opens."""
        return "at nine"


@requirement("CON-7")
def test_the_methods_of_an_object_are_its_tools() -> None:
    where, opening = toolset(Branch("the depot"))
    assert (where.name, opening.name) == ("where", "opening")
    assert list(schema_of(where)["properties"]) == ["order_id"]
    assert where(**where.prepare({"order_id": "o-1"})) == "o-1 is at the depot"
    assert where.render("x") == "x"


def test_a_method_without_its_object_says_what_to_pass() -> None:
    with pytest.raises(AdmissionError, match="pass an instance"):
        Shop.where.build("shop")
    with pytest.raises(ConfigError, match="'Shop' is a class; pass an instance"):
        toolset(Shop)


def module(**members: Any) -> types.ModuleType:
    made = types.ModuleType(__name__)
    vars(made).update(members)
    return made


def test_a_toolset_is_collected_from_whatever_holds_it() -> None:
    both = [get_order, refund]
    assert toolset(both) == both
    assert toolset({"a": get_order, "b": [refund]}) == both
    assert toolset(get_order) == [get_order]
    assert toolset(module(get_order=get_order, refund=refund, other=3)) == both


def test_a_module_offers_its_own_tools_and_those_it_names() -> None:
    foreign = types.ModuleType("somewhere.else")
    vars(foreign).update(get_order=get_order, refund=refund)
    with pytest.raises(ConfigError, match="holds no tools"):
        toolset(foreign)
    vars(foreign)["__all__"] = ["refund"]
    assert toolset(foreign) == [refund]


def test_something_without_tools_says_how_to_make_one() -> None:
    with pytest.raises(ConfigError, match="decorate"):
        toolset([])
