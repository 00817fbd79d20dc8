"""FastMCP's proxy as `create_proxy(url)` makes it. It has no notion of a key."""

import sys
from importlib.util import find_spec
from pathlib import Path

from holdfast_faults.adapter import Adapter, Launch, Site, Unavailable
from holdfast_faults.ports import free_port

SCRIPT = Path(__file__).with_name("fastmcp_proxy.py")


def prepare(site: Site, way: str = "fresh") -> Launch:
    port = free_port()
    command = (_python(site), "-P", SCRIPT, site.upstream_url, str(port), way)
    return Launch(command=command, url=f"http://127.0.0.1:{port}/mcp")


def _python(site: Site) -> Path:
    if site.home is not None:
        return site.home / "bin" / "python"
    if find_spec("fastmcp") is None:
        raise Unavailable("fastmcp is not installed here: install it, or say --home fastmcp=ENVIRONMENT")
    return Path(sys.executable)


FASTMCP = Adapter(
    name="fastmcp",
    about="FastMCP proxy",
    keys="none; passed on to the upstream",
    prepare=prepare,
    unfit={"store-restart": "it has no store"},
)
