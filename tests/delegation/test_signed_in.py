"""Does what somebody hands on from an issuer's token end with it, and stay within it?"""

import pytest
from joserfc.jwk import OKPKey

from holdfast.gateway.delegation import Delegation, Issued
from holdfast.identity import Identity, Unauthenticated
from holdfast.identity.delegation import Wider, Wish
from holdfast.identity.tokens import TYPE, Tokens
from holdfast.model.defaults import TOKEN_SKEW_S
from holdfast.stores.keyring import Keyring
from holdfast.testing import CountingIds
from tests.identity.issuer import Issuer
from tests.identity.lending import Unwritten
from tests.requirements import requirement

LIFE_S = 600 + TOKEN_SKEW_S
"""As long as the issuer's token is taken here."""


class Office:
    def __init__(self, issuer: Issuer, identity: Identity) -> None:
        self.issuer, self.identity = issuer, identity
        tokens = Tokens(
            Keyring(),
            "",
            lambda: issuer.now,
            keys=identity.keys,
            person_of=identity.strangers.person,  # type: ignore[arg-type]
            groups=lambda: identity.strangers.by_group,
        )
        identity.readers.append(tokens)
        self.tokens = tokens
        parts = (identity, tokens, None, Unwritten(), self, CountingIds(), None)
        self.delegation = Delegation(*parts)  # type: ignore[arg-type]

    def now(self) -> float:
        return self.issuer.now

    async def handed(self, presented: str, actor: str | None = None, **wish: object) -> Issued:
        subject = await self.delegation.subject(presented)
        by = None if actor is None else await self.delegation.subject(actor)
        return await self.delegation.issue(subject.principal, subject, Wish(**wish), by)  # type: ignore[arg-type]


async def office(**auth: object) -> Office:
    issuer = Issuer()
    return Office(issuer, await issuer.ready(**auth))


@requirement("AUT-2", "AUT-5")
async def test_it_holds_what_the_token_and_the_person_hold_and_no_longer() -> None:
    desk = await office()
    signed_in = desk.issuer.token()  # orders:read mail:send of a person with orders:*
    issued = await desk.handed(signed_in, agent="helper")
    held = desk.identity.holder(issued.token).principal
    assert held.scopes == {"orders:read"}
    assert held.act == ("helper", "notebook")
    assert held.rests_on == ("token:t-1", f"token:{issued.jti}")
    assert issued.life_s == LIFE_S
    with pytest.raises(Wider):
        await desk.handed(signed_in, agent="helper", scopes=frozenset({"orders:write"}))
    with pytest.raises(Wider):
        await desk.handed(signed_in, agent="helper", life_s=LIFE_S + 1)
    desk.issuer.now += LIFE_S
    with pytest.raises(Unauthenticated):
        desk.identity.holder(issued.token)


@requirement("AUT-5")
async def test_a_revoked_sign_in_takes_with_it_what_was_handed_on() -> None:
    desk = await office()
    issued = await desk.handed(desk.issuer.token(), agent="helper")
    desk.identity.taken_back = frozenset({"default/token:t-1"})
    with pytest.raises(Unauthenticated):
        desk.identity.holder(issued.token)


@requirement("AUT-2")
async def test_somebody_whom_only_the_issuer_knows_hands_on_too() -> None:
    desk = await office(
        unlisted={"scopes": ["orders:read"], "trust": 5},
        groups={"mailers": {"scopes": ["mail:*"]}},
        claims={"groups": ["groups"]},
    )
    signed_in = desk.issuer.token(sub="carol", groups=["mailers"])
    before = desk.identity.holder(signed_in).principal
    issued = await desk.handed(signed_in, agent="helper")
    held = desk.identity.holder(issued.token).principal
    assert held.user == "carol"
    assert held.scopes == before.scopes
    assert (held.trust, held.roles) == (before.trust, frozenset())


@requirement("AUT-1", "AUT-2")
async def test_neither_kind_of_token_passes_for_the_other() -> None:
    desk = await office()
    issued = await desk.handed(desk.issuer.token(), agent="helper")
    ours = [reader for reader in desk.identity.readers if reader.reads(issued.token)]
    assert ours == [desk.tokens]
    theirs = [reader for reader in desk.identity.readers if reader.reads(desk.issuer.token())]
    assert desk.tokens not in theirs
    disguised = desk.issuer.token(header={"typ": TYPE})
    with pytest.raises(Unauthenticated):
        desk.identity.holder(disguised)
    key = OKPKey.generate_key("Ed25519", {"kid": desk.tokens.audience.rpartition(":")[2]})
    for typ in (TYPE, "at+jwt", "JWT"):
        with pytest.raises(Unauthenticated):
            desk.identity.holder(desk.issuer.token(key, {"typ": typ}))
