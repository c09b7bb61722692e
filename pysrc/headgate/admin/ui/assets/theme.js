"use strict";
// Runs before the first paint: sets the theme that was chosen last, by default that of the system.
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem("headgate.theme");
  } catch {
    // Without storage, the theme is that of the system.
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
