"""Is what may not be shown taken out of every text?"""

import json
from urllib.parse import quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.redaction import MOST, explained, marked_in, scrubbed, withheld
from holdfast.model.schema import compile_schema
from tests.requirements import requirement

SECRET = "s3cr3t-v4lue"


@requirement("CON-6")
@pytest.mark.parametrize(
    "line",
    [
        f"Authorization: Bearer {SECRET}",
        f"authorization: Basic {SECRET}",
        f"{{'authorization': 'Bearer {SECRET}', 'host': 'x'}}",
        f"(b'authorization', b'Bearer {SECRET}')",
        f'"Proxy-Authorization": "{SECRET}"',
        f"Set-Cookie: session={SECRET}; Path=/",
        f"X-Holdfast-Approver-Secret: {SECRET}",
        f"key hf_abcd_{SECRET} was refused",
        f"password={SECRET}",
        f"password: '{SECRET} with spaces'",
        f'{{"api_key": "{SECRET}"}}',
        f"db_password = {SECRET}",
        f"https://example.org/?access_token={SECRET}&x=1",
        f"postgresql://app:{SECRET}@db.internal/orders",
        f"a bearer {SECRET}",
        f"eyJhbGciOi.{SECRET}.c2lnbmF0dXJl",
        f"-----BEGIN EC PRIVATE KEY-----\n{SECRET}\n-----END EC PRIVATE KEY-----",
        f"-----BEGIN PRIVATE KEY-----\n{SECRET}",
    ],
)
def test_what_looks_like_a_credential_is_not_shown(line: str) -> None:
    assert SECRET not in scrubbed(line)
    assert "[credential]" in scrubbed(line)


@pytest.mark.parametrize(
    "line",
    [
        "call call_01 by ana/bot: gate claim: the store cannot be used",
        "the bearer of bad news",
        "http://127.0.0.1:8080/v1/calls?x=1",
        "approval apr_12 was denied: a person said no",
        "a secret is needed; a password too",
    ],
)
def test_other_lines_stay_as_they_are(line: str) -> None:
    assert scrubbed(line) == line


def test_a_text_of_any_length_is_looked_through_in_little_time() -> None:
    hostile = "a." * 200_000 + "password" * 10_000 + "authorization" * 10_000
    assert len(scrubbed(hostile)) < MOST + 20


SCHEMA = compile_schema(
    {
        "type": "object",
        "properties": {
            "card": {"type": "string", "x-sensitivity": "secret"},
            "who": {
                "type": "object",
                "x-sensitivity": "pii",
                "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
            },
            "tags": {"type": "array", "items": {"type": "string", "x-sensitivity": "pii"}},
            "note": {"type": "string"},
        },
    }
)


@requirement("CON-6")
def test_every_value_below_a_marked_field_is_known() -> None:
    value = {"card": "4111-1111", "who": {"name": "Ada", "age": 41}, "tags": ["x1", "x2"], "note": "hello"}
    marked = dict(marked_in(SCHEMA, value))
    assert marked == {
        "4111-1111": "secret",
        "name": "pii",
        "Ada": "pii",
        "age": "pii",
        "41": "pii",
        "x1": "pii",
        "x2": "pii",
    }
    assert dict(marked_in(SCHEMA, json.dumps(value))) == marked
    assert list(marked_in(SCHEMA, "not json")) == []


@requirement("CON-6")
@given(st.text(min_size=6, max_size=30))
def test_a_marked_value_is_taken_out_however_it_is_spelled(value: str) -> None:
    for spelled in (value, repr(value), json.dumps(value), quote_plus(value, errors="replace")):
        left = withheld(f"<<{spelled}>>", [(value, "secret")])
        assert "[secret]" in left
        assert value not in left.replace("[secret]", "")


def test_a_short_value_is_taken_out_only_where_it_stands_alone() -> None:
    assert withheld("pin 7 of 17 cards", [("7", "secret")]) == "pin [secret] of 17 cards"


def test_of_two_values_the_longer_is_taken_out_first() -> None:
    assert withheld("abcdefgh", [("abcdef", "pii"), ("abcdefgh", "secret")]) == "[secret]"


@requirement("CON-6")
def test_an_error_is_explained_with_its_causes_and_without_what_is_marked() -> None:
    try:
        try:
            raise KeyError("4111-1111")
        except KeyError as cause:
            raise RuntimeError("card 4111-1111 with password=hunter2") from cause
    except RuntimeError as error:
        told = explained(error, [("4111-1111", "secret")])
    assert "4111" not in told
    assert "hunter2" not in told
    assert "RuntimeError: card [secret] with password=[credential]" in told
    assert "KeyError: '[secret]'" in told
