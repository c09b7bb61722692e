// Prompts and completions of models as messages: of chat completions, messages, responses and Gemini, streams included.

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function isMap(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

function listOf(value) {
  return Array.isArray(value) ? value.filter(isMap) : [];
}

/** Return the words of a content: a text, or parts of which some have texts. Other parts are named by their type. */
function words(content) {
  if (typeof content === "string") return content;
  return listOf(content).map((part) => {
    if (typeof part.text === "string") return part.text;
    if (part.type === "tool_use" || part.functionCall) return "";
    if (part.type === "tool_result") return words(part.content);
    if (part.functionResponse) return JSON.stringify(part.functionResponse.response);
    return `[${part.type ?? Object.keys(part)[0] ?? "part"}]`;
  }).filter(Boolean).join("\n");
}

function calls(message) {
  const found = listOf(message.tool_calls).map((one) => ({ name: one.function?.name ?? "", arguments: one.function?.arguments ?? "" }));
  for (const part of [...listOf(message.content), ...listOf(message.parts)]) {
    if (part.type === "tool_use") found.push({ name: part.name ?? "", arguments: JSON.stringify(part.input ?? {}) });
    if (isMap(part.functionCall)) found.push({ name: part.functionCall.name ?? "", arguments: JSON.stringify(part.functionCall.args ?? {}) });
  }
  return found;
}

function message(one, otherwise) {
  return { role: String(one.role ?? otherwise), text: words(one.content ?? one.parts), calls: calls(one) };
}

/** Return the messages of a request as {role, text, calls}; null if the text is none that is known. */
export function promptOf(text) {
  const body = parsed(text ?? "");
  if (!isMap(body)) return null;
  const found = [];
  const system = body.system ?? body.instructions ?? body.systemInstruction?.parts;
  if (system) found.push({ role: "system", text: words(system), calls: [] });
  const asked = body.messages ?? body.contents ?? body.input;
  if (typeof asked === "string") found.push({ role: "user", text: asked, calls: [] });
  for (const one of listOf(asked)) {
    if (one.type === "function_call") found.push({ role: "assistant", text: "", calls: [{ name: one.name ?? "", arguments: one.arguments ?? "" }] });
    else if (one.type === "function_call_output") found.push({ role: "tool", text: words(one.output), calls: [] });
    else found.push(message(one, "user"));
  }
  return found.length ? found : null;
}

function whole(body) {
  const found = [
    ...listOf(body.choices).map((one) => message(one.message ?? { content: one.text }, "assistant")),
    ...listOf(body.candidates).map((one) => message({ ...one.content, role: "assistant" }, "assistant")),
  ];
  if (Array.isArray(body.content)) found.push(message(body, "assistant"));
  for (const one of listOf(body.output)) {
    if (one.type === "function_call") found.push({ role: "assistant", text: "", calls: [{ name: one.name ?? "", arguments: one.arguments ?? "" }] });
    else if (one.type === "message") found.push(message(one, "assistant"));
  }
  return found;
}

/** Return the messages of a stream of server-sent events, joined by their choice. */
function joined(text) {
  const answers = new Map();
  const answer = (at) => {
    if (!answers.has(at)) answers.set(at, { role: "assistant", text: "", calls: [], byIndex: new Map() });
    return answers.get(at);
  };
  const call = (to, at, name, more) => {
    if (!to.byIndex.has(at)) {
      to.byIndex.set(at, { name: "", arguments: "" });
      to.calls.push(to.byIndex.get(at));
    }
    const one = to.byIndex.get(at);
    one.name += name ?? "";
    one.arguments += more ?? "";
  };
  for (const line of text.split("\n")) {
    const event = line.startsWith("data:") ? parsed(line.slice(5)) : null;
    if (!isMap(event)) continue;
    for (const choice of listOf(event.choices)) {
      const to = answer(choice.index ?? 0);
      to.text += choice.delta?.content ?? choice.text ?? "";
      for (const one of listOf(choice.delta?.tool_calls)) call(to, one.index ?? 0, one.function?.name, one.function?.arguments);
    }
    for (const one of listOf(event.candidates)) answer(one.index ?? 0).text += listOf(one.content?.parts).map((part) => part.text ?? "").join("");
    if (event.type === "response.output_text.delta") answer(0).text += event.delta ?? "";
    if (event.type === "content_block_start" && event.content_block?.type === "tool_use") call(answer(0), event.index, event.content_block.name, "");
    if (event.type === "content_block_delta") {
      answer(0).text += event.delta?.text ?? "";
      if (event.delta?.type === "input_json_delta") call(answer(0), event.index, "", event.delta.partial_json);
    }
  }
  return [...answers.values()].map(({ byIndex, ...one }) => one);
}

/** Return the messages of an answer, whole or streamed; null if the text is none that is known. */
export function completionOf(text) {
  const body = parsed(text ?? "");
  const found = isMap(body) ? whole(body) : joined(text ?? "");
  return found.length ? found : null;
}
