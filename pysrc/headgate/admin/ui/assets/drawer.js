// A drawer at the side: what somebody has chosen, over the view that it was chosen in.

import { h } from "./dom.js";

/** Return a drawer. `closed` is called when the user closes it: with its button, Escape or a click beside it. */
export function drawer(title, closed) {
  const body = h("div", { class: "stack" });
  const close = h("button", { type: "button", class: "quiet", on: { click: () => element.close() } }, "Close");
  const element = h("dialog", { class: "drawer", "aria-label": title },
    h("div", { class: "card-head" }, h("h2", {}, title), close), body);
  element.addEventListener("close", closed);
  element.addEventListener("click", (event) => {
    if (event.target === element) element.close();
  });
  return {
    element,
    show(...children) {
      body.replaceChildren(...children);
      if (!element.open) element.showModal();
      element.scrollTop = 0;
    },
    close() {
      element.close();
    },
    get open() {
      return element.open;
    },
  };
}
