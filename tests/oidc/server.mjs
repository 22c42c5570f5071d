// An OpenID Connect provider for tests, by certified software: the name entered at the sign-in selects the user.
//
//   node server.mjs PORT CALLBACK

import { Provider } from "oidc-provider";

const [port, callback] = process.argv.slice(2);
const people = {
  ada: { email: "ada@lender.example", email_verified: true },
  // Another user with the same address, as after it was reassigned.
  successor: { email: "ada@lender.example", email_verified: true },
  // Claims an address that is not verified.
  mallory: { email: "eve@lender.example", email_verified: false },
  nobody: { email: "nobody@lender.example", email_verified: true },
  eve: { email: "Eve@Lender.example", email_verified: true },
};

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    {
      client_id: "avouch",
      client_secret: "a-secret-of-two",
      redirect_uris: [callback],
      response_types: ["code"],
      grant_types: ["authorization_code"],
    },
  ],
  claims: { openid: ["sub"], email: ["email", "email_verified"] },
  cookies: { keys: ["kept for a test"] },
  pkce: { required: () => true },
  findAccount: async (_, id) => ({
    accountId: id,
    claims: async () => ({ sub: id, ...people[id] }),
  }),
});
provider.listen(Number(port), "127.0.0.1");
