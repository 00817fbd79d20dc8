"""Which keys does the configuration have?

The docstring below a key is its line in `docs/reference/config.md`; a test compares them.
"""

from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, PrivateAttr, StringConstraints, model_validator

from holdfast.config.alerts import Alerts
from holdfast.config.auth import Auth
from holdfast.config.channels import Channel, ChannelName
from holdfast.config.console import Console, unfit
from holdfast.config.egress import Egress
from holdfast.config.fallbacks import Fallbacks, twice
from holdfast.config.place import Fault
from holdfast.config.references import unresolved
from holdfast.config.secrets import Secret, SecretName
from holdfast.config.section import Name, Namespace, Scope, Section, Trust, is_loopback
from holdfast.config.upstream import Upstream
from holdfast.model import defaults
from holdfast.model.errors import ConfigError
from holdfast.model.vocabulary import Environment


class IngressLimits(Section):
    rate: float = Field(default=defaults.INGRESS_RATE, gt=0)
    """Proposals per second and principal."""
    burst: float = Field(default=defaults.INGRESS_BURST, gt=0)
    """Proposals at once."""


class BudgetLimit(Section):
    per: Literal["task", "session", "principal", "tenant"]
    """Who owns it. Calls that name no task or session share one."""
    kind: Literal["read", "write", "external", "financial", "critical", "all"]
    """Which effects it bounds; nothing critical runs unless a budget of kind `critical` or `all` is there."""
    calls: int | None = Field(default=None, ge=0)
    """Calls at most."""
    cost: float | None = Field(default=None, ge=0)
    """Cost at most, in the currency below."""
    wall_s: float | None = Field(default=None, ge=0)
    """Seconds of running time at most; a call's deadline is narrowed to what is left."""
    retries: int | None = Field(default=None, ge=0)
    """Retries at most; a call is retried no more often than what is left."""
    window_s: float | None = Field(default=None, gt=0)
    """Starts anew every so many seconds; never when left out."""
    currency: str = "USD"
    """What `cost` is counted in."""

    @model_validator(mode="after")
    def _bounds(self) -> "BudgetLimit":
        if self.calls is self.cost is self.wall_s is self.retries is None:
            raise ValueError("a budget that bounds nothing; set 'calls', 'cost', 'wall_s' or 'retries'")
        return self


class RateLimits(Section):
    per: Literal["tool", "tenant", "principal", "credential"]
    """Whose calls count together; `tool`: everybody's of one tool; `credential`: all with one secret."""
    match: Annotated[str, StringConstraints(min_length=1, max_length=128)] = "*"
    """Which tools, such as `shop.refund` or `shop.*`; with `per: credential`, which secrets."""
    calls: float = Field(gt=0)
    """So many calls"""
    per_s: float = Field(gt=0)
    """in so many seconds, evenly."""


class Limits(Section):
    body_bytes: int = Field(default=defaults.BODY_BYTES, ge=1)
    """Largest request body."""
    depth: int = Field(default=defaults.BODY_DEPTH, ge=1)
    """Deepest nesting of arguments."""
    string: int = Field(default=defaults.BODY_STRING, ge=1)
    """Longest string in arguments."""
    keys: int = Field(default=defaults.BODY_KEYS, ge=1)
    """Most keys and items in arguments."""
    ingress: IngressLimits = IngressLimits()
    """How fast one principal may propose."""
    budgets: tuple[BudgetLimit, ...] = ()
    """How much may be done, by kind of effect."""
    rates: tuple[RateLimits, ...] = ()
    """How fast tools may be called, in all processes together."""


class Approvals(Section):
    expire_s: float = Field(default=defaults.APPROVAL_S, gt=0)
    """Seconds after which an unanswered approval is denied."""
    release: Literal["caller", "gateway"] = "caller"
    """Who proposes an approved call again; a proposal may say otherwise."""
    chain: tuple[tuple[Name, ...], ...] = ()
    """Groups of roles: while nobody answers, each group may answer for the roles of those before it."""
    trusted_clients: tuple[Annotated[str, StringConstraints(min_length=1, max_length=128)], ...] = ()
    """MCP clients, by the name they give, whose own dialogue may ask for a `user` approval."""
    cost_per_decision: float = Field(default=0.0, ge=0)
    """What a person's decision costs, in the currency of the tool it is about; part `human_review`."""


class Mcp(Section):
    lazy_above: int = Field(default=defaults.LAZY_ABOVE, ge=0)
    """With more tools than this, clients are shown the pinned ones and three to find the others with."""
    pinned: tuple[Annotated[str, StringConstraints(min_length=1, max_length=128)], ...] = ()
    """Tools that are always shown, such as `shop.refund` or `shop.*`."""
    plans: bool = False
    """Offer `propose_plan` to clients that may call what people must approve: one question for many calls."""


def _word(value: Any) -> Any:
    """YAML reads `on` and `off` as truth values."""
    return {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value


class Telemetry(Section):
    traces: Annotated[Literal["off", "otlp"], BeforeValidator(_word)] = "off"
    """`otlp` sends spans to a collector; needs the extra `otlp`."""
    endpoint: Annotated[str, StringConstraints(pattern=r"^https?://[^\s/?#@]+(/[^\s?#]*)?$")] = (
        "http://127.0.0.1:4318"
    )
    """The collector's OTLP/HTTP address; `/v1/traces` and `/v1/metrics` are added."""
    sample: float = Field(default=1.0, ge=0, le=1)
    """Share of traces begun here that are kept; one begun elsewhere is kept if it was there."""
    metrics: Annotated[Literal["on", "off", "otlp"], BeforeValidator(_word)] = "on"
    """`on` serves them at `/metrics`; `otlp` also sends them to the collector."""
    tenant_label: bool = False
    """Tells tenants apart in the whole view of the metrics, by the label `tenant`."""
    all_tenants: tuple[Name, ...] = ()
    """People who see the metrics of every tenant; others see their own tenant's."""
    logs: Literal["json", "text"] | None = None
    """`json` or `text`; when left out text in a terminal, else JSON."""
    level: Literal["debug", "info", "warning", "error"] = "warning"
    """The least that is logged."""
    alerts: Alerts = Alerts()
    """When people are told that something is wrong."""


class TenantAudit(Section):
    retention_days: float = Field(gt=0)
    """Days after which this tenant's records are dropped."""


class Audit(Section):
    key: Annotated[str, StringConstraints(pattern=r"^(file|env):\S+$")] | None = None
    """Signs checkpoints: `file:PATH` or `env:NAME`; a file beside the store, made once, when left out."""
    checkpoints: Annotated[str, StringConstraints(min_length=1)] | None = None
    """The file checkpoints are appended to, best where the store cannot write; beside it when left out."""
    retention_days: float | None = Field(default=None, gt=0)
    """Days after which records are dropped and only their hashes stay; for ever when left out."""
    tenants: dict[Name, TenantAudit] = {}
    """What is different for a tenant."""


class PolicyReview(Section):
    required: bool = False
    """Promote only what somebody has tried on recorded calls, with `holdfast policy diff --accept`."""
    days: float = Field(default=defaults.REVIEW_DAYS, gt=0)
    """How many days of calls it must have been tried on."""


class Facts(Section):
    residency: str | None = None
    """Where this gateway's callers may keep data; policies read it as `context.residency`."""
    jurisdiction: str | None = None
    """Whose law holds for its callers; policies read it as `context.jurisdiction`."""


OWN = ("holdfast", "chains")
"""Elevations, rules and plans are asked about under the first, chains are tools of the second: no upstream
may answer to them.
"""


class Config(Section):
    store: Annotated[str, StringConstraints(pattern=r"^(sqlite:///[^:?#]+|postgres(ql)?://\S+)$")] = (
        "sqlite:///holdfast.db"
    )
    """`sqlite:///file` beside the config file, `sqlite:////absolute/file`, or `postgresql://user@host/db`."""
    store_key: Annotated[str, StringConstraints(pattern=r"^(file|env):\S+$")] | None = None
    """Protects what is stored: `file:PATH` or `env:NAME`; a file beside the store, made once, if left out."""
    environment: Environment = Environment.DEV
    """`dev`, `staging` or `prod`."""
    upstreams: dict[Namespace, Upstream] = {}
    """Where tools live, by namespace."""
    secrets: dict[SecretName, Secret] = {}
    """The gateway's own secrets, by the name contracts and `${secret:NAME}` call them."""
    auth: Auth = Auth()
    """Who may call."""
    limits: Limits = Limits()
    """How much, how large and how fast."""
    approvals: Approvals = Approvals()
    """How people are asked."""
    channels: dict[ChannelName, Channel] = {}
    """How people hear of questions and alerts, by a name of your own."""
    console: Console = Console()
    """The pages for people."""
    mcp: Mcp = Mcp()
    """How MCP clients are served."""
    lock: Annotated[str, StringConstraints(min_length=1)] = "holdfast.lock"
    """The file that keeps what imported tools looked like when they were accepted."""
    policies: Annotated[str, StringConstraints(min_length=1)] | None = None
    """The folder of `.cedar` files; promoted at the first start, later by `holdfast policy promote`."""
    chains: Annotated[str, StringConstraints(min_length=1)] | None = None
    """The folder of chains, one YAML file each: tools `chains.NAME`, whose runs go on by themselves."""
    fallbacks: Fallbacks = {}
    """What is done where a tool cannot answer, by capability tag; `none` where nothing can be."""
    egress: Egress = Egress()
    """Where the gateway may connect to."""
    policy_review: PolicyReview = PolicyReview()
    """What must be looked at before policies are put in force."""
    facts: Facts = Facts()
    """What policies may know about this gateway."""
    telemetry: Telemetry = Telemetry()
    """What can be seen from outside."""
    audit: Audit = Audit()
    """How the records are kept."""
    critical_scopes: tuple[Scope, ...] = ()
    """In prod, a call that needs one of these always needs approval."""
    trust_threshold: Trust = defaults.TRUST_THRESHOLD
    """Callers from this trust on may make undoable writes outside prod without approval."""
    pins: dict[str, str] = {}
    """Version specs by tool, such as `shop.refund: ^2.0.0`."""
    base_url: Annotated[str, StringConstraints(pattern=r"^https?://[^\s/?#]+(/[^\s?#]*)?$")] | None = None
    """Where people reach this gateway, for links; the address served when left out."""

    @model_validator(mode="after")
    def _agrees(self) -> "Config":
        wrong = list(unresolved(self.secrets, self.upstreams, self.channels))
        wrong += unfit(self.console, self.auth)
        wrong += twice(self.fallbacks)
        for own in OWN:
            if own in self.upstreams:
                wrong.append(
                    Fault(("upstreams", own), f"{own!r} names the gateway's own; choose another name")
                )
        if wrong:
            raise ValueError(wrong)
        return self

    _folder: Path = PrivateAttr(default_factory=Path.cwd)
    _source: str = PrivateAttr(default="config")

    @property
    def folder(self) -> Path:
        """Relative paths start here: the folder of the config file, or the working folder."""
        return self._folder

    @property
    def source(self) -> str:
        """The file this was read from, for messages."""
        return self._source

    @property
    def on_postgres(self) -> bool:
        return self.store.startswith("postgres")

    @property
    def store_path(self) -> Path:
        """The database file; for a database elsewhere, the name that files beside the config take after."""
        return self._folder / ("holdfast.pg" if self.on_postgres else self.store.removeprefix("sqlite:///"))

    @property
    def store_shown(self) -> str:
        """The store for people to read, without a password."""
        if not self.on_postgres:
            return str(self.store_path)
        parts = urlsplit(self.store)
        user = f"{parts.username}@" if parts.username else ""
        return f"postgresql://{user}{parts.netloc.rpartition('@')[2]}{parts.path}"

    def beside(self, ending: str) -> Path:
        """A file that belongs to the store."""
        return self.store_path.with_name(f"{self.store_path.name}{ending}")

    def placed(self, folder: Path, source: str) -> "Config":
        self._folder, self._source = folder, source
        return self

    def check_host(self, host: str) -> None:
        """Local mode believes whoever can connect, so it listens to this machine only."""
        if self.auth.mode == "local" and not is_loopback(host):
            raise ConfigError(
                f"auth.mode 'local' serves this machine only, not {host!r}; use --host 127.0.0.1, "
                "or set auth.mode to 'api_key' and make keys with 'holdfast keys create'"
            )
