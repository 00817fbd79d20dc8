"""Is what the tests take from npm pinned as tightly as what they take from PyPI?"""

import json
import re

from tests.npm.installed import HERE


def test_the_lock_pins_by_hash_and_names_no_registry() -> None:
    locked = json.loads((HERE / "package-lock.json").read_text())["packages"]
    fetched = {name: entry for name, entry in locked.items() if name}
    assert fetched
    assert [name for name, entry in fetched.items() if not entry["integrity"].startswith("sha512-")] == []
    assert [name for name, entry in fetched.items() if "resolved" in entry] == []


def test_every_package_is_asked_for_in_one_version() -> None:
    asked = json.loads((HERE / "package.json").read_text())["dependencies"]
    assert [name for name, version in asked.items() if not re.fullmatch(r"[\w.-]+", version)] == []
