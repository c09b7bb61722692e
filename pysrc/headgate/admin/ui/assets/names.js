// What somebody wrote in the configuration, from the names that the gateway has for it inside.

/** Return the name of a route: that of the file without the namespace that it has by default. */
export function routeName(key) {
  if (key === "unknown" || !key) return "none";
  if (key.startsWith("internal/llm")) return "llm (section)";
  if (key === "internal/default") return "mcp (section)";
  const unnamed = /^default\/route(\d+)$/.exec(key);
  if (unnamed) return `route ${Number(unnamed[1]) + 1} (without a name)`;
  return key.replace(/^default\//, "");
}

/** Return the name of a listener: that of its gateway, and its own where it has one. */
export function listenerName(key) {
  return key.replace(/^default\//, "").replace(/\.default$/, "").replace(/\.([^.]+)$/, "/$1");
}

/** Return the name of a backend. */
export function backendName(key) {
  if (key === "unknown" || !key) return "none: answered by the gateway";
  const model = /^llm:model:(.*?)(?::(\d+))?$/.exec(key);
  if (model) return `${model[1]}${Number(model[2]) ? ` (number ${Number(model[2]) + 1})` : ""}`;
  const inline = /^route\/(.*)\/(\d+)$/.exec(key);
  if (inline) return `${routeName(inline[1])}${Number(inline[2]) ? `, backend ${Number(inline[2]) + 1}` : ""}`;
  return key.replace(/^service\//, "").replace(/^\//, "").replace(/^default\//, "");
}
