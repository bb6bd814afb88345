// What happened lately: whether anybody got in, which bans are in force, and what was changed.

import { isLockdown } from "./bans.js";
import { bold, button, byId, clock, counted, element, foldable, fromNow, keyText, moment, number, passes, quiet, redraw, sign, together, value } from "./tools.js";

const SHOWN = 5;

// Sign-ins to accounts that had many failures before, from a client that was not known there.
// Returns a function that shows them. `banNow` asks and bans.
export function entered({ banNow, banOf }) {
  const section = byId("entered");
  const list = byId("entered-list");

  // `areCounted`: whether sign-ins were, as far as is known.
  return function show(past, areCounted) {
    const found = past.filter((one) => one.event === "signed_in_after_failures");
    const rows = together(found.filter(passes), (one) => `${one.account} ${one.client}`);
    const bans = rows.map((one) => banOf(one.client)?.until);
    section.className = rows.length > 0 ? "bad" : found.length > 0 ? "look" : "well";
    const none = found.length > 0 ? [sign("!"), `${counted(found.length, "sign-in")} after failures, none that this filter shows.`] : [sign("✓"), `Nobody signed in after failures in the last hour${areCounted ? "." : ": no sign-in was counted."}`];
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

// Returns a function that shows bans and what happened lately. `lift` asks and lifts.
export function done({ lift }) {
  const list = byId("done-list");
  const fold = foldable("done");

  return function show(bans, past) {
    const lines = together(past.filter((one) => ["ban", "unban", "reload"].includes(one.event) && passes(one)), sameAs);
    const locks = bans.filter(isLockdown);
    const isNothing = bans.length === 0 && lines.length === 0;
    fold(isNothing);
    redraw(list, [bans.length, locks, lines], () => isNothing ? [quiet("Nothing is banned, and nothing was changed in the last hour.", "p")] : [
      bans.length === 0 ? element("p", "Nothing is banned.") : element("p", bold(number(bans.length)), bans.length === 1 ? " ban in force. " : " bans in force. ", element("a", { href: "#bans" }, "See them")),
      ...locks.map((ban) => element("div.entry.look",
        element("p", sign("!"), value("limit", ban.limit), " lets nobody in until ", bold(moment(ban.until)), ` (${fromNow(ban.until)})`),
        button("Lift…", () => lift(ban), { label: `Lift the ban of everyone by ${ban.limit}` }))),
      element("ul.lines", ...lines.slice(0, SHOWN).map((line) => element("li", quiet(clock(line.time).slice(0, 5)), element("span", sentence(line, line.count))))),
      lines.length > SHOWN ? quiet(`And ${counted(lines.length - SHOWN, "other change")}.`, "p") : null,
    ]);
  };
}

const sameAs = (event) => [event.event, event.limit, event.reason, event.limit && isLockdown(event)].join("\n");

function sentence(event, count) {
  const reason = event.reason ? `: ${event.reason}` : "";
  if (event.event === "reload") return `Reload${count > 1 ? `, ${number(count)} times` : ""}${reason}`;
  const whom = count > 1 ? counted(count, "client or key", "clients and keys") : event.address ?? (isLockdown(event) ? "everyone" : keyText(event.key));
  const by = event.limit ? ` by ${event.limit}` : "";
  return event.event === "unban" ? `Lifted the ban of ${whom}${reason}` : `Banned ${whom}${by}${reason}`;
}
