// Filters and selection in the address, so that a link shows what is seen.

/** Return what the address says of the fields. */
export function said(names) {
  const found = new URLSearchParams(window.location.search);
  return Object.fromEntries(names.filter((name) => found.has(name)).map((name) => [name, found.get(name)]));
}

/** Put values into the address; those that are empty are left out. The history of the browser gets no entry. */
export function say(values) {
  const query = new URLSearchParams(Object.entries(values).filter(([, value]) => value)).toString();
  history.replaceState(history.state, "", `${window.location.pathname}${query ? `?${query}` : ""}`);
}
