"""supergateway: stdio made HTTP. It starts its servers itself, one for each session."""

import os
import shlex
import shutil
from pathlib import Path

from holdfast_faults.adapter import Adapter, Launch, Site, Unavailable
from holdfast_faults.ports import free_port

SCRIPT = Path("node_modules", "supergateway", "dist", "index.js")


def prepare(site: Site, node: Path | None = None) -> Launch:
    port = free_port()
    command = (
        *(*_program(site, node), "--stdio", shlex.join(site.upstream_command), "--stateful"),
        *("--outputTransport", "streamableHttp", "--port", str(port), "--logLevel", "none"),
    )
    return Launch(command=command, url=f"http://127.0.0.1:{port}/mcp")


def _program(site: Site, node: Path | None) -> tuple[str | Path, ...]:
    if site.home is None:
        if (found := shutil.which("supergateway")) is None:
            raise Unavailable(
                "there is no 'supergateway' command: install it with npm, or say --home supergateway=FOLDER"
            )
        return (found,)
    runs = node or os.environ.get("HOLDFAST_FAULTS_NODE") or shutil.which("node")
    if runs is None:
        raise Unavailable("there is no 'node' on the PATH")
    return runs, site.home / SCRIPT


SUPERGATEWAY = Adapter(
    name="supergateway",
    about="supergateway",
    keys="none; passed on to the upstream",
    prepare=prepare,
    unfit={"store-restart": "it has no store"},
)
