// The official TypeScript client on its whole way: node oauth_client.mjs <folder of @modelcontextprotocol/client> <MCP URL> <redirect URI>
// Prints the URL that a browser must open, reads the URL that the browser was sent back to, calls `echo`, prints its answer.
import readline from 'node:readline';
import { pathToFileURL } from 'node:url';

const [folder, target, redirectUrl] = process.argv.slice(2);
const { Client, StreamableHTTPClientTransport, UnauthorizedError } = await import(pathToFileURL(`${folder}/dist/index.mjs`));
const kept = {};
const authProvider = {
  redirectUrl,
  clientMetadata: { client_name: 'ts', redirect_uris: [redirectUrl], token_endpoint_auth_method: 'none', scope: 'mcp' },
  state: () => 'state-of-ts',
  clientInformation: () => kept.client,
  saveClientInformation: (client) => { kept.client = client; },
  tokens: () => kept.tokens,
  saveTokens: (tokens) => { kept.tokens = tokens; },
  saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
  codeVerifier: () => kept.verifier,
  saveDiscoveryState: (state) => { kept.discovery = state; },
  discoveryState: () => kept.discovery,
  redirectToAuthorization: (url) => { console.log(url.href); },
};
const open = () => new StreamableHTTPClientTransport(new URL(target), { authProvider });
const client = () => new Client({ name: 'ts', version: '1' });

const first = open();
try {
  await client().connect(first);
  throw new Error('it went through without a token');
} catch (error) {
  if (!(error instanceof UnauthorizedError)) throw error;
}
const [line] = await new Promise((resolve) => readline.createInterface({ input: process.stdin }).once('line', (text) => resolve([text])));
await first.finishAuth(new URL(line).searchParams);
const session = client();
await session.connect(open());
const result = await session.callTool({ name: 'echo', arguments: { message: 'from ts' } });
console.log(result.content[0].text);
await session.close();
process.exit(0);
