"""Is what a call touches named, and when in doubt more of it?"""

from typing import Any

import pytest

from holdfast.model.contract import Contract
from holdfast.model.resources import resources
from holdfast.model.scopes import covers
from tests.catalog.contracts import get_order, low
from tests.requirements import requirement


def reading(properties: dict[str, Any], **more: Any) -> Contract:
    schema = {"type": "object", "properties": properties, **more}
    return get_order(affordance={"input_schema": schema})


def writing(properties: dict[str, Any], *kinds: str) -> Contract:
    manifest = [{"resource": kind, "operation": "UPDATE", "scope": "one"} for kind in kinds]
    schema = {"type": "object", "properties": properties}
    return low(affordance={"input_schema": schema}, transactional={"manifest": manifest})


ORDER = {"type": "string", "x-resource": "orders"}


@requirement("AUT-2")
@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("o-1", ("orders/o-1",)),
        (17, ("orders/17",)),
        (["a", "b"], ("orders/a", "orders/b")),
        ("north/o-1", ("orders/north/o-1",)),
        ("north:o-1", ("orders/north:o-1",)),
        ("two words", ("orders/two%20words",)),
        ("mira@example.com", ("orders/mira@example.com",)),
        ("*", ("orders/%2A",)),
        ("**", ("orders/%2A%2A",)),
        ("%41", ("orders/%2541",)),
        ("%2e%2e", ("orders/**",)),
        ("north\\..\\south", ("orders/**",)),
        ("a/" * 5000 + "a", ("orders/**",)),
        ("", ("orders/**",)),
        ("..", ("orders/**",)),
        ("north/../south", ("orders/**",)),
        ("north//south", ("orders/**",)),
        (None, ("orders/**",)),
        ([], ("orders/**",)),
        (True, ("orders/**",)),
        (1.5, ("orders/**",)),
        ({"id": 1}, ("orders/**",)),
    ],
)
def test_a_marked_argument_names_one_and_what_names_none_names_all(
    value: Any, named: tuple[str, ...]
) -> None:
    assert resources(reading({"order": ORDER}), {"order": value}) == named


def test_an_argument_that_was_left_out_names_all_of_its_kind() -> None:
    assert resources(reading({"order": ORDER}), {}) == ("orders/**",)


def test_what_the_manifest_lists_beside_it_is_touched_as_a_whole() -> None:
    both = writing({"order": ORDER}, "orders", "order notes")
    assert resources(both, {"order": "o-1"}) == ("orders/o-1", "order-notes/**")
    assert resources(writing({}, "payments"), {}) == ("payments/**",)


def test_a_contract_that_says_nothing_may_touch_anything() -> None:
    assert resources(reading({"text": {"type": "string"}}), {"text": "orders/o-1"}) == ("**",)


@pytest.mark.parametrize("kind", ["", "a b", "*", "**", 7, ["orders"], "orders/", "órders"])
def test_a_mark_that_cannot_be_read_is_a_mark_of_everything(kind: Any) -> None:
    assert resources(reading({"order": {"type": "string", "x-resource": kind}}), {"order": "o"}) == ("**",)


def test_a_mark_that_is_not_at_the_top_is_one_of_the_whole_kind() -> None:
    nested = {"lines": {"type": "array", "items": {"type": "object", "properties": {"order": ORDER}}}}
    assert resources(reading(nested), {"lines": [{"order": "o-1"}]}) == ("orders/**",)
    within = {"order": ORDER, "customer": {"type": "object", "properties": {"id": {"x-resource": "people"}}}}
    assert set(resources(reading(within), {"order": "o-1", "customer": {"id": "7"}})) == {
        "orders/o-1",
        "people/**",
    }


@pytest.mark.parametrize(
    ("held", "named", "inside"),
    [
        ("orders/o-1", "orders/o-1", True),
        ("orders/*", "orders/o-1", True),
        ("orders/*", "orders/north/o-1", False),
        ("orders/**", "orders/north/o-1", True),
        ("orders/*", "orders/**", False),
        ("orders/**", "orders/**", True),
        ("orders/**", "**", False),
        ("**", "**", True),
        ("orders/o-1", "orders/%2A", False),
    ],
)
def test_a_bound_covers_what_it_names(held: str, named: str, inside: bool) -> None:
    assert covers([held], named) is inside
