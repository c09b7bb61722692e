// An official TypeScript client in front of several npm servers: node federated_client.mjs <v1|v2> <node_modules> <MCP URL> <file>
// Prints what it found as one line of JSON.
import { pathToFileURL } from 'node:url';

const [version, modules, target, file] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(`${modules}/@modelcontextprotocol/${path}`));
const [{ Client }, { StreamableHTTPClientTransport }] = version === 'v1'
  ? [await load('sdk/dist/esm/client/index.js'), await load('sdk/dist/esm/client/streamableHttp.js')]
  : [await load('client/dist/index.mjs'), await load('client/dist/index.mjs')];

const client = new Client({ name: `ts-${version}`, version: '1' });
const transport = new StreamableHTTPClientTransport(new URL(target));
await client.connect(transport);
const text = async (name, args) => (await client.callTool({ name, arguments: args })).content[0].text;
const found = {};
found.instructions = client.getInstructions() ?? '';
found.tools = (await client.listTools()).tools.map((tool) => tool.name);
found.prompts = (await client.listPrompts()).prompts.map((prompt) => prompt.name);
const { resources } = await client.listResources();
found.resources = resources.map((resource) => resource.uri);
found.echo = await text('everything_echo', { message: 'from ts' });
await client.callTool({ name: 'files_write_file', arguments: { path: file, content: 'kept' } });
found.file = await text('files_read_text_file', { path: file });
await client.callTool({
  name: 'memory_create_entities',
  arguments: { entities: [{ name: 'Ada', entityType: 'person', observations: ['wrote the first program'] }] },
});
found.graph = JSON.parse(await text('memory_read_graph', {}));
found.outside = (await client.callTool({ name: 'files_read_text_file', arguments: { path: '/etc/passwd' } })).isError;
found.progress = [];
await client.callTool(
  { name: 'everything_trigger-long-running-operation', arguments: { duration: 1, steps: 3 } }, undefined,
  { onprogress: (one) => found.progress.push(one.progress) },
).catch(async (error) => {
  // The second version has no schema parameter.
  if (version === 'v1') throw error;
});
if (version === 'v2') {
  found.progress = [];
  await client.callTool(
    { name: 'everything_trigger-long-running-operation', arguments: { duration: 1, steps: 3 } },
    { onprogress: (one) => found.progress.push(one.progress) },
  );
}
found.parallel = await Promise.all([...Array(20).keys()].map((n) => text('everything_get-sum', { a: n, b: 1 })));
found.read = (await client.readResource({ uri: resources[0].uri })).contents[0].uri === resources[0].uri;
found.unknown = await client.callTool({ name: 'nobody_has', arguments: {} }).then(() => 'no error', (error) => error.message);
await transport.terminateSession();
await client.close();
console.log(JSON.stringify(found));
process.exit(0);
