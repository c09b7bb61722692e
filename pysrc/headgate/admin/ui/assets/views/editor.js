// An editor for the configuration file: it checks the text during typing, shows the changes and writes the file.

import { ask } from "../asking.js";
import { diffLines, hunks } from "../diff.js";
import { codeEditor } from "../code-editor.js";
import { card, h, head, setText } from "../dom.js";
import { store, watch } from "../store.js";

const REST_MS = 400;
// The text survives a change to another view.
let draft = null;
// The JSON schema of the file: what completion offers. It is the same for as long as the page is.
let schema = null;

export default function editor(root) {
  let file = null;
  let problems = [];
  let asked = 0;
  let timer = 0;
  let waiting = null;
  let gone = false;
  // Shown before the result of a check, until the text is edited.
  let note = "";

  const badge = h("span", { class: "badge" }, "…");
  const area = codeEditor("Text of the configuration", typed, () => schema);
  const { text } = area;
  const errors = h("ul", { class: "results" });
  const status = h("p", { role: "status", class: "small muted" });
  const changes = h("pre", { class: "diff", tabindex: "0", "aria-label": "Changes" });
  const count = h("span", { class: "muted small" });
  const write = h("button", { type: "button", class: "primary", disabled: true, on: { click: save } }, "Write the file");
  const undo = h("button", { type: "button", disabled: true, on: { click: discard } }, "Discard changes");
  const again = h("button", { type: "button", class: "quiet", on: { click: load } }, "Read the file again");

  function say(words, bad = false) {
    status.className = bad ? "small bad-text wrap" : "small muted";
    setText(status, words);
  }

  function changed() {
    return file !== null && text.value !== file.text;
  }

  async function load() {
    try {
      const { status: code, found } = await ask("/api/config/text");
      if (gone) return;
      if (code !== 200) throw new Error(found);
      const kept = draft;
      file = found;
      area.set(kept ?? found.text);
      text.readOnly = found.mode === "readOnly";
      badge.className = text.readOnly ? "badge warn" : "badge good";
      setText(badge, text.readOnly ? "Read-only" : "Can be written");
      badge.title = found.file;
      note = kept !== null && kept !== found.text ? "The file was read again; your changes are kept and compared with it. " : "";
      say(note || found.file);
    } catch (error) {
      file = null;
      area.set("");
      text.readOnly = true;
      badge.className = "badge";
      setText(badge, "No file");
      say(error.message === "local config not setup" ? "The configuration does not come from a file: it was given on the command line or read from a stream." : error.message, true);
    }
    draw();
    if (changed()) check();
  }

  function discard() {
    draft = null;
    area.set(file.text);
    problems = [];
    say("Back to what the file has.");
    draw();
  }

  function typed() {
    note = "";
    draft = changed() ? text.value : null;
    clearTimeout(timer);
    timer = setTimeout(check, REST_MS);
    draw(true);
  }

  async function check() {
    const number = (asked += 1);
    if (!changed()) {
      problems = [];
      draw();
      return;
    }
    try {
      const { status: code, found } = await ask("/api/config/check", { text: text.value });
      if (number !== asked || gone) return;
      if (code !== 200) throw new Error(found);
      problems = found.errors;
      const said = problems.length ? `${problems.length} ${problems.length === 1 ? "error" : "errors"}` : found.warnings.length ? `Loads, with a warning: ${found.warnings.join("; ")}` : "Loads without an error.";
      say(note + said, problems.length > 0);
    } catch (error) {
      if (number !== asked || gone) return;
      problems = [];
      say(`It could not be checked: ${error.message}`, true);
    }
    draw();
  }

  function draw(unchecked = false) {
    const shown = changed() ? hunks(diffLines(file.text, text.value)) : [];
    const added = shown.filter((one) => one?.[0] === "+").length;
    const removed = shown.filter((one) => one?.[0] === "-").length;
    setText(count, shown.length ? `${added} added, ${removed} removed` : "");
    changes.replaceChildren(...(shown.length ? shown.map((one) => (one === null ? h("span", { class: "gap" }, "⋯\n")
      : h("span", { class: one[0] === "+" ? "added" : one[0] === "-" ? "removed" : null }, `${one[0]} ${one[1]}\n`))) : [h("span", { class: "muted" }, "The text is the file's.")]));
    errors.replaceChildren(...problems.map((one) => h("li", {}, h("button", { type: "button", class: "mono", on: { click: () => area.show(one.line) } },
      one.line ? `Line ${one.line}: ` : "", one.path ? h("strong", {}, `${one.path}: `) : "", one.problem === "unsupported" ? `not supported yet ${one.message}` : one.message))));
    errors.hidden = problems.length === 0;
    area.mark(problems.map((one) => one.line));
    const locked = file === null || text.readOnly;
    write.disabled = locked || unchecked || !changed() || problems.length > 0;
    undo.disabled = locked || !changed();
  }

  async function save() {
    write.disabled = true;
    const sent = text.value;
    try {
      const order = { text: sent, revision: file.revision };
      let { status: code, found } = await ask("/api/config/text", order);
      if (code === 428 && confirm("This text serves nothing: all routes, models and servers of the file would be gone. Write it all the same?")) {
        ({ status: code, found } = await ask("/api/config/text?confirm=empty", order));
      }
      if (code === 200) {
        waiting = store.state?.generation ?? null;
        draft = null;
        file = null;
        await load();
        say("Written. The gateway takes it up now.");
        return;
      }
      if (code === 409) {
        say("Somebody changed the file meanwhile, and nothing was written. Read the file again: your changes are kept, and compared with what it has now.", true);
        again.focus();
      } else if (code === 422) {
        problems = found.errors;
        say("It does not load, and nothing was written.", true);
      } else {
        say(`Nothing was written: ${found}`, true);
      }
    } catch (error) {
      say(`The gateway does not answer: ${error.message}`, true);
    }
    draw();
  }

  async function learn() {
    if (schema) return;
    try {
      const { status: code, found } = await ask("/api/config/schema");
      if (code === 200) schema = found;
    } catch {
      // Without the schema there is no completion; the check tells what is wrong all the same.
    }
  }

  function guard(event) {
    if (changed()) event.preventDefault();
  }

  root.append(
    head("Edit configuration", "Secrets are shown as <redacted> and stay what they are; Ctrl+Space completes"),
    card("Text", h("div", { class: "row middle" }, badge, again), area.element, status, errors),
    card("Changes", count, changes, h("div", { class: "row" }, write, undo)),
  );
  window.addEventListener("beforeunload", guard);
  load();
  learn();
  const end = watch(({ state }) => {
    if (waiting !== null && state && state.generation !== waiting) {
      waiting = null;
      if (!changed()) say(`Generation ${state.generation} runs.`);
    }
  });
  return () => {
    gone = true;
    clearTimeout(timer);
    window.removeEventListener("beforeunload", guard);
    end();
  };
}
