// Evaluate an expression (CEL) with given values.

import { card, field, h, head } from "../dom.js";

const START = {
  expression: 'request.path.startsWith("/api") && jwt.sub == "alice"',
  data: { request: { method: "GET", path: "/api/users", headers: { "user-agent": "curl/8" } }, jwt: { sub: "alice", groups: ["admins"] }, source: { address: "192.0.2.7" } },
};

export default function expressions(root) {
  const expression = h("textarea", { class: "code", rows: 3, spellcheck: "false", value: START.expression });
  const data = h("textarea", { class: "code", rows: 18, spellcheck: "false", value: JSON.stringify(START.data, null, 2) });
  const result = h("pre", { tabindex: "0", role: "status", "aria-label": "Result" }, "Not evaluated yet.");

  async function evaluate(event) {
    event.preventDefault();
    result.className = "";
    try {
      const values = JSON.parse(data.value || "{}");
      const answer = await fetch("/api/cel", {
        method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ expression: expression.value, data: values }),
      });
      const found = await answer.json();
      result.className = found.error ? "bad-text" : "";
      result.textContent = found.error ?? JSON.stringify(found.result, null, 2);
    } catch (error) {
      result.className = "bad-text";
      result.textContent = error instanceof SyntaxError ? `The values are no JSON: ${error.message}` : error.message;
    }
  }

  root.append(
    head("Expressions", "Try a CEL expression before it goes into the configuration"),
    h("div", { class: "split" },
      card("Expression", null, h("form", { on: { submit: evaluate } },
        field("CEL expression", expression),
        field("Values", data, "JSON: request, response, jwt, apiKey, llm, mcp and so on. Bytes are base64, times RFC 3339, names of headers are in lower case."),
        h("div", {}, h("button", { class: "primary" }, "Evaluate")))),
      card("Result", null, result)),
  );
}
