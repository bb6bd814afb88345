// Asks again before each change.

import { byId, element } from "./dom.js";

const dialog = byId("ask");
let answer = () => {};

// Not `close`: browsers tell of it a frame later, when the next question may stand there.
byId("ask-form").addEventListener("submit", (event) => {
  event.preventDefault();
  dialog.close();
  answer(event.submitter?.value === "yes");
});
dialog.addEventListener("cancel", () => answer(false));

// Whether the operator said yes. Escape is a no, and the focus returns to where it was.
export function askAgain({ title, text, list = [], yes }) {
  byId("ask-title").textContent = title;
  byId("ask-text").textContent = text;
  byId("ask-list").replaceChildren(...list.map((one) => element("li", one)));
  byId("ask-yes").textContent = yes;
  dialog.showModal();
  byId("ask-no").focus();
  return new Promise((resolve) => (answer = resolve));
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
