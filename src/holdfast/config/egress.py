"""Where may the gateway connect to?

The docstring below a key is its line in `docs/reference/config.md`; a test compares them.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, StringConstraints, model_validator

from holdfast.config.section import Section
from holdfast.model.egress.host import read
from holdfast.model.egress.rules import entry


def _entry(text: str) -> str:
    try:
        entry(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is not allowed here; write a host, '*.host' or a range such as '10.0.0.0/8', "
            "each with or without ':port'"
        ) from None
    return text


def clear_host(host: str) -> None:
    """Raises ValueError for a host that can be read in more than one way."""
    read(host if host.isascii() else host.encode("idna").decode())


Place = Annotated[str, StringConstraints(min_length=1, max_length=260), AfterValidator(_entry)]


class Egress(Section):
    mode: Literal["none", "listed", "private", "public", "approval"] = "public"
    """What is connected to beside the urls written here; `none`: not even those."""
    allow: tuple[Place, ...] = ()
    """Let through as well: `host`, `*.host` (public addresses) or `10.0.0.0/8`, with or without `:port`."""

    @model_validator(mode="after")
    def _something(self) -> "Egress":
        if self.mode == "none" and self.allow:
            raise ValueError("'none' lets nothing through; remove 'allow', or set 'mode' to 'listed'")
        return self
