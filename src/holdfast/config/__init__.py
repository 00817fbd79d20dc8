"""What did the operator write down?

One frozen tree from one file, YAML or TOML, read by `gateway` and `cli` only. Every
fault is reported at once, each with its path, and an unknown key with the nearest
known one. A key for something that is not built yet is refused rather than ignored:
who writes `audit:` must not believe that it is kept.
"""

from holdfast.config.auth import Agent, Auth, Held, Key, Person
from holdfast.config.load import load, parse
from holdfast.config.section import is_loopback
from holdfast.config.tree import Approvals, Config, Limits
from holdfast.config.upstream import McpAuth, McpServer, Upstream

__all__ = [
    "Agent",
    "Approvals",
    "Auth",
    "Config",
    "Held",
    "Key",
    "Limits",
    "McpAuth",
    "McpServer",
    "Person",
    "Upstream",
    "is_loopback",
    "load",
    "parse",
]
