// Health of endpoints, and connections by upstream address.

import { card, h, head } from "../dom.js";
import { count, seconds } from "../format.js";
import { backendName } from "../names.js";
import { watch } from "../store.js";
import { table } from "../table.js";

function health(row, cell) {
  const level = row.left !== null ? "bad" : row.health < 0.5 ? "bad" : row.health < 0.9 ? "warn" : "good";
  const text = row.left !== null ? `out for ${seconds(row.left)}` : `${Math.round(row.health * 100)} %`;
  const known = `${level} ${text}`;
  if (cell.dataset.known === known) return;
  cell.dataset.known = known;
  const inner = h("span");
  inner.style.width = `${Math.round(row.health * 100)}%`;
  cell.replaceChildren(h("span", { class: `meter ${level}`, "aria-hidden": "true" }, inner), h("span", { class: `badge ${level}` }, text));
}

export default function endpoints(root) {
  const watched = table("Endpoints whose health is watched", [
    { title: "Endpoint", value: (row) => row.endpoint },
    { title: "Address", value: (row) => row.at ?? row.endpoint },
    { title: "Backend", value: (row) => backendName(row.backend), hint: (row) => row.backend, sort: true },
    { title: "Health", value: (row) => row.health, draw: health },
    { title: "Latency", number: true, value: (row) => row.latency, text: (row) => (row.latency ? seconds(row.latency) : "–") },
    { title: "Requests", number: true, value: (row) => row.total, text: (row) => count(row.total) },
    { title: "Under way", number: true, value: (row) => row.pending, text: (row) => count(row.pending) },
    { title: "Failures in a row", number: true, value: (row) => row.failures },
    { title: "Times ejected", number: true, value: (row) => row.ejected },
  ], { key: (row) => `${row.backend} ${row.endpoint}`, empty: "No backend has a health policy, session affinity or several endpoints." });
  const called = table("Connections to addresses", [
    { title: "Address", value: (row) => row.address },
    { title: "Open connections", number: true, sort: true, value: (row) => row.open },
    { title: "Idle", number: true, value: (row) => row.idle },
    { title: "Failed to open", number: true, value: (row) => row.failed, draw: (row, cell) => {
      cell.textContent = String(row.failed);
      cell.classList.toggle("bad-text", row.failed > 0);
    } },
  ], { key: (row) => row.address, empty: "No address has been called yet." });
  root.append(
    head("Endpoints", "What the balancer knows of them"),
    card("Watched endpoints", null, watched.element),
    card("Connections", h("span", { class: "muted small" }, "of all workers"), called.element),
  );
  return watch(({ state }) => {
    if (!state) return;
    watched.update(state.endpoints.filter((row) => row.endpoint));
    called.update(state.endpoints.filter((row) => row.address));
  });
}
