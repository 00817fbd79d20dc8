"""Is a moment written as the standard library writes it?"""

from datetime import UTC, datetime

from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.model.moment import iso, iso_cut

moments = st.floats(min_value=0, max_value=4_000_000_000, allow_nan=False)


@given(moments)
@example(0.0)
@example(1_799_999_999.9999998)
@example(1_799_999_999.0009995)
@example(1_800_000_000.9994999)
def test_a_moment_reads_as_the_standard_library_writes_it(at: float) -> None:
    assert iso(at) == datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")


@given(moments)
@example(1_799_999_999.9999998)
def test_a_cut_moment_is_never_later_than_it_was(at: float) -> None:
    assert 0 <= at - datetime.fromisoformat(iso_cut(at)).timestamp() < 0.001_001
