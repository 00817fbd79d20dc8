"""What holds for every test here?"""

from collections.abc import Generator

import pytest
from hypothesis import settings

# A slow machine is not a failing law: no wall clock decides whether a test passes.
settings.register_profile("holdfast", deadline=None, print_blob=True)
settings.load_profile("holdfast")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What a test logged may hold half a character, which no report can carry to another process."""
    report = yield
    report.sections = [(name, _whole(text)) for name, text in report.sections]
    return report


def _whole(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
