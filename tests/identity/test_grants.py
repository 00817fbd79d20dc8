"""Does a grant end when it says?"""

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from holdfast.identity.grants import Grant, scopes, valid_until
from holdfast.model.defaults import GRANT_REFRESH_S
from tests.requirements import requirement

GRANTS = st.lists(
    st.builds(
        Grant, st.sampled_from(["a", "b", "c"]), st.just("x"), st.integers(0, 100).map(float) | st.just(inf)
    )
)


@requirement("AUT-4")
def test_a_grant_holds_until_its_end_and_not_at_it() -> None:
    grants = [Grant("orders:read"), Grant("refunds:create", "bob", expires_at=100.0)]
    assert scopes(grants, 99.9) == {"orders:read", "refunds:create"}
    assert scopes(grants, 100.0) == {"orders:read"}


@requirement("AUT-4")
def test_a_grant_is_due_sixty_seconds_before_its_end() -> None:
    grant = Grant("a", expires_at=1000.0)
    assert GRANT_REFRESH_S == 60
    assert not grant.due(939.9)
    assert grant.due(940.0)
    assert not Grant("a").due(1e12)


@given(GRANTS, st.integers(0, 100), st.integers(0, 100))
def test_scopes_do_not_change_before_the_moment_told(grants: list[Grant], now: int, later: int) -> None:
    if now <= later < valid_until(grants, now):
        assert scopes(grants, later) == scopes(grants, now)
