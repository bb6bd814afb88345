// The filter of the page: everything, or only what concerns the values that were clicked. It stands in the address of the
// page, so that it can be sent to a colleague, and the browser goes back to the one before.

import { button, byId, element } from "./dom.js";
import { isHidden } from "./format.js";
import { overlap } from "./net.js";

const KINDS = ["client", "network", "account", "limit", "route", "agent"];

// What a list says of which the filter shows nothing.
export const HIDDEN = "None that this filter shows.";

let chosen = {};
let changed = () => {};

// The value of a kind; undefined: any.
export const filtered = (kind) => chosen[kind];

// `listener` is called now and each time the filter changes.
export function onFilter(listener) {
  changed = listener;
  addEventListener("popstate", read);
  read();
}

// Whether a thing is shown: a request, an event, a ban, an attack. What it does not know of itself hides it from no filter.
export function passes(thing) {
  const facts = factsOf(thing);
  const isOf = (kind, one, text) => (kind === "client" || kind === "network" ? overlap(one, text) : one === text);
  return Object.entries(chosen).every(([kind, text]) => facts[kind]?.some((one) => isOf(kind, one, text)) ?? true);
}

function factsOf({ client, address, network, networks = [], key, limit, limits = [], route, account, names = [], agents = [] }) {
  const keys = [key, ...limits.map((one) => one.key)].flatMap((one) => Object.entries(one ?? {}));
  const of = (selector) => keys.filter(([name]) => name === selector).map(([, text]) => text);
  // Null: known to be none. Undefined: not known.
  const known = (...values) => {
    const told = values.flat().filter((text) => text !== undefined);
    return told.length === 0 ? undefined : told;
  };
  const whom = known(client, address, network, networks.map((one) => one.network), of("client_ip"));
  return {
    client: whom, network: whom, route: known(route), limit: known(limit, limits.map((one) => one.name)),
    account: known(account, names.map((one) => one.account), keys.filter(([name]) => name !== "client_ip").map(([, text]) => text)),
    agent: known(agents.map((one) => one.agent), of("header.user-agent")),
  };
}

// A value that filters the page when it is clicked. Opened in another tab it is a page with that filter alone.
export function value(kind, text, shown = text) {
  const href = `?${new URLSearchParams({ [kind]: text })}`;
  const follow = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    choose({ ...chosen, [kind]: text });
  };
  return element("a.value", { href, click: follow }, shown);
}

// A key, as `client_ip 198.51.100.7, param.username alice`, with values to click.
export function keyNodes(key) {
  const parts = Object.entries(key ?? {});
  if (parts.length === 0) return ["all requests"];
  return parts.flatMap(([selector, text], index) => [index > 0 ? ", " : "", `${selector} `, valueOfKey(selector, text)]);
}

function valueOfKey(selector, text) {
  if (text === "") return "(empty)";
  if (isHidden({ selector: text })) return text;
  if (selector === "client_ip") return whom(text);
  return value(selector === "header.user-agent" ? "agent" : "account", text);
}

// An address or a network.
export const whom = (text) => value(text.includes("/") ? "network" : "client", text);

function choose(next) {
  chosen = next;
  const text = new URLSearchParams(chosen).toString();
  history.pushState(null, "", text === "" ? "/" : `?${text}`);
  apply();
}

function read() {
  const asked = new URLSearchParams(location.search);
  chosen = Object.fromEntries(KINDS.map((kind) => [kind, asked.get(kind)]).filter(([, text]) => text));
  apply();
}

function apply() {
  const bar = byId("filters");
  const chips = Object.entries(chosen).map(([kind, text]) => button(`${kind} ${text} ×`, () => without(kind), { class: "chip", label: `Show every ${kind} again, not only ${text}` }));
  bar.hidden = chips.length === 0;
  bar.replaceChildren(element("span", "Only"), ...chips, chips.length > 1 ? button("Show everything", () => choose({})) : "");
  for (const section of document.querySelectorAll("[data-tells]")) tell(section);
  changed();
}

function without(kind) {
  const { [kind]: _, ...rest } = chosen;
  choose(rest);
  (byId("filters").querySelector("button") ?? byId("verdict")).focus();
}

// Says by which of the filters a section is not told apart.
export function tell(section, kinds = section.dataset.tells) {
  section.dataset.tells = kinds;
  const untold = Object.keys(chosen).filter((kind) => !kinds.split(" ").includes(kind));
  section.querySelector(".untold")?.remove();
  if (untold.length === 0) return;
  section.append(element("p.untold.quiet", `Not told apart by ${untold.join(" or ")}: all of it is shown.`));
}
