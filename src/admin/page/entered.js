// Did anybody get in? Sign-ins to accounts that had many failures before, from a client that was not known there.

import { button, byId, element, quiet, sign } from "./dom.js";
import { passes, value } from "./filter.js";
import { counted, moment, number, together } from "./format.js";

// Returns a function that shows what happened lately. `ban` asks and bans.
export function entered({ banNow, banOf }) {
  const section = byId("entered");
  const list = byId("entered-list");
  let shown = "";

  // `outcomes`: how many sign-ins were counted.
  return function show(past, outcomes) {
    const found = past.filter((one) => one.event === "signed_in_after_failures");
    const rows = together(found.filter(passes), (one) => `${one.account} ${one.client}`);
    const bans = rows.map((one) => banOf(one.client)?.until);
    const text = JSON.stringify([rows, bans, outcomes > 0]);
    if (text === shown) return;
    shown = text;
    section.classList.toggle("bad", rows.length > 0);
    section.classList.toggle("well", rows.length === 0);
    const none = found.length > 0 ? "None that this filter shows." : outcomes > 0 ? "Nobody signed in after failures in the last hour." : "Nobody signed in after failures in the last hour: no sign-in was counted.";
    list.replaceChildren(...(rows.length === 0 ? [element("p", {}, sign("✓"), none)] : rows.map(line)));
  };

  function line({ account, client, failures, clients, route, request_id: id, time, count }) {
    const banned = banOf(client);
    const times = count === 1 ? "" : ` ${number(count)} times, the last`;
    return element("div", { class: "entry" },
      element("p", {},
        sign("✕"), value("account", account), " signed in", times, " at ", element("b", {}, moment(time)), " UTC from ", value("client", client),
        ", after ", element("b", {}, counted(failures, "failure")), clients ? ` from ${counted(clients, "client")}` : "", route ? " on route " : "", route ? value("route", route) : "", ".",
        id ? quiet(` Request ${id}.`) : null),
      banned ? element("span", { class: "state" }, `banned until ${moment(banned.until)}`) : button(`Ban ${client}…`, () => banNow({ addresses: [client], span: "1h", reason: `signed in as ${account} after ${counted(failures, "failure")}` }), { class: "serious" }),
    );
  }
}
