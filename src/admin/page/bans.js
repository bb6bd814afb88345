// What is banned and until when; bans and lifts.

import { fillParts, partsIn, showParts } from "./keyparts.js";
import { covers } from "./net.js";
import { askAgain, button, byId, counted, element, foldable, fromNow, get, HIDDEN, keyNodes, keyText, moment, passes, post, remove, say, setChoices, table, together, value, whom } from "./tools.js";

const MAX_SHOWN = 200;
// More bans than this of one reason are one row.
const MOST_EQUAL = 3;

// `changed` is called after a change.
export function bans(changed) {
  let all = null;
  let limits = [];
  // The reasons whose bans are shown one by one.
  const opened = new Set();
  const fold = foldable("bans");
  const more = element("p.quiet", { id: "bans-more" });
  const list = element("div");
  byId("bans-list").append(list, more);
  const showRows = table(list, {
    label: "Bans", keyOf: (ban) => ban.id, empty: "Nothing is banned.",
    columns: [
      { title: "Whom", class: "name", text: (ban) => (ban.equal ? counted(ban.equal.length, "ban") : subject(ban)), node: subjectNode },
      { title: "Until", class: "wide", text: (ban) => `${moment(ban.until)} (${fromNow(ban.until)})` },
      { title: "Reason", class: "name wide", text: (ban) => ban.reason },
      { title: "Id", class: "id", text: (ban) => (ban.equal ? "" : ban.id) },
      { title: "Change", text: (ban) => ban.id, node: (ban) => (ban.equal ? openButton(ban) : liftButton(ban)) },
    ],
  });

  function openButton(ban) {
    const open = () => {
      opened.add(sameAs(ban));
      show();
      byId("bans-heading").focus();
    };
    return button("Show each", open, { label: `Show each ban of ${ban.reason || "no reason"}` });
  }

  function liftButton(ban) {
    return button("Lift…", () => lift(ban), { label: `Lift the ban of ${subject(ban)}` });
  }

  function show() {
    if (all === null) return;
    const wanted = byId("bans-filter").value.trim().toLowerCase();
    const concerned = all.filter(passes);
    const found = concerned.filter((ban) => `${subject(ban)} ${ban.reason} ${ban.id}`.toLowerCase().includes(wanted));
    found.sort((one, other) => (one.until < other.until ? 1 : -1));
    const rows = wanted === "" ? grouped(found, opened) : found;
    const none = all.length === 0 ? undefined : concerned.length === 0 ? HIDDEN : "None of the bans has that text.";
    showRows(rows.slice(0, MAX_SHOWN), none);
    fold(all.length === 0);
    const hidden = rows.length - MAX_SHOWN;
    more.textContent = hidden > 0 ? `${hidden} more: type into Find to see them.` : "";
  }

  async function lift(ban) {
    const title = `Lift the ban of ${subject(ban)}?`;
    if (!(await askAgain({ title, text: "Its requests may pass again at once, on every gateway of this store. Its limit is reset for that key.", yes: "Lift the ban" }))) return;
    await attempt("ban-error", async () => {
      await remove(`bans/${encodeURIComponent(ban.id)}`);
      say(`The ban of ${subject(ban)} is lifted.`);
      byId("bans-heading").focus();
    });
    changed();
  }

  // Bans addresses; asks again first. Whether the operator said yes and all are banned.
  async function banNow({ addresses, span, reason, warning = "" }) {
    const one = addresses.length === 1 ? addresses[0] : counted(addresses.length, "address or network", "addresses and networks");
    const text = ["Answered with 403, on every gateway of this store.", warning].filter(Boolean).join(" ");
    if (!(await askAgain({ title: `Ban ${one} for ${span}?`, text, list: addresses.length === 1 ? [] : addresses, yes: "Ban" }))) return false;
    let isDone = false;
    try {
      const answer = await post("bans", { addresses, for: span, reason });
      const [first] = answer.banned;
      say(`${addresses.length === 1 ? `${subject(first)} is` : `${one} are`} banned until ${moment(first.until)} UTC.${scopeText(first)}`);
      isDone = true;
    } catch (problem) {
      say(`Nothing is banned: ${problem.message}.`);
    }
    changed();
    return isDone;
  }

  async function ban(event) {
    event.preventDefault();
    const request = asked();
    const title = `Ban ${subject(request)} for ${request.for}?`;
    const text = request.limit !== undefined ? "Its requests are denied on every route of this limit, on every gateway of this store." : "Its requests are answered with 403, on every gateway of this store.";
    if (!(await askAgain({ title, text, yes: "Ban" }))) return;
    await attempt("ban-error", async () => {
      const made = await post("bans", request);
      say(`${subject(made)} is banned until ${moment(made.until)} UTC.${scopeText(made)}`);
    });
    changed();
  }

  function asked() {
    const limit = byId("ban-what").value;
    const parts = partsIn(byId("ban-parts"));
    const request = { for: byId("ban-for").value.trim(), reason: byId("ban-reason").value.trim() };
    if (byId("ban-force").checked) request.force = true;
    return limit === "" ? { address: parts.address, ...request } : { limit, key: parts, ...request };
  }

  function showFields() {
    const limit = limits.find((one) => one.name === byId("ban-what").value);
    byId("ban-force-label").hidden = limit !== undefined;
    showParts(byId("ban-parts"), "ban-part", limit === undefined ? ["address"] : limit.key);
  }

  byId("bans-filter").addEventListener("input", show);
  byId("ban-what").addEventListener("change", showFields);
  byId("ban-form").addEventListener("submit", ban);
  byId("bans-heading").tabIndex = -1;
  showFields();

  return {
    async load() {
      all = await get("bans");
      show();
      return all;
    },
    lift,
    banNow,
    // The ban that holds for all of an address or a network; undefined: there is none.
    banOf: (address) => all?.find((ban) => ban.address && covers(ban.address, address)),
    setLimits(now) {
      const denying = now.filter((limit) => !limit.shadow);
      if (JSON.stringify(denying) === JSON.stringify(limits)) return;
      limits = denying;
      setChoices(byId("ban-what"), limits.map((limit) => limit.name), [["", "an address or a network"]], (name) => `a key of ${name}`);
      showFields();
    },
    // Fills the form in and leads to it.
    prepare({ limit = "", values }) {
      byId("ban-what").value = limit;
      showFields();
      fillParts(byId("ban-parts"), values);
      byId("ban-for").focus();
    },
  };
}

function subject(ban) {
  return ban.address ?? `${keyText(ban.key)} of ${ban.limit}`;
}

function subjectNode(ban) {
  if (ban.equal) return counted(ban.equal.length, "ban");
  return ban.address ? whom(ban.address) : element("span", ...keyNodes(ban.key), " of ", value("limit", ban.limit), ban.unenforced ? " (no such limit now)" : "");
}

// Whether it keeps everyone out.
export const isLockdown = (ban) => !ban.address && Object.keys(ban.key ?? {}).length === 0;

const scopeText = (ban) => (ban.scope === "all" ? "" : " Redis does not answer: only this gateway knows it, the others when Redis is back.");

const sameAs = (ban) => `${ban.limit ?? ""} ${ban.reason}`;

// Bans of one reason are one row, with their number.
function grouped(bans, opened) {
  const split = ({ equal, ...ban }) => (equal.length <= MOST_EQUAL || opened.has(sameAs(ban)) ? equal : [{ ...ban, id: `equal ${sameAs(ban)}`, equal }]);
  return together(bans, sameAs).flatMap(split);
}

// Runs a change, and shows its problem where the operator looks.
export async function attempt(errorId, change) {
  const error = byId(errorId);
  error.textContent = "";
  try {
    await change();
  } catch (problem) {
    error.textContent = `${problem.message}.`;
  }
}
