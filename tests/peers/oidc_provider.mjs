// A real OpenID provider for tests: node oidc_provider.mjs <module> <redirect URI> <seconds an ID token lives>
// Prints its issuer. Its login and consent pages take any name.
import http from 'node:http';
import { pathToFileURL } from 'node:url';

const [module, redirectUri, lifetime] = process.argv.slice(2);
const { default: Provider } = await import(pathToFileURL(module));
const server = http.createServer();
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [{
      client_id: 'app',
      client_secret: 'a secret/with+signs',
      redirect_uris: [redirectUri],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
    }],
    claims: { openid: ['sub'], email: ['email'] },
    conformIdTokenClaims: false,
    findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id, email: `${id}@a.test` }) }),
    issueRefreshToken: () => true,
    pkce: { required: () => true },
    features: { devInteractions: { enabled: true }, rpInitiatedLogout: { enabled: true } },
    ttl: { IdToken: Number(lifetime), AccessToken: 600, Grant: 3600, Session: 3600, Interaction: 600, RefreshToken: 3600 },
  });
  server.on('request', provider.callback());
  console.log(issuer);
});
