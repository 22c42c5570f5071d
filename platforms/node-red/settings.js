// Node-RED without accounts of its own: people sign in at an OpenID Connect provider on another host.

const dns = require("node:dns");
const OAuth2Strategy = require("passport-oauth2");

// Names under .localhost are known to browsers, but not to each system.
const { lookup } = dns;
dns.lookup = (name, ...rest) => lookup(name.endsWith(".localhost") ? "127.0.0.1" : name, ...rest);

const { PORT: port, SSO_PORT: sso } = process.env;
const provider = `http://canaille.localhost:${sso}`;

/** Signs in with a code and a proof of its possession (RFC 7636), which the provider requires. */
class ProviderStrategy extends OAuth2Strategy {
  name = "provider";

  /** Asks for permission each time. */
  authorizationParams() {
    return { prompt: "consent" };
  }

  userProfile(token, done) {
    this._oauth2.useAuthorizationHeaderforGET(true);
    this._oauth2.get(`${provider}/oauth/userinfo`, token, (error, body) => {
      if (error) done(new Error(`no user information: ${error.statusCode}`));
      else done(null, { username: JSON.parse(body).sub });
    });
  }
}

module.exports = {
  uiHost: "127.0.0.1",
  uiPort: Number(port),
  flowFile: "flows.json",
  credentialSecret: "a text for a test",
  telemetry: { enabled: false, updateNotification: false },
  editorTheme: { tours: false },
  adminAuth: {
    type: "strategy",
    strategy: {
      name: "provider",
      label: "Sign in with Canaille",
      strategy: ProviderStrategy,
      options: {
        authorizationURL: `${provider}/oauth/authorize`,
        tokenURL: `${provider}/oauth/token`,
        clientID: "application",
        clientSecret: "a secret of the application",
        callbackURL: `http://node-red.localhost:${port}/auth/strategy/callback`,
        scope: ["openid", "profile"],
        pkce: "S256",
        state: true,
        verify: (accessToken, refreshToken, profile, done) => done(null, profile),
      },
    },
    users: [{ username: "ada", permissions: ["*"] }],
  },
};
