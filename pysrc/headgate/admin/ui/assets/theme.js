"use strict";
// Before anything is painted: the theme that was chosen here last; without one the system's.
(() => {
  let theme = null;
  try {
    theme = localStorage.getItem("headgate.theme");
  } catch {
    // Storage is off: the system's theme it is.
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
})();
