// What was done: bans in force, routes that are locked, and the bans, lifts and reloads of the last hour.

import { button, byId, element, quiet, sign } from "./dom.js";
import { passes, value } from "./filter.js";
import { foldable } from "./fold.js";
import { clock, counted, fromNow, keyText, moment, number, together } from "./format.js";
import { isLockdown } from "./bans.js";

const SHOWN = 5;

// Returns a function that shows bans and what happened lately. `lift` asks and lifts.
export function done({ lift }) {
  const list = byId("done-list");
  const fold = foldable(byId("done"), list);
  let shown = "";

  return function show(bans, past) {
    const lines = together(past.filter((one) => ["ban", "unban", "reload"].includes(one.event) && passes(one)), sameAs);
    const text = JSON.stringify([bans.length, bans.filter(isLockdown), lines]);
    if (text === shown) return;
    shown = text;
    const locks = bans.filter(isLockdown);
    fold(bans.length === 0 && lines.length === 0);
    if (bans.length === 0 && lines.length === 0) return list.replaceChildren(quiet("Nothing is banned, and nothing was changed in the last hour.", "p"));
    const more = lines.length > SHOWN ? quiet(`And ${counted(lines.length - SHOWN, "more kind", "more kinds")} of change.`, "p") : null;
    list.replaceChildren(
      bans.length === 0 ? element("p", {}, "Nothing is banned.") : element("p", {}, element("b", {}, number(bans.length)), bans.length === 1 ? " ban in force. " : " bans in force. ", element("a", { href: "#bans" }, "See them")),
      ...locks.map((ban) => element("div", { class: "entry look" },
        element("p", {}, sign("!"), value("limit", ban.limit), " lets nobody in until ", element("b", {}, moment(ban.until)), ` (${fromNow(ban.until)})`),
        button("Lift…", () => lift(ban), { "aria-label": `Lift the ban of everyone by ${ban.limit}` }))),
      element("ul", { class: "lines" }, ...lines.slice(0, SHOWN).map((line) => element("li", {}, quiet(clock(line.time).slice(0, 5)), element("span", {}, sentence(line, line.count))))),
      ...(more ? [more] : []),
    );
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
