// Did anybody get in? Sign-ins to accounts that had many failures before, from a client that was not known there.

import { bold, button, byId, counted, element, moment, number, passes, quiet, redraw, sign, together, value } from "./tools.js";

// Returns a function that shows what happened lately. `ban` asks and bans.
export function entered({ banNow, banOf }) {
  const section = byId("entered");
  const list = byId("entered-list");

  // `outcomes`: how many sign-ins were counted.
  return function show(past, outcomes) {
    const found = past.filter((one) => one.event === "signed_in_after_failures");
    const rows = together(found.filter(passes), (one) => `${one.account} ${one.client}`);
    const bans = rows.map((one) => banOf(one.client)?.until);
    section.className = rows.length > 0 ? "bad" : found.length > 0 ? "look" : "well";
    const none = found.length > 0 ? [sign("!"), `${counted(found.length, "sign-in")} after failures, none that this filter shows.`] : [sign("✓"), `Nobody signed in after failures in the last hour${outcomes > 0 ? "." : ": no sign-in was counted."}`];
    redraw(list, [rows, bans, none[1]], () => (rows.length === 0 ? [element("p", ...none)] : rows.map(line)));
  };

  function line({ account, client, failures, clients, route, request_id: id, time, count }) {
    const banned = banOf(client);
    const times = count === 1 ? "" : ` ${number(count)} times, the last`;
    return element("div.entry",
      element("p", {},
        sign("✕"), value("account", account), " signed in", times, " at ", bold(moment(time)), " UTC from ", value("client", client),
        ", after ", bold(counted(failures, "failure")), clients ? ` from ${counted(clients, "client")}` : "", route ? " on route " : "", route ? value("route", route) : "", ".",
        id ? quiet(` Request ${id}.`) : null),
      banned ? element("span.state", `banned until ${moment(banned.until)}`) : button(`Ban ${client}…`, () => banNow({ addresses: [client], span: "1h", reason: `signed in as ${account} after ${counted(failures, "failure")}` }), { class: "serious" }),
    );
  }
}
