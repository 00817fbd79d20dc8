import pytest

from holdfast.model.version import Bump, Candidate, Spec, bump, choose, newest
from tests.requirements import requirement

OFFERED = [
    Candidate("1.2.0"),
    Candidate("1.9.0", "deprecated"),
    Candidate("2.0.0"),
    Candidate("2.1.0"),
    Candidate("2.1.5", "sunset"),
    Candidate("2.10.0"),
    Candidate("3.0.0", "deprecated"),
    Candidate("4.0.0-rc.1"),
    Candidate("5.0.0", "revoked"),
]


@requirement("REG-4")
@pytest.mark.parametrize(
    ("spec", "chosen"),
    [
        (None, "2.10.0"),
        ("LATEST", "2.10.0"),
        ("latest", "2.10.0"),
        ("2.1.0", "2.1.0"),
        ("2.1.5", "2.1.5"),
        ("9.9.9", None),
        ("2.x", "2.10.0"),
        ("2", "2.10.0"),
        ("2.1.x", "2.1.0"),
        ("^2.0.0", "2.10.0"),
        ("~2.1", "2.1.0"),
        (">=1.2 <2", "1.2.0"),
        (">=1.3 <2", "1.9.0"),
        ("1.x || 3.x", "1.2.0"),
        ("3.x", "3.0.0"),
        ("5.x", None),
        ("4.x", None),
        (">=4.0.0-rc.0 <4.0.1", "4.0.0-rc.1"),
        ("*", "2.10.0"),
    ],
)
def test_a_spec_chooses_a_version(spec: str | None, chosen: str | None) -> None:
    assert choose(spec, OFFERED) == chosen


@requirement("REG-4")
def test_latest_falls_back_to_the_newest_deprecated_and_then_to_a_prerelease() -> None:
    old = [Candidate("1.0.0", "deprecated"), Candidate("1.1.0", "deprecated"), Candidate("2.0.0-rc.1")]
    assert choose(None, old) == "1.1.0"
    assert choose(None, old[2:]) == "2.0.0-rc.1"
    assert choose(None, [Candidate("1.0.0", "sunset")]) is None
    assert choose(None, []) is None


@requirement("REG-4")
@pytest.mark.parametrize(
    "spec", ["", "  ", "two", ">=a", ">=1.2, <2", "1.2.3.4", "²", "x" * 200, "1.0.0 " * 50]
)
def test_a_bad_spec_says_what_is_allowed(spec: str) -> None:
    with pytest.raises(ValueError, match="use an exact version"):
        Spec.parse(spec)


@requirement("REG-5")
@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("1.2.3", "2.0.0", "major"),
        ("1.2.3", "1.3.0", "minor"),
        ("1.2.3", "1.2.4", "patch"),
        ("1.2.3", "1.2.3", "none"),
        ("1.2.3", "1.2.3+build.7", "none"),
        ("1.2.3", "1.2.2", "down"),
        ("2.0.0-rc.1", "2.0.0", "patch"),
        ("1.9.0", "1.10.0", "minor"),
    ],
)
def test_a_bump_is_named(old: str, new: str, expected: Bump) -> None:
    assert bump(old, new) == expected


def test_the_newest_is_found_by_number_and_not_by_letter() -> None:
    assert newest(["1.9.0", "1.10.0", "1.10.0-rc.1"]) == "1.10.0"
    assert newest([]) is None


def test_a_version_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'1\.2' is not a semantic version"):
        bump("1.2", "1.3.0")
