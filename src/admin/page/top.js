// Who is behind it: the busiest clients, or the busiest keys of a limit.

import { marks } from "./mark.js";
import { button, byId, count, element, filtered, foldable, getOfAll, HIDDEN, isHidden, keyNodes, keyText, missingText, moment, number, passes, quiet, setChoices, setNote, table, tell, withQuery } from "./tools.js";

const MOST = 50;
const FEW = 10;

// `bans` bans in place, `prepareBan` leads to the form of bans, `prepareKey` to where a key stands.
export function top({ changed, bans, prepareBan, prepareKey }) {
  const marking = marks({ bans, label: "the busiest", reason: () => "" });
  byId("top-marked").append(marking.bar);
  let limits = [];
  // The limit whose keys are shown; empty: clients.
  let limit = "";
  const showRows = table(byId("top-list"), {
    label: "The busiest", few: FEW, keyOf: (row) => `${limit} ${JSON.stringify(row.key)}`,
    empty: "None in this time.",
    columns: [
      { title: "Who", class: "name", text: (row) => keyText(row.key), node: who },
      count("Denied", (row) => row.denied),
      { title: "Failed", numeric: true, text: (row) => (row.failed === undefined ? "" : number(row.failed)) },
      count("Requests", (row) => row.requests),
      { title: "First", class: "time", text: (row) => moment(row.first) },
      { title: "Last", class: "time", text: (row) => moment(row.last) },
      { title: "Do", class: "wide", text: (row) => `${keyText(row.key)} ${marking.state(addressOf(row.key))}`, node: buttons },
    ],
  });

  function buttons(row) {
    const who = keyText(row.key);
    const ban = (click) => button("Ban…", click, { label: `Ban ${who}` });
    if (limit === "") {
      const address = addressOf(row.key);
      const banNow = () => bans.banNow({ addresses: [address], span: marking.span(), reason: "" });
      return element("span.do", marking.cell(address), bans.banOf(address) ? null : ban(banNow));
    }
    if (isHidden(row.key)) return quiet("masked");
    const look = button("See", () => prepareKey({ limit, values: row.key }), { label: `See where ${who} stands` });
    const isShadow = limits.find((one) => one.name === limit)?.shadow;
    return element("span.do", look, isShadow ? "" : ban(() => prepareBan({ limit, values: row.key })));
  }

  const fold = foldable("top");
  const isChosen = () => byId("top-limit").value !== "" || byId("top-by").value !== "denied" || byId("top-minutes").value !== "10";

  for (const id of ["top-limit", "top-by", "top-minutes"]) {
    byId(id).addEventListener("change", () => {
      showRows(null);
      changed();
    });
  }

  function pathChosen() {
    const chosen = { by: byId("top-by").value, minutes: byId("top-minutes").value, n: MOST };
    if (byId("top-limit").value !== "") chosen.limit = byId("top-limit").value;
    return withQuery("top", chosen);
  }

  return {
    async load() {
      const path = pathChosen();
      const { answer: rows, missing } = await getOfAll(path);
      if (path !== pathChosen()) return;
      limit = byId("top-limit").value;
      const shown = rows.filter((row) => passes({ key: row.key, limit: limit || undefined }));
      byId("top-marked").hidden = limit !== "" || shown.length === 0;
      tell(byId("top"), limit === "" ? "client network limit" : "client network account agent limit");
      showRows(shown, rows.length > shown.length ? HIDDEN : undefined);
      fold(rows.length === 0 && !isChosen());
      setNote(byId("top-missing"), missingText(missing));
    },
    // Shows the keys of the limit that the page is filtered by.
    filter() {
      if (filtered("limit") && limits.some((one) => one.name === filtered("limit"))) byId("top-limit").value = filtered("limit");
    },
    setLimits(now) {
      if (JSON.stringify(now) === JSON.stringify(limits)) return;
      limits = now;
      setChoices(byId("top-limit"), now.map((one) => one.name), [["", "clients"]], (name) => `keys of ${name}`);
    },
  };
}

const addressOf = (key) => Object.values(key)[0];

const who = (row) => element("span", ...keyNodes(row.key));
