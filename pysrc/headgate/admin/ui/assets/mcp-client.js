// A small MCP client (revision 2025-06-18, Streamable HTTP) over the relay.

import { events, orderFor, send } from "./relay.js";

const VERSION = "2025-06-18";
const MAX_PAGES = 50;

export class McpError extends Error {}

export class McpClient {
  /** `told` is called with every message that the server sends of its own accord. */
  constructor(target, credential, told = () => {}) {
    this.told = told;
    this.target = target;
    this.credential = credential;
    this.session = null;
    this.number = 0;
    this.server = null;
  }

  order(method, message) {
    const headers = { accept: "application/json, text/event-stream" };
    if (message) headers["content-type"] = "application/json";
    if (this.session) headers["mcp-session-id"] = this.session;
    if (this.server) headers["mcp-protocol-version"] = this.server.protocolVersion;
    return orderFor(this.target, this.credential, { method, headers, body: message ? JSON.stringify(message) : "" });
  }

  async request(method, params, { signal, progress } = {}) {
    this.number += 1;
    const id = this.number;
    const answer = await send(this.order("POST", { jsonrpc: "2.0", id, method, params }), signal);
    this.session = answer.header("mcp-session-id") ?? this.session;
    const kind = answer.header("content-type") ?? "";
    if (kind.startsWith("text/event-stream")) {
      for await (const data of events(answer.pieces())) {
        const message = JSON.parse(data);
        if (message.id === id && ("result" in message || "error" in message)) return this.outcome(message);
        if (message.method === "notifications/progress") progress?.(message.params);
        if (message.method) this.told(message);
      }
      throw new McpError("the stream ended without an answer");
    }
    const text = await answer.text();
    if (!kind.startsWith("application/json")) throw new McpError(`status ${answer.status}: ${text.slice(0, 300)}`);
    return this.outcome(JSON.parse(text));
  }

  outcome(message) {
    if (message.error) {
      const error = message.error;
      throw new McpError(typeof error === "object" ? `${error.message ?? "error"} (${error.code ?? "no code"})` : String(error));
    }
    return message.result;
  }

  async connect(signal) {
    const clientInfo = { name: "headgate-admin-page", version: "1" };
    this.server = await this.request("initialize", { protocolVersion: VERSION, capabilities: {}, clientInfo }, { signal });
    const told = await send(this.order("POST", { jsonrpc: "2.0", method: "notifications/initialized" }), signal);
    await told.text();
    return this.server;
  }

  /** Return all items of a list, such as `tools/list`, page by page. `key` is their name in the result. */
  async list(method, key, signal) {
    const found = [];
    let cursor;
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const result = await this.request(method, cursor ? { cursor } : {}, { signal });
      found.push(...(result[key] ?? []));
      cursor = result.nextCursor;
      if (!cursor) break;
    }
    return found;
  }

  /** Read what the server sends outside of answers, until the signal ends it. Servers may have no such stream. */
  async listen(signal) {
    const order = this.order("GET", null);
    order.headers.accept = "text/event-stream";
    const answer = await send(order, signal);
    if (answer.status !== 200) {
      await answer.text();
      return false;
    }
    for await (const data of events(answer.pieces())) this.told(JSON.parse(data));
    return true;
  }

  call(name, args, options) {
    return this.request("tools/call", { name, arguments: args, _meta: { progressToken: `page-${this.number + 1}` } }, options);
  }

  /** End the session. If the request is lost, the session times out at the gateway. */
  async close() {
    if (!this.session) return;
    const order = this.order("DELETE", null);
    this.session = null;
    try {
      await (await send(order)).text();
    } catch {
      // The session then times out.
    }
  }
}
