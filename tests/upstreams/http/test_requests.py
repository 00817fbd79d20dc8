"""What does a request look like on the wire, and what can never be written into one?"""

import pytest

from holdfast.upstreams.http.address import address
from holdfast.upstreams.http.head import head, request


@pytest.mark.parametrize(
    ("url", "line", "host"),
    [
        ("http://shop.example/mcp", "POST /mcp HTTP/1.1", "shop.example"),
        ("http://shop.example", "POST / HTTP/1.1", "shop.example"),
        ("https://shop.example:443/mcp", "POST /mcp HTTP/1.1", "shop.example"),
        ("http://shop.example:443/mcp", "POST /mcp HTTP/1.1", "shop.example:443"),
        (
            "http://SHOP.example:8080/a%20b?q=1&r=%2F#part",
            "POST /a%20b?q=1&r=%2F HTTP/1.1",
            "shop.example:8080",
        ),
        ("http://[::1]:9000/mcp", "POST /mcp HTTP/1.1", "[::1]:9000"),
        ("http://münchen.example/straße", "POST /stra%C3%9Fe HTTP/1.1", "xn--mnchen-3ya.example"),
        ('http://shop.example/a b"<>', "POST /a%20b%22%3C%3E HTTP/1.1", "shop.example"),
    ],
)
def test_a_url_is_written_as_http_wants_it(url: str, line: str, host: str) -> None:
    lines = head("POST", address(url), {}).decode("ascii").split("\r\n")
    assert lines[0] == line
    assert f"host: {host}" in lines


def test_a_url_with_a_name_and_a_password_signs_in_unless_a_header_does() -> None:
    there = address("http://me:p%40ss@shop.example/")
    assert b"authorization: Basic bWU6cEBzcw==\r\n" in head("POST", there, {})
    assert b"Basic" not in head("POST", there, {"authorization": "Bearer t"})
    assert b"me:" not in head("POST", there, {})


@pytest.mark.parametrize(
    "url", ["ftp://shop.example/", "shop.example", "http:///mcp", "http://a:b:c/", "http://[::1/"]
)
def test_a_url_that_leads_nowhere_is_an_error_that_does_not_repeat_it(url: str) -> None:
    with pytest.raises(ValueError, match="the url") as told:
        address(url)
    assert url not in str(told.value)


@pytest.mark.parametrize("value", ["a\r\nx-more: b", "a\nb", "a\rb", "a\0b"])
def test_a_value_never_ends_its_line(value: str) -> None:
    with pytest.raises(ValueError, match="'x-key' has a line end") as told:
        head("POST", address("http://shop.example/"), {"x-key": value})
    assert value not in str(told.value)


@pytest.mark.parametrize("name", ["", "a b", "a:b", "a\r\nb", "ä", "content-length", "transfer-encoding"])
def test_a_name_that_is_none_or_says_where_a_message_ends_is_not_sent(name: str) -> None:
    with pytest.raises(ValueError, match="cannot be sent as a header"):
        head("POST", address("http://shop.example/"), {name: "1"})


def test_a_request_says_how_long_its_body_is_and_one_without_a_body_does_not() -> None:
    begun = head("POST", address("http://shop.example/"), {"accept": "application/json", "x-name": "grün"})
    assert request(begun, b"body").endswith(b"\r\ncontent-length: 4\r\n\r\nbody")
    assert request(begun, b"").endswith(b"\r\ncontent-length: 0\r\n\r\n")
    assert request(begun, None) == begun + b"\r\n"
    assert b"content-length" not in request(begun, None)
    assert begun.count(b"accept:") == 1
    assert "x-name: grün\r\n".encode() in begun
