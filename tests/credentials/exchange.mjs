// A real OpenID provider with a token-exchange grant (RFC 8693): the subject token is checked with the keys a
// gateway publishes. Prints its issuer; ends when its standard input does.
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";

const root = process.argv[2];
const { Provider, errors } = await import(pathToFileURL(`${root}/oidc-provider/lib/index.js`).href);
const { createRemoteJWKSet, jwtVerify } = await import(pathToFileURL(`${root}/jose/dist/webapi/index.js`).href);
const gatewayKeys = createRemoteJWKSet(new URL(process.argv[3]));
const GRANT = "urn:ietf:params:oauth:grant-type:token-exchange";
const PARAMETERS = ["subject_token", "subject_token_type", "requested_token_type", "audience", "resource", "scope"];

const server = createServer((request, response) => provider.callback()(request, response));
await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
const issuer = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
  clients: [{
    client_id: "gateway", client_secret: "gateway-secret", grant_types: [GRANT], response_types: [], redirect_uris: [],
  }],
  scopes: ["tools"],
  cookies: { keys: ["for tests only"] },
  features: {
    devInteractions: { enabled: false },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (ctx, resource) => ({ scope: "tools", audience: resource, accessTokenFormat: "jwt" }),
    },
  },
  ttl: { ClientCredentials: 600 },
  extraTokenClaims: (ctx) => ({ on_behalf_of: ctx.state.subject.sub, act: ctx.state.subject.act }),
});

provider.registerGrantType(GRANT, async (ctx) => {
  const { subject_token, subject_token_type, resource, scope } = ctx.oidc.params;
  if (subject_token_type !== "urn:ietf:params:oauth:token-type:jwt") throw new errors.InvalidRequest("no JWT");
  try {
    const audience = `${issuer}/token`;
    ctx.state.subject = (await jwtVerify(subject_token, gatewayKeys, { audience, algorithms: ["ES256"] })).payload;
  } catch (error) {
    throw new errors.InvalidGrant(error.code);
  }
  const info = new provider.ResourceServer(resource, { scope: "tools", audience: resource, accessTokenFormat: "jwt" });
  const { ClientCredentials } = provider;
  const token = new ClientCredentials({ client: ctx.oidc.client, scope });
  token.resourceServer = info;
  ctx.body = {
    access_token: await token.save(), token_type: token.tokenType, expires_in: token.expiration,
    issued_token_type: "urn:ietf:params:oauth:token-type:access_token", scope,
  };
}, PARAMETERS);

provider.on("server_error", (ctx, error) => console.error(error));
console.log(`issuer ${issuer}`);
process.stdin.resume().on("end", () => process.exit(0));
