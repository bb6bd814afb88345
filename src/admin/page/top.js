// Who is behind it: the busiest clients, or the busiest keys of a limit.

import { get, withQuery } from "/page/api.js";
import { byId, element } from "/page/dom.js";
import { keyText, moment, number } from "/page/format.js";
import { table } from "/page/table.js";

const MOST = 20;

// `prepareBan` leads to the form of bans, `prepareKey` to where a key stands.
export function top({ changed, prepareBan, prepareKey }) {
  let limits = null;
  const showRows = table(byId("top-list"), {
    label: "The busiest", keyOf: (row) => `${byId("top-limit").value} ${JSON.stringify(row.key)}`,
    empty: "None in this time.",
    columns: [
      { title: "Who", class: "name", text: (row) => keyText(row.key) },
      { title: "Denied", numeric: true, text: (row) => number(row.denied) },
      { title: "Requests", numeric: true, text: (row) => number(row.requests) },
      { title: "First", class: "time", text: (row) => moment(row.first) },
      { title: "Last", class: "time", text: (row) => moment(row.last) },
      { title: "Do", text: (row) => keyText(row.key), node: buttons },
    ],
  });

  function buttons(row) {
    const limit = byId("top-limit").value;
    const who = keyText(row.key);
    const ban = element("button", { type: "button", "aria-label": `Ban ${who}`, click: () => prepareBan(banOf(limit, row.key)) }, "Ban…");
    if (limit === "") return ban;
    const look = element("button", { type: "button", "aria-label": `See where ${who} stands`, click: () => prepareKey({ limit, values: row.key }) }, "See");
    return element("span", { class: "bar" }, look, ban);
  }

  for (const id of ["top-limit", "top-by", "top-minutes"]) byId(id).addEventListener("change", changed);

  return {
    async load() {
      const limit = byId("top-limit").value;
      const asked = { by: byId("top-by").value, minutes: byId("top-minutes").value, n: MOST };
      if (limit !== "") asked.limit = limit;
      showRows(await get(withQuery("/api/v1/top", asked)));
    },
    setLimits(now) {
      const names = now.map((limit) => limit.name);
      if (JSON.stringify(names) === JSON.stringify(limits)) return;
      limits = names;
      const select = byId("top-limit");
      const chosen = select.value;
      select.replaceChildren(element("option", { value: "" }, "clients"), ...names.map((name) => element("option", { value: name }, `keys of ${name}`)));
      select.value = names.includes(chosen) ? chosen : "";
    },
  };
}

// A client is banned by its address everywhere, a key of a limit where the limit applies.
const banOf = (limit, key) => (limit === "" ? { values: { address: Object.values(key)[0] } } : { limit, values: key });
