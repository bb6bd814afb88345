// The configuration in force, and its reload.

import { askAgain, byId, element, getText, moment, post, say } from "./tools.js";

// A reload may read long lists.
const PATIENCE_MS = 65_000;

// `changed` is called after a reload.
export function config(changed) {
  const details = byId("config-details");

  async function show() {
    if (details.open) byId("config-text").textContent = await getText("config").catch((problem) => problem.message);
  }

  async function reload() {
    if (!(await askAgain({ title: "Reload the configuration?", text: "It is read and checked anew. If anything is wrong, the one in force stays.", yes: "Reload" }))) return;
    byId("config-error").replaceChildren();
    try {
      const { loaded, waiting = [] } = await post("reload", undefined, PATIENCE_MS);
      const but = waiting.length === 0 ? "" : `, but for what waits for the next start: ${waiting.join(", ")}`;
      say(`The configuration is loaded, at ${moment(loaded)} UTC${but}.`);
    } catch (problem) {
      byId("config-error").replaceChildren(element("p", `${problem.message}.`), ...mistakesOf(problem));
    }
    show();
    changed();
  }

  byId("reload").addEventListener("click", reload);
  details.addEventListener("toggle", show);
}

function mistakesOf({ mistakes = [] }) {
  const text = ({ file, line, column, message, help }) => `${file}:${line}:${column}: ${message}${help ? `; ${help}` : ""}`;
  return mistakes.length === 0 ? [] : [element("ul", ...mistakes.map((mistake) => element("li", text(mistake))))];
}
