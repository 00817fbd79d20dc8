"""What does a conformance test start with?"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.conformance.started import started

HERE = Path(__file__).parent
PYTHON = sys.executable


@pytest.fixture(scope="session")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("conformance")


@pytest.fixture(scope="session")
def fixture_url(logs: Path) -> Iterator[str]:
    """Our own server for the suite, in a process of its own."""
    command = (PYTHON, "-m", "tests.conformance.fixture")
    with started(command, r"^(\d+)$", logs / "fixture.log") as port:
        yield f"http://127.0.0.1:{port}/mcp"


@pytest.fixture(scope="session")
def gateway_url(fixture_url: str, logs: Path) -> Iterator[str]:
    """Holdfast in front of that server, mounted so that its names stay as they are."""
    config = logs / "holdfast.yaml"
    upstream = {"mcp": {"url": fixture_url}, "prefix": "", "contracts": str(HERE / "overlay.yaml")}
    config.write_text(
        yaml.safe_dump({"store": f"sqlite:///{logs / 'holdfast.db'}", "upstreams": {"fixture": upstream}})
    )
    command = (PYTHON, "-m", "holdfast", "serve", "--config", str(config), "--port", "0")
    with started(command, r"(http://127\.0\.0\.1:\d+)", logs / "holdfast.log") as url:
        yield f"{url}/mcp"
