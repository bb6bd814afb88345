// What was done: bans in force, routes that are locked, and the bans, lifts and reloads of the last hour.

import { isLockdown } from "./bans.js";
import { bold, button, byId, clock, counted, element, foldable, fromNow, keyText, moment, number, passes, quiet, redraw, sign, together, value } from "./tools.js";

const SHOWN = 5;

// Returns a function that shows bans and what happened lately. `lift` asks and lifts.
export function done({ lift }) {
  const list = byId("done-list");
  const fold = foldable(byId("done"), list);

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
