// What looks misconfigured, and the line to write.

import { byId, element } from "./dom.js";
import { foldable } from "./fold.js";
import { moment } from "./format.js";

// Returns a function that shows the advice of a status.
export function advice() {
  const fold = foldable(byId("advice"), byId("advice-list"));
  let shown = "";
  return function show(now) {
    const text = JSON.stringify(now);
    if (text === shown) return;
    shown = text;
    fold(now.length === 0);
    const none = element("p", { class: "quiet empty" }, "Nothing looks misconfigured.");
    byId("advice-list").replaceChildren(...(now.length === 0 ? [none] : now.map(entry)));
  };
}

function entry({ message, since, limit, route, help }) {
  const where = [limit && `limit ${limit}`, route && `route ${route}`, `since ${moment(since)}`].filter(Boolean).join(", ");
  return element("div", { class: "advice" },
    element("p", {}, message, " ", element("span", { class: "quiet" }, `(${where})`)),
    element("p", { class: "help" }, help));
}
