"""What does a form say?"""

from urllib.parse import parse_qsl

from starlette.requests import Request

from holdfast.servers.answers import TransportError
from holdfast.servers.visit import read

UNREADABLE = "this form cannot be read"


class Form:
    """The fields of a form; one name may have several values."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._pairs = pairs

    def get(self, name: str, default: str = "") -> str:
        return next((value for field, value in self._pairs if field == name), default)

    def all(self, name: str) -> list[str]:
        return [value for field, value in self._pairs if field == name]


async def read_form(request: Request, most_bytes: int, most_fields: int) -> Form:
    """Raises TransportError for what is too large, and for what is no form."""
    body = await read(request, most_bytes)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if body and kind != "application/x-www-form-urlencoded":
        raise TransportError(415, UNREADABLE, "open the page again")
    try:
        text = body.decode()
        if "\0" in text or "%00" in text:  # no text of ours has one, and not every store takes one
            raise ValueError
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=most_fields, strict_parsing=bool(body))
    except ValueError:
        raise TransportError(400, UNREADABLE, "open the page again") from None
    return Form(pairs)
