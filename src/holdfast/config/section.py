"""What do all sections of the configuration have in common?"""

from ipaddress import ip_address
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from holdfast.model import scopes


def _scope(pattern: str) -> str:
    if wrong := scopes.check(pattern):
        raise ValueError(wrong)
    return pattern


Namespace = Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]{1,32}$")]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$")]
Scope = Annotated[str, AfterValidator(_scope)]
Trust = Annotated[int, Field(ge=0, le=100)]


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
