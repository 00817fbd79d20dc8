"""Where a test asks for a kind, it runs on every store."""

import pytest

from tests.stored import ALL


@pytest.fixture(params=ALL)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)
