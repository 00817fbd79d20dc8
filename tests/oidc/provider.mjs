// A real OpenID provider for the tests: whoever is named by `login_hint` is signed in without being asked.
//
// Beside what the provider serves there is POST /control/rotate {keep}, which signs with new keys from then on
// and publishes the old ones only if they are kept, and GET /control/keys, which tells the private keys, so
// that tests can sign what a provider never would.
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";

const { Provider } = await import(pathToFileURL(process.argv[2]).href);

const RESOURCE_SCOPES = "notes:read notes:write mail:send";
const PEOPLE = {
  alice: { groups: ["desk"], tenant: "acme", email: "alice@example.com", email_verified: true },
  bert: { groups: [], tenant: "acme" },
  zoe: { groups: ["desk"], tenant: "globex" },
};
const KINDS = {
  RS256: { name: "RSASSA-PKCS1-v1_5", modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]), hash: "SHA-256" },
  ES256: { name: "ECDSA", namedCurve: "P-256" },
};
const CLIENTS = ["notebook", "console"].map((id) => ({
  client_id: id,
  client_secret: `${id}-secret`,
  grant_types: ["authorization_code", "client_credentials"],
  response_types: ["code"],
  redirect_uris: ["http://127.0.0.1/back"],
  scope: `openid ${RESOURCE_SCOPES}`,
}));
CLIENTS.push({ // the gateway's own console: a browser's client, which keeps no secret
  client_id: "holdfast-console",
  token_endpoint_auth_method: "none",
  grant_types: ["authorization_code"],
  response_types: ["code"],
  redirect_uris: ["http://127.0.0.1:8080/sign-in/callback"],
  scope: `openid ${RESOURCE_SCOPES}`,
});

let made = 0;
async function fresh() {
  made += 1;
  return Promise.all(
    Object.entries(KINDS).map(async ([alg, how]) => {
      const pair = await crypto.subtle.generateKey(how, true, ["sign", "verify"]);
      const key = await crypto.subtle.exportKey("jwk", pair.privateKey);
      return { kty: key.kty, crv: key.crv, x: key.x, y: key.y, d: key.d, n: key.n, e: key.e, p: key.p, q: key.q,
               dp: key.dp, dq: key.dq, qi: key.qi, use: "sig", alg, kid: `${alg.toLowerCase()}-${made}` };
    }),
  );
}

function opened(issuer, keys) {
  const provider = new Provider(issuer, {
    clients: CLIENTS,
    jwks: { keys: keys.map((key) => JSON.parse(JSON.stringify(key))) },
    scopes: ["openid", ...RESOURCE_SCOPES.split(" ")],
    cookies: { keys: ["for tests only"] },
    interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
    ttl: { AccessToken: 600, ClientCredentials: 600, Session: 600, Grant: 600, Interaction: 600, IdToken: 600 },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo: (ctx, resource) => ({
          scope: RESOURCE_SCOPES,
          audience: resource,
          accessTokenFormat: "jwt",
          jwt: { sign: { alg: resource.includes("rs256") ? "RS256" : "ES256" } },
        }),
      },
    },
    findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    extraTokenClaims: (ctx, token) => PEOPLE[token.accountId],
  });
  provider.on("server_error", (ctx, error) => console.error(error));
  return provider;
}

async function signedIn(provider, request, response) {
  const { params } = await provider.interactionDetails(request, response);
  const accountId = params.login_hint;
  const grant = new provider.Grant({ accountId, clientId: params.client_id });
  grant.addOIDCScope(params.scope);
  for (const resource of [params.resource ?? []].flat()) grant.addResourceScope(resource, params.scope);
  const result = { login: { accountId }, consent: { grantId: await grant.save() } };
  await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
}

const server = createServer(async (request, response) => {
  try {
    const { pathname, searchParams } = new URL(request.url, issuer);
    if (pathname === "/control/rotate") {
      const old = searchParams.get("keep") ? keys : [];
      keys = await fresh();
      provider = opened(issuer, [...keys, ...old]);
      response.end("{}");
    } else if (pathname === "/control/keys") {
      response.end(JSON.stringify({ keys }));
    } else if (pathname.startsWith("/interaction/")) {
      await signedIn(provider, request, response);
    } else {
      provider.callback()(request, response);
    }
  } catch (error) {
    console.error(error);
    response.statusCode = 500;
    response.end("{}");
  }
});

let issuer, provider;
let keys = await fresh();
server.listen(0, "127.0.0.1", () => {
  issuer = `http://127.0.0.1:${server.address().port}`;
  provider = opened(issuer, keys);
  console.log(`issuer ${issuer}`);
});
process.stdin.resume().on("end", () => process.exit(0));  // whoever started this is gone
