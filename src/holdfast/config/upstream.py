"""Where do tools live, and how are they reached?

The docstring below a key is its line in `docs/reference/config.md`; a test compares them.
"""

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, StringConstraints, model_validator

from holdfast.config.egress import Egress, clear_host
from holdfast.config.place import Fault
from holdfast.config.section import Section
from holdfast.model import defaults


class McpAuth(Section):
    type: Literal["oauth", "client_credentials", "token_exchange"]
    """`oauth`: by `holdfast login`; `client_credentials`: the gateway's own; `token_exchange`: RFC 8693."""
    client_id: str | None = None
    """As registered there; the gateway registers itself when left out."""
    client_secret: str | None = Field(default=None, repr=False)
    """Its secret, as `${secret:NAME}`, or `${NAME}` for one that is read once."""
    token_url: Annotated[str, StringConstraints(pattern=r"^https?://[^\s/?#@]+(/[^\s?#]*)?$")] | None = None
    """Where `token_exchange` changes what the gateway says of a caller into a token for this upstream."""
    audience: str | None = None
    """Whom that token is for, in the token server's words."""
    resource: str | None = None
    """The resource it is for (RFC 8707); the upstream's `url` when neither this nor `audience` is given."""
    issuer: str | None = None
    """The only authorization server that may see id and secret; the first one that did when left out."""
    client_metadata_url: str | None = None
    """Where a document describes this gateway to authorization servers that read such documents."""
    scopes: tuple[str, ...] = ()
    """What to ask for; what the server names when left out."""
    redirect_port: int = Field(default=0, ge=0, le=65535)
    """The loopback port a sign-in comes back to; any free one when 0."""
    shared: bool = False
    """One sign-in for every caller, instead of one for each."""

    @model_validator(mode="after")
    def _of_its_type(self) -> "McpAuth":
        exchanges = self.type == "token_exchange"
        foreign = _SIGNED_IN if exchanges else _EXCHANGED
        other = "'oauth' and 'client_credentials'" if exchanges else "'token_exchange'"
        odd = sorted(foreign & self.model_fields_set)
        wrong = [Fault((name,), f"is for {other}; remove it") for name in odd]
        if exchanges and self.token_url is None:
            wrong.append(Fault(("token_url",), "is required; add it"))
        if wrong:
            raise ValueError(wrong)
        return self


_SIGNED_IN = frozenset({"issuer", "client_metadata_url", "redirect_port", "shared"})
_EXCHANGED = frozenset({"token_url", "audience", "resource"})


class McpServer(Section):
    command: Annotated[str, StringConstraints(min_length=1)] | None = None
    """A program that speaks MCP over stdin and stdout; looked for beside the gateway's own Python first."""
    args: tuple[str, ...] = ()
    """Its arguments."""
    env: dict[str, str] = Field(default={}, repr=False)
    """Its environment, beside PATH, HOME and the like; nothing else of the gateway's own is passed on."""
    cwd: str | None = None
    """Where it runs; the folder of the config file when left out."""
    url: Annotated[str, StringConstraints(pattern=r"^https?://[^\s/?#@]+([/?][^\s#]*)?$")] | None = None
    """A server that speaks MCP over streamable HTTP."""
    headers: dict[str, str] = Field(default={}, repr=False)
    """Sent with every request to it, such as a key of the gateway's own."""
    transport: Literal["http", "sse"] = "http"
    """`sse` for servers older than streamable HTTP."""
    auth: McpAuth | None = None
    """How the gateway is authorized there."""

    @model_validator(mode="after")
    def _one_way(self) -> "McpServer":
        if (self.command is None) == (self.url is None):
            raise ValueError("name either 'command' or 'url'")
        if self.url is not None:
            clear_host(urlsplit(self.url).hostname or "")
        given = self.model_fields_set
        foreign = (
            {"url", "headers", "transport", "auth"} if self.url is None else {"command", "args", "env", "cwd"}
        )
        if wrong := sorted(foreign & given):
            way = "command" if self.url is None else "url"
            raise ValueError([Fault((name,), f"does not go with {way!r}; remove it") for name in wrong])
        return self


class Twin(Section):
    functions: Annotated[str, StringConstraints(pattern=r"^\w+(\.\w+)*:\w+$")] | None = None
    """The same Python tools over scratch data, as `module:object`; an object that is called is made anew."""
    mcp: McpServer | None = None
    """Another MCP server with the same tools."""
    env: dict[str, str] = Field(default={}, repr=False)
    """What is different in the environment of the same program, such as the file it writes to."""

    @model_validator(mode="after")
    def _one_kind(self) -> "Twin":
        if [self.functions is not None, self.mcp is not None, bool(self.env)].count(True) != 1:
            raise ValueError("name one of 'functions', 'mcp' and 'env'")
        return self


class Upstream(Section):
    functions: Annotated[str, StringConstraints(pattern=r"^\w+(\.\w+)*:\w+$")] | None = None
    """Python tools, as `module:object`; the folder of the config file is searched first."""
    mcp: McpServer | None = None
    """An MCP server."""
    prefix: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{0,32}$")] | None = None
    """Goes before names over MCP, as `prefix__name`; `""` mounts 1:1. The namespace when left out."""
    trust_annotations: bool = False
    """Believe what an MCP server says of its own tools, such as `readOnlyHint`."""
    contracts: Annotated[str, StringConstraints(min_length=1)] | None = None
    """The overlay file that says what imported tools really do."""
    twin: Twin | None = None
    """The same tools where nothing counts: `holdfast chain prove` does and undoes things there."""
    concurrency: int = Field(default=defaults.UPSTREAM_CONCURRENCY, ge=1)
    """Calls in flight at this upstream at once."""
    egress: Egress | None = None
    """Where the gateway may connect to for this upstream; as `egress` below the root says when left out."""
    residency: str | None = None
    """Where this upstream keeps its data, such as `eu`; policies read it as `resource.residency`."""
    jurisdiction: str | None = None
    """Whose law holds for this upstream; policies read it as `resource.jurisdiction`."""

    @model_validator(mode="after")
    def _one_kind(self) -> "Upstream":
        if (self.functions is None) == (self.mcp is None):
            raise ValueError("name either 'functions' or 'mcp'")
        if self.egress is not None and (self.mcp is None or self.mcp.url is None):
            why = "is for servers with a 'url'; what a program or a function connects to is not seen here"
            raise ValueError([Fault(("egress",), f"{why}; remove it")])
        if self.twin is not None and (unlike := self._unlike(self.twin)):
            raise ValueError([Fault(("twin",), unlike)])
        imported = {"trust_annotations", "contracts"}
        if self.mcp is None and (wrong := sorted(imported & self.model_fields_set)):
            raise ValueError([Fault((name,), "is for imported tools; remove it") for name in wrong])
        return self

    def _unlike(self, twin: Twin) -> str:
        """What makes a twin another kind of thing than this."""
        if self.functions is not None:
            return "" if twin.functions else "is for other tools than Python ones; name 'functions'"
        if twin.functions is not None:
            return "an imported tool has an imported twin; name 'mcp' or 'env'"
        if twin.env and (self.mcp is None or self.mcp.command is None):
            return "'env' is for a server with a 'command'; name 'mcp'"
        return ""
