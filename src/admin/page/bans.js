// What is banned and until when; bans and lifts.

import { get, post, remove } from "/page/api.js";
import { askAgain, say } from "/page/ask.js";
import { byId, element } from "/page/dom.js";
import { fromNow, keyText, moment } from "/page/format.js";
import { fillParts, partsIn, showParts } from "/page/keyparts.js";
import { table } from "/page/table.js";

const MAX_SHOWN = 200;

// `changed` is called after a change.
export function bans(changed) {
  let all = null;
  let limits = [];
  const more = element("p", { class: "quiet", id: "bans-more" });
  const list = element("div");
  byId("bans-list").append(list, more);
  const showRows = table(list, {
    label: "Bans", keyOf: (ban) => ban.id, empty: "Nothing is banned.",
    columns: [
      { title: "Whom", class: "name", text: subject },
      { title: "Until", class: "wide", text: (ban) => `${moment(ban.until)} (${fromNow(ban.until)})` },
      { title: "Reason", class: "name wide", text: (ban) => ban.reason },
      { title: "Id", class: "id", text: (ban) => ban.id },
      { title: "Change", text: (ban) => ban.id, node: (ban) => liftButton(ban) },
    ],
  });

  function liftButton(ban) {
    return element("button", { type: "button", "aria-label": `Lift the ban of ${subject(ban)}`, click: () => lift(ban) }, "Lift…");
  }

  function show() {
    if (all === null) return;
    const wanted = byId("bans-filter").value.trim().toLowerCase();
    const found = all.filter((ban) => `${subject(ban)} ${ban.reason} ${ban.id}`.toLowerCase().includes(wanted));
    found.sort((one, other) => (one.until < other.until ? 1 : -1));
    showRows(found.slice(0, MAX_SHOWN), all.length > 0 ? "None of the bans has that text." : undefined);
    const hidden = found.length - MAX_SHOWN;
    more.textContent = hidden > 0 ? `${hidden} more: type into Find to see them.` : "";
  }

  async function lift(ban) {
    const title = `Lift the ban of ${subject(ban)}?`;
    if (!(await askAgain({ title, text: "Its requests may pass again at once, on every gateway of this store. Its limit is reset for that key.", yes: "Lift the ban" }))) return;
    await attempt("ban-error", async () => {
      await remove(`/api/v1/bans/${encodeURIComponent(ban.id)}`);
      say(`The ban of ${subject(ban)} is lifted.`);
      byId("bans-heading").focus();
    });
    changed();
  }

  async function ban(event) {
    event.preventDefault();
    const request = asked();
    const whom = request.address ?? `${keyText(request.key)} of ${request.limit}`;
    const title = `Ban ${whom} for ${request.for}?`;
    const text = request.address === undefined ? "Its requests are denied on every route of this limit, on every gateway of this store." : "Its requests are answered with 403, on every gateway of this store.";
    if (!(await askAgain({ title, text, yes: "Ban" }))) return;
    await attempt("ban-error", async () => {
      const made = await post("/api/v1/bans", request);
      say(`${subject(made)} is banned until ${moment(made.until)} UTC.${made.scope === "all" ? "" : " Redis does not answer: only this gateway knows it, the others when Redis is back."}`);
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
    const labelOf = (selector) => (selector === "address" ? "Address or network" : selector);
    showParts(byId("ban-parts"), "ban-part", limit === undefined ? ["address"] : limit.key, { labelOf });
  }

  byId("bans-filter").addEventListener("input", show);
  byId("ban-what").addEventListener("change", showFields);
  byId("ban-form").addEventListener("submit", ban);
  byId("bans-heading").tabIndex = -1;
  showFields();

  return {
    async load() {
      all = await get("/api/v1/bans");
      show();
      return all;
    },
    setLimits(now) {
      const denying = now.filter((limit) => !limit.shadow);
      if (JSON.stringify(denying) === JSON.stringify(limits)) return;
      limits = denying;
      const chosen = byId("ban-what").value;
      const options = limits.map((limit) => element("option", { value: limit.name }, `a key of ${limit.name}`));
      byId("ban-what").replaceChildren(byId("ban-what").options[0], ...options);
      byId("ban-what").value = limits.some((limit) => limit.name === chosen) ? chosen : "";
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
