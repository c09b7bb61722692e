// A real authorization server for MCP tests: node oauth_server.mjs <module> <resource> [<kind> [<redirect URI>]]
// Registration, PKCE, JWT access tokens for the resource. Its pages take any name. Prints its issuer. It names itself in its
// answers (RFC 9207). With a kind its documents and endpoints are where that kind of provider has them; with a redirect URI
// there is a client `ours` with it.
import http from 'node:http';
import { pathToFileURL } from 'node:url';

// Path of the issuer, and where the provider has what.
const KINDS = {
  none: { path: '', routes: {} },
  auth0: { path: '', routes: { registration: '/oidc/register', jwks: '/.well-known/jwks.json' } },
  okta: { path: '/oauth2/default', routes: { jwks: '/v1/keys', token: '/v1/token' }, outside: ['/oauth2/v1/clients', '/reg'] },
  keycloak: {
    path: '/realms/r',
    routes: { registration: '/clients-registrations/openid-connect', jwks: '/protocol/openid-connect/certs' },
  },
  descope: {
    path: '/v1/apps/agentic/P1/S2', routes: { jwks: '/keys' },
    outside: ['/v1/mgmt/mcp/client/P1/S2/register', '/reg', '/P1/.well-known/jwks.json', '/keys'],
  },
  authentik: { path: '/application/o/x', routes: { jwks: '/jwks/' } },
  entra: {
    path: '/tenant/v2.0', routes: { authorization: '/authorize', token: '/token' },
    outside: [
      '/tenant/discovery/v2.0/keys', '/jwks', '/tenant/oauth2/v2.0/authorize', '/authorize', '/tenant/oauth2/v2.0/token', '/token',
    ],
  },
};

const [module, audience, kind = 'none', redirectUri] = process.argv.slice(2);
const { path, routes, outside = [] } = KINDS[kind];
const { default: Provider } = await import(pathToFileURL(module));
const server = http.createServer();
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}${path}`;
  const ours = {
    client_id: 'ours', redirect_uris: [redirectUri], token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code', 'refresh_token'],
  };
  const provider = new Provider(issuer, {
    clients: redirectUri ? [ours] : [],
    routes,
    findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    pkce: { required: () => true },
    scopes: ['openid', 'offline_access', 'mcp'],
    features: {
      devInteractions: { enabled: true },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => audience,
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          scope: 'mcp', audience, accessTokenFormat: 'jwt', accessTokenTTL: 600, jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
  });
  const handle = provider.callback();
  server.on('request', (request, response) => {
    const [asked, query] = request.url.split('?');
    const at = outside.indexOf(asked);
    let inner = at >= 0 && at % 2 === 0 ? outside[at + 1] : asked.startsWith(`${path}/`) ? asked.slice(path.length) : asked;
    if (query !== undefined) inner += `?${query}`;
    if (path) request.originalUrl = path + inner;
    request.url = inner;
    handle(request, response);
  });
  console.log(issuer);
});
