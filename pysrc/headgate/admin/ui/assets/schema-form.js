// A form for the JSON schema of an object: simple fields have inputs, all others are JSON text.

import { field, h } from "./dom.js";

const NUMBERS = new Set(["number", "integer"]);

function control(schema) {
  const kind = Array.isArray(schema.type) ? schema.type.find((one) => one !== "null") : schema.type;
  if (Array.isArray(schema.enum)) {
    const values = schema.enum;
    const input = h("select", {}, h("option", { value: "" }, "–"), values.map((one, at) => h("option", { value: String(at) }, String(one))));
    return { input, read: () => (input.value === "" ? undefined : values[Number(input.value)]) };
  }
  if (kind === "boolean") {
    const input = h("select", {}, ["", "true", "false"].map((one) => h("option", { value: one }, one || "–")));
    return { input, read: () => (input.value === "" ? undefined : input.value === "true") };
  }
  if (NUMBERS.has(kind)) {
    const input = h("input", { type: "number", step: kind === "integer" ? 1 : "any" });
    return { input, read: () => (input.value === "" ? undefined : Number(input.value)) };
  }
  if (kind === "string") {
    const input = h("textarea", { rows: 1, spellcheck: "false" });
    return { input, read: () => (input.value === "" ? undefined : input.value) };
  }
  const input = h("textarea", { class: "code", rows: 3, spellcheck: "false", placeholder: kind === "array" ? "[]" : "JSON" });
  return { input, read: () => (input.value.trim() === "" ? undefined : JSON.parse(input.value)) };
}

/** Return the fields and a function that returns the object. The function throws an Error that names an invalid field. */
export function schemaForm(schema) {
  const required = new Set(Array.isArray(schema?.required) ? schema.required : []);
  const properties = schema && typeof schema.properties === "object" && schema.properties ? schema.properties : {};
  const parts = Object.entries(properties).map(([name, one]) => ({ name, ...control(one && typeof one === "object" ? one : {}) , schema: one }));
  const elements = parts.map((part) => {
    if (required.has(part.name)) part.input.setAttribute("aria-required", "true");
    return field(`${part.name}${required.has(part.name) ? " *" : ""}`, part.input, typeof part.schema?.description === "string" ? part.schema.description : "");
  });
  return {
    elements,
    read() {
      // Without a prototype, `__proto__` is an ordinary key.
      const found = Object.create(null);
      for (const part of parts) {
        let value;
        try {
          value = part.read();
        } catch (error) {
          throw new Error(`${part.name}: ${error.message}`);
        }
        if (value !== undefined) found[part.name] = value;
        else if (required.has(part.name) && part.schema?.type === "string") found[part.name] = "";
      }
      return found;
    },
  };
}
