"""Do processes that share one know what the others have said?"""

import os
import subprocess
import sys

import pytest

from holdfast.cli.tally import Tally

SAYS = """
import os
from holdfast.cli.tally import Tally
tally = Tally.found(os.environ)
tally.say(7)
print(tally.least(), "HOLDFAST_TALLY" in os.environ)
"""


def test_a_worker_is_heard_by_its_parent_and_hears_the_others() -> None:
    parent = Tally.made(3)
    other = Tally(parent.descriptor, 0)
    other.say(4)
    done = subprocess.run(
        [sys.executable, "-c", SAYS],
        env=os.environ | parent.variable(2),
        pass_fds=(parent.descriptor,),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "4 False\n"
    assert other.least() == 7


def test_who_is_gone_does_not_count() -> None:
    parent = Tally.made(3)
    assert parent.least() is None
    one, two = Tally(parent.descriptor, 1), Tally(parent.descriptor, 2)
    two.say(5)
    assert (one.least(), two.least()) == (5, None)
    one.say(2)
    assert two.least() == 2
    one.leave()
    assert two.least() is None
    parent.gone(2)
    assert one.least() is None


def test_where_the_parent_has_none_there_is_none() -> None:
    assert Tally.found({}) is None


def refused(name: str) -> int:
    raise PermissionError(name)


def test_where_files_have_no_memory_a_file_that_has_no_name_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "memfd_create", refused)
    parent = Tally.made(2)
    Tally(parent.descriptor, 1).say(3)
    assert parent.least() == 3
