// What looks misconfigured, and the line to write.

import { byId, element } from "/page/dom.js";
import { moment } from "/page/format.js";

// Returns a function that shows the advice of a status.
export function advice() {
  let shown = "";
  return function show(now) {
    const text = JSON.stringify(now);
    if (text === shown) return;
    shown = text;
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
