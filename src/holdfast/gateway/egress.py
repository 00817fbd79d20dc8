"""Builds what signs requests to an upstream, from its section of the configuration."""

from urllib.parse import unquote

from holdfast.config.upstream import McpAuth, McpServer
from holdfast.gateway.outgoing import Egress
from holdfast.gateway.secrets import Proofs, standing
from holdfast.identity.subject import Subjects
from holdfast.upstreams.mcp.auth import Authorizer
from holdfast.upstreams.mcp.exchanged import SECRET, Exchanger, Wanted
from holdfast.upstreams.mcp.oauth import OAuthAuthorizer
from holdfast.upstreams.mcp.oauth_client import Client, OpenUrl
from holdfast.upstreams.mcp.oauth_grant import TokenStore
from holdfast.upstreams.secrets.opening import Standing
from holdfast.upstreams.secrets.wallet import Wallet


def signing(
    name: str, server: McpServer, tokens: TokenStore, egress: Egress, proofs: Proofs
) -> Authorizer | None:
    """None where the upstream wants no token."""
    if server.auth is not None and server.auth.type == "token_exchange":
        return exchanger(name, server, server.auth, egress, proofs)
    return authorizer(name, server, tokens, egress, proofs.wallet)


def authorizer(
    name: str,
    server: McpServer,
    tokens: TokenStore,
    egress: Egress,
    wallet: Wallet | None = None,
    *,
    redirect_uri: str | None = None,
    open_url: OpenUrl | None = None,
) -> OAuthAuthorizer | None:
    """None where the upstream wants no sign-in. Without `open_url` nobody is there to be asked."""
    auth = server.auth
    if auth is None or server.url is None or auth.type == "token_exchange":
        return None
    plain, secret = _client_secret(auth, wallet)
    client = Client(
        type=auth.type,
        client_id=auth.client_id,
        client_secret=plain,
        client_metadata_url=auth.client_metadata_url,
        issuer=auth.issuer,
        scopes=auth.scopes,
        redirect_uri=redirect_uri or Client().redirect_uri,
    )
    return OAuthAuthorizer(
        name,
        server.url,
        tokens,
        client=client,
        shared=auth.shared,
        open_url=open_url,
        outgoing=egress.outgoing_of(name),
        secret=secret,
    )


def exchanger(
    name: str, server: McpServer, auth: McpAuth, egress: Egress, proofs: Proofs
) -> Exchanger | None:
    """None where nothing can be said of callers: such an upstream is only looked at."""
    if proofs.subjects is None or auth.token_url is None:
        return None
    plain, secret = _client_secret(auth, proofs.wallet)
    neither = auth.audience is None and auth.resource is None
    wanted = Wanted(
        token_url=auth.token_url,
        client_id=auth.client_id,
        client_secret=plain,
        standing=secret,
        audience=auth.audience,
        resource=server.url if neither else auth.resource,
        scopes=auth.scopes,
    )
    subjects, where = proofs.subjects, auth.token_url
    outgoing = egress.outgoing_of(name)
    return Exchanger(name, wanted, lambda who: _said(subjects, who, where), outgoing, proofs.now)


def _said(subjects: Subjects, principal: str, audience: str) -> str:
    """Of `tenant/user/agent`, as `auth.whose` writes it; of the gateway itself where it is empty."""
    match [unquote(part) for part in principal.split("/")]:
        case [tenant, user, agent]:
            return subjects.issue(tenant, user, agent, audience)
        case _:
            return subjects.issue("*", "", "", audience)


def _client_secret(auth: McpAuth, wallet: Wallet | None) -> tuple[str | None, Standing | None]:
    if auth.client_secret is None:
        return None, None
    plain, secret = standing({SECRET: auth.client_secret}, wallet)
    return plain.get(SECRET), secret
