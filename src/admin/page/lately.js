// What happened lately: whether anybody got in, which bans are in force, and what was changed.

import { isLockdown } from "./bans.js";
import { covers } from "./net.js";
import { bold, button, byId, clock, counted, element, foldable, fromNow, keyText, moment, number, passes, quiet, redraw, setText, sign, together, value } from "./tools.js";

const SHOWN = 5;

// Sign-ins to accounts that had many failures before, from a client that was not known there. Under attack, those from its
// networks stand first; most others are of the owners whose accounts are attacked.
// Returns a function that shows them. `banNow` asks and bans.
export function entered({ banNow, banOf }) {
  const section = byId("entered");
  const list = byId("entered-list");
  const summary = element("summary");
  const owners = element("div");
  const aside = element("details", summary, owners);

  // `areCounted`: whether sign-ins were, as far as is known.
  return function show(past, attacks, areCounted) {
    const found = past.filter((one) => one.event === "signed_in_after_failures");
    const rows = together(found.filter(passes), (one) => `${one.account} ${one.client}`);
    const networks = attacks.flatMap((attack) => attack.networks.map(({ network }) => network));
    const attacking = (one) => networks.length === 0 || networks.some((network) => covers(network, one.client));
    const [inside, outside] = [rows.filter(attacking), rows.filter((one) => !attacking(one))];
    const bans = rows.map((one) => banOf(one.client)?.until);
    section.className = inside.length > 0 ? "bad" : found.length > 0 ? "look" : "well";
    const none = found.length === 0 ? [sign("✓"), `Nobody signed in after failures in the last hour${areCounted ? "." : ": no sign-in was counted."}`]
      : rows.length === 0 ? [sign("!"), `${counted(found.length, "sign-in")} after failures, none that this filter shows.`]
      : [sign("✓"), "Nobody signed in from a network that attacks."];
    redraw(list, [rows, bans, networks, none[1]], () => {
      setText(summary, `${counted(outside.length, "sign-in")} after failures came from elsewhere: from the owner of the account, or from an attacker who was not there before.`);
      owners.replaceChildren(...outside.map(line));
      return [...(inside.length > 0 ? inside.map(line) : [element("p", ...none)]), ...(outside.length > 0 ? [aside] : [])];
    });
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
