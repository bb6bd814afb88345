// What looks misconfigured, and the line to write.

import { byId, element, foldable, moment, quiet, redraw } from "./tools.js";

// Returns a function that shows the advice of a status.
export function advice() {
  const fold = foldable(byId("advice"), byId("advice-list"));
  return function show(now) {
    fold(now.length === 0);
    redraw(byId("advice-list"), now, () => (now.length === 0 ? [element("p.quiet.empty", "Nothing looks misconfigured.")] : now.map(entry)));
  };
}

function entry({ message, since, limit, route, help }) {
  const where = [limit && `limit ${limit}`, route && `route ${route}`, `since ${moment(since)}`].filter(Boolean).join(", ");
  return element("div.advice",
    element("p", message, " ", quiet(`(${where})`)),
    element("p.help", help));
}
