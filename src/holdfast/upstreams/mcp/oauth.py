"""Which token goes with a request to an upstream, and what is done when it is not taken?

The flows are the SDK's (PKCE, resource indicators, registration, issuer checks). Here is what it leaves open:
whose token it is, when it is renewed, and that a running call never waits for a person: it is refused with
the command that signs them in (AUT-8).
"""

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import TypeVar

from mcp.client.auth import OAuthClientProvider

from holdfast.model.egress.rules import Rules
from holdfast.model.errors import Code, HoldfastError, NoEffect, StoreError
from holdfast.upstreams.http.guard import Guard
from holdfast.upstreams.http.outgoing import Outgoing
from holdfast.upstreams.mcp.oauth_client import Client, OpenUrl, provider
from holdfast.upstreams.mcp.oauth_flow import Flow, Stuck
from holdfast.upstreams.mcp.oauth_grant import GATEWAY, Challenge, Grant, Owner, TokenStore
from holdfast.upstreams.mcp.oauth_kept import Kept, Turns
from holdfast.upstreams.secrets.opening import Standing

log = logging.getLogger(__name__)

T = TypeVar("T")

_presented: ContextVar[tuple[object, Owner, str] | None] = ContextVar("presented", default=None)
"""The token that went with this task's request: by the time it is refused there may be another."""


class OAuthAuthorizer:
    """Signs requests to one upstream, for everybody."""

    def __init__(
        self,
        upstream: str,
        server_url: str,
        store: TokenStore,
        *,
        client: Client | None = None,
        shared: bool = False,
        open_url: OpenUrl | None = None,
        outgoing: Outgoing | None = None,
        secret: Standing | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`open_url` asks a person; None: nobody is there to be asked. Without `outgoing` the authorization
        server is at the upstream's own origin, at the configured issuer's, or public."""
        self._upstream = upstream
        self._server_url = server_url
        self._client = client or Client()
        self._secret = secret
        self._machine = self._client.type == "client_credentials"
        own = Rules(written=(server_url, self._client.issuer or ""))
        self._outgoing = outgoing or Outgoing(Guard(own, whose=f"upstreams.{upstream}"))
        self._own = shared or self._machine
        self._open_url = open_url
        self._now = now
        self._kept = Kept(upstream, store, now)
        self._turns = Turns()
        self._doubted: dict[Owner, str] = {}
        """Tokens that were made because another was refused; refused as well, they are not renewed again."""

    async def headers(self, principal: str) -> Mapping[str, str]:
        return await self._governed(self._headers(principal))

    async def challenged(self, principal: str, status: int, www_authenticate: str) -> bool:
        return await self._governed(self._challenged(principal, Challenge(status, www_authenticate)))

    async def sign_in(self, principal: str, www_authenticate: str = "") -> None:
        """Ask the person now, whatever there was before; `HoldfastError` says why it did not work."""
        owner = self._owner(principal)
        grant = await self._kept.grant(owner)
        challenge = Challenge(403, grant.wanted) if grant.wanted else Challenge(401, www_authenticate)
        try:
            await self._obtain(owner, grant.unlocated(), challenge)
        except Stuck as stuck:
            raise HoldfastError(f"signing in to {self._upstream!r} failed: {stuck}") from None

    async def sign_out(self, principal: str) -> bool:
        """Forget the tokens, in every process; False where there were none."""
        return await self._kept.drop(self._owner(principal))

    async def redirect_uris(self, principal: str) -> tuple[str, ...]:
        """Where the authorization server was told that sign-ins come back to."""
        client = (await self._kept.grant(self._owner(principal))).client
        return () if client is None else tuple(str(uri) for uri in client.redirect_uris or ())

    async def close(self) -> None:
        await self._turns.close()

    # --- the two questions ----------------------------------------------------------------

    async def _headers(self, principal: str) -> Mapping[str, str]:
        owner = self._owner(principal)
        grant = await self._kept.grant(owner)
        if grant.tokens is not None and not grant.fresh(self._now()):
            grant = await self._turns.alone(owner, work=lambda: self._renewed(owner))
        usable = grant.alive(self._now())
        if not usable and self._open_url is None and (grant.spent or grant.tokens is not None):
            raise self._refusal(owner, "the sign-in there has expired")
        _presented.set((self, owner, grant.token if usable else ""))
        return {"Authorization": f"Bearer {grant.token}"} if usable else {}

    async def _challenged(self, principal: str, challenge: Challenge) -> bool:
        if not challenge.can_be_met:
            return False
        owner, presented = self._owner(principal), _presented.get()
        if presented is not None and presented[:2] == (self, owner):
            refused = presented[2]
        else:
            refused = (await self._kept.grant(owner)).token
        grant = await self._turns.alone(
            owner, challenge, refused, work=lambda: self._answered(owner, challenge, refused)
        )
        return grant.token not in ("", refused)

    # --- what is done about it, one at a time for each owner -------------------------------

    async def _renewed(self, owner: Owner) -> Grant:
        """The grant with a token that has not ended, where that needs nobody."""
        grant = await self._kept.grant(owner)
        if grant.tokens is None or grant.fresh(self._now()):
            return grant
        if self._machine:
            return await self._obtain(owner, grant, Challenge(401, grant.challenge))
        return await self._kept.in_turn(owner, grant, self._refresh) if grant.renewable else grant

    async def _answered(self, owner: Owner, challenge: Challenge, refused: str) -> Grant:
        """The grant with a token that is not the refused one, unless nothing can be done."""
        grant = await self._kept.grant(owner)
        if grant.token != refused and grant.alive(self._now()):
            return grant
        if challenge.status == 403 and challenge.scopes and challenge.scopes <= grant.scopes:
            return grant  # it has what is asked for: asking again would go on for ever
        if challenge.status == 401 and grant.renewable and self._doubted.get(owner) != grant.token:
            grant = await self._kept.in_turn(owner, grant, lambda o, g: self._refresh_for(o, g, challenge))
            if grant.token not in ("", refused):
                return grant
        if self._machine or self._open_url is not None:
            return await self._obtain(owner, grant, challenge)
        if challenge.status == 401:
            raise self._refusal(owner, "it wants somebody to sign in")
        await self._kept.keep(owner, grant.model_copy(update={"wanted": challenge.text}))
        more = f"the scope {challenge.field('scope')!r}" if challenge.scopes else "more than was granted"
        raise self._refusal(owner, f"it wants {more} for this")

    async def _obtain(self, owner: Owner, grant: Grant, challenge: Challenge) -> Grant:
        """The whole flow, with a person where it needs one."""
        asking = challenge.asking(self._client.scopes)
        known = await self._known()
        client = provider(self._server_url, known, self._usable(grant, asking), self._open_url)
        await Flow(client, self._outgoing).answer(asking)
        return await self._kept.keep(owner, self._made(owner, client, challenge.text), new=True)

    async def _refresh(self, owner: Owner, grant: Grant) -> Grant:
        """Before the end: nobody has refused the token yet."""
        client = provider(self._server_url, await self._known(), grant, None)
        return await self._renewal(owner, grant, client, Flow(client, self._outgoing).refresh())

    async def _refresh_for(self, owner: Owner, grant: Grant, challenge: Challenge) -> Grant:
        """After a 401: first the SDK looks whether the authorization server is still the same one."""
        client = provider(self._server_url, await self._known(), grant, None, renew=True)
        work = Flow(client, self._outgoing).answer(challenge.asking(self._client.scopes))
        renewed = await self._renewal(owner, grant, client, work)
        self._doubted[owner] = renewed.token
        return renewed

    async def _renewal(
        self, owner: Owner, grant: Grant, client: OAuthClientProvider, work: Awaitable[None]
    ) -> Grant:
        try:
            await work
        except Stuck as stuck:
            log.warning("upstream %s: the token was not renewed: %s", self._upstream, stuck)
            if not (stuck.passing or stuck.barred):
                return await self._kept.keep(owner, grant.ended())
            await self._kept.keep(owner, grant)  # and end the lease
            if grant.alive(self._now()):
                return grant
            raise
        return await self._kept.keep(owner, self._made(owner, client, grant.challenge).after(grant))

    async def _known(self) -> Client:
        """The gateway as a client, with its secret as it is now."""
        if self._secret is None:
            return self._client
        return replace(self._client, client_secret=(await self._secret.values())["client_secret"])

    def _made(self, owner: Owner, client: OAuthClientProvider, challenge: str) -> Grant:
        context = client.context
        return Grant(
            holder=(*owner, self._upstream),
            at=self._now(),
            tokens=context.current_tokens,
            client=None if self._client.client_id else context.client_info,
            issuer=None if context.oauth_metadata is None else str(context.oauth_metadata.issuer),
            server=context.oauth_metadata,
            server_url=context.auth_server_url,
            resource=context.protected_resource_metadata,
            challenge=challenge,
        )

    def _usable(self, grant: Grant, challenge: Challenge) -> Grant:
        """Without a registration that says another port, or fewer scopes than are to be asked for."""
        client, here = grant.client, self._client.redirect_uri
        if client is None:
            return grant
        fewer = client.scope is not None and not challenge.scopes <= set(client.scope.split())
        if here in {str(uri) for uri in client.redirect_uris or ()} and not fewer:
            return grant
        return grant.model_copy(update={"client": None})

    # --- telling ----------------------------------------------------------------------------

    def _owner(self, principal: str) -> Owner:
        return GATEWAY if self._own else Owner.of(principal)

    async def _governed(self, work: Awaitable[T]) -> T:
        """Nothing was sent, or it was not let in: whatever goes wrong, nothing has happened upstream."""
        name = self._upstream
        try:
            return await work
        except NoEffect:
            raise
        except Stuck as stuck:
            log.warning("upstream %s: no token: %s", name, stuck)
            if stuck.passing:
                text = f"upstream {name!r} cannot be signed in to now; try again later"
                raise NoEffect(text, Code.DEPENDENCY_UNAVAILABLE) from None
            if stuck.barred:
                text = f"an egress rule does not let the gateway sign in to {name!r}; the log says why"
                raise NoEffect(text, Code.POLICY_VIOLATION) from None
            text = f"upstream {name!r} gave no token; the log says why"
            raise NoEffect(text, Code.PERMISSION_DENIED) from None
        except StoreError as error:
            log.warning("upstream %s: its tokens cannot be read: %s", name, error)
            text = f"the tokens for upstream {name!r} cannot be read; the log says why"
            raise NoEffect(text, Code.DEPENDENCY_UNAVAILABLE) from None
        except Exception as error:  # its text may quote a token
            log.error("upstream %s: %s while a token was looked for", name, type(error).__name__)
            text = f"upstream {name!r} cannot be signed in to; the log says why"
            raise NoEffect(text, Code.INTERNAL) from None

    def _refusal(self, owner: Owner, why: str) -> NoEffect:
        who = "" if self._own else " --gateway" if owner == GATEWAY else f" --as {owner.user}"
        command = f"holdfast login {self._upstream}{who}"
        text = f"upstream {self._upstream!r} cannot be used: {why}; run '{command}'"
        return NoEffect(text, Code.PERMISSION_DENIED)
