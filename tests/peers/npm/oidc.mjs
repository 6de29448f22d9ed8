// A certified OpenID Connect provider (oidc-provider) with its own pages for people. The account is the name that a
// person types. usage: node oidc.mjs PORT REDIRECT_URI SECRET
import { generateKeyPairSync } from "node:crypto";
import Provider from "oidc-provider";

const [port, redirectUri, secret] = process.argv.slice(2);
const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{ client_id: "sallyport", client_secret: secret, redirect_uris: [redirectUri] }],
  jwks: { keys: [{ ...privateKey.export({ format: "jwk" }), use: "sig", kid: "one", alg: "RS256" }] },
  cookies: { keys: ["a key of the tests"] },
  claims: { openid: ["sub"], profile: ["preferred_username"], acr: null, amr: null, auth_time: null },
  conformIdTokenClaims: false,
  pkce: { required: () => true },
  findAccount: (_context, id) => ({
    accountId: id,
    claims: () => ({ sub: `account-${id}`, preferred_username: `${id}@example.com` }),
  }),
});
provider.listen(Number(port), "127.0.0.1", () => console.log("listening"));
