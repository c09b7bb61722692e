// An official TypeScript client of revision 2026-07-28 that is asked things in the middle of calls.
// Arguments: <node_modules> <MCP URL> <tool>... Prints the texts of the results as one line of JSON.
import { pathToFileURL } from 'node:url';

const [modules, target, ...tools] = process.argv.slice(2);
const { Client, StreamableHTTPClientTransport } = await import(
  pathToFileURL(`${modules}/@modelcontextprotocol/client/dist/index.mjs`)
);
const client = new Client(
  { name: 'asked', version: '1' },
  { capabilities: { sampling: {}, elicitation: { form: {} }, roots: {} } },
);
client.setRequestHandler('sampling/createMessage', async () => (
  { role: 'assistant', model: 'm', content: { type: 'text', text: 'Paris' } }
));
client.setRequestHandler('elicitation/create', async () => ({ action: 'accept', content: { name: 'Ada', check: true } }));
client.setRequestHandler('roots/list', async () => ({ roots: [{ uri: 'file:///x' }] }));
await client.connect(new StreamableHTTPClientTransport(new URL(target)), {
  prior: {
    kind: 'modern',
    discover: {
      resultType: 'complete', supportedVersions: ['2026-07-28'], capabilities: { tools: {} }, ttlMs: 0, cacheScope: 'private',
    },
  },
});
const found = [];
for (const name of tools) {
  const result = await client.callTool({ name, arguments: name.includes('sampling') ? { prompt: 'hi' } : {} });
  found.push(result.content.map((one) => one.text).join('\n'));
}
await client.close();
console.log(JSON.stringify(found));
process.exit(0);
