// A real authorization server for MCP tests: node oauth_server.mjs <module> <resource>
// Registration, PKCE, JWT access tokens for the resource. Its pages take any name. Prints its issuer.
import http from 'node:http';
import { pathToFileURL } from 'node:url';

const [module, audience] = process.argv.slice(2);
const { default: Provider } = await import(pathToFileURL(module));
const server = http.createServer();
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [],
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
  server.on('request', provider.callback());
  console.log(issuer);
});
