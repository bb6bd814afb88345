// Asks again before each change.

import { byId } from "/page/dom.js";

// Whether the operator said yes. Escape is a no, and the focus returns to where it was.
export function askAgain({ title, text, yes }) {
  const dialog = byId("ask");
  byId("ask-title").textContent = title;
  byId("ask-text").textContent = text;
  byId("ask-yes").textContent = yes;
  dialog.returnValue = "no";
  dialog.showModal();
  byId("ask-no").focus();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

// Long enough to be read, also by those who look up late.
const SAID_MS = 30_000;

let silence = 0;

// Says what came of a change, also to those who listen to the page.
export function say(text) {
  clearTimeout(silence);
  byId("said").textContent = text;
  silence = setTimeout(() => (byId("said").textContent = ""), SAID_MS);
}
