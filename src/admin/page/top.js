// Who is behind it: the busiest clients, or the busiest keys of a limit.

import { getOfAll, withQuery } from "/page/api.js";
import { byId, element, setNote } from "/page/dom.js";
import { isHidden, keyText, missingText, moment, number } from "/page/format.js";
import { table } from "/page/table.js";

const MOST = 50;
const FEW = 10;

// `prepareBan` leads to the form of bans, `prepareKey` to where a key stands.
export function top({ changed, prepareBan, prepareKey }) {
  let limits = [];
  // The limit whose keys are shown; empty: clients.
  let limit = "";
  const showRows = table(byId("top-list"), {
    label: "The busiest", few: FEW, keyOf: (row) => `${limit} ${JSON.stringify(row.key)}`,
    empty: "None in this time.",
    columns: [
      { title: "Who", class: "name", text: (row) => keyText(row.key) },
      { title: "Denied", numeric: true, text: (row) => number(row.denied) },
      { title: "Requests", numeric: true, text: (row) => number(row.requests) },
      { title: "First", class: "time", text: (row) => moment(row.first) },
      { title: "Last", class: "time", text: (row) => moment(row.last) },
      { title: "Do", class: "wide", text: (row) => keyText(row.key), node: buttons },
    ],
  });

  function buttons(row) {
    const who = keyText(row.key);
    const ban = element("button", { type: "button", "aria-label": `Ban ${who}`, click: () => prepareBan(banOf(limit, row.key)) }, "Ban…");
    if (limit === "") return ban;
    if (isHidden(row.key)) return element("span", { class: "quiet" }, "masked");
    const look = element("button", { type: "button", "aria-label": `See where ${who} stands`, click: () => prepareKey({ limit, values: row.key }) }, "See");
    const isShadow = limits.find((one) => one.name === limit)?.shadow;
    return element("span", { class: "bar" }, look, isShadow ? "" : ban);
  }

  for (const id of ["top-limit", "top-by", "top-minutes"]) {
    byId(id).addEventListener("change", () => {
      showRows(null);
      changed();
    });
  }

  function pathChosen() {
    const chosen = { by: byId("top-by").value, minutes: byId("top-minutes").value, n: MOST };
    if (byId("top-limit").value !== "") chosen.limit = byId("top-limit").value;
    return withQuery("/api/v1/top", chosen);
  }

  return {
    async load() {
      const path = pathChosen();
      const { answer: rows, missing } = await getOfAll(path);
      if (path !== pathChosen()) return;
      limit = byId("top-limit").value;
      showRows(rows);
      setNote(byId("top-missing"), missingText(missing));
    },
    setLimits(now) {
      if (JSON.stringify(now) === JSON.stringify(limits)) return;
      limits = now;
      const names = now.map((limit) => limit.name);
      const select = byId("top-limit");
      const chosen = select.value;
      select.replaceChildren(element("option", { value: "" }, "clients"), ...names.map((name) => element("option", { value: name }, `keys of ${name}`)));
      select.value = names.includes(chosen) ? chosen : "";
    },
  };
}

// A client is banned by its address everywhere, a key of a limit where the limit applies.
const banOf = (limit, key) => (limit === "" ? { values: { address: Object.values(key)[0] } } : { limit, values: key });
