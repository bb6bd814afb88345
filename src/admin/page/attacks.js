// What is attacked and by whom: a card for each attack, from which its networks are banned.

import { get, Problem, withQuery } from "./api.js";
import { byId, element, setText, svg } from "./dom.js";
import { passes, value } from "./filter.js";
import { foldable } from "./fold.js";
import { clock, counted, number, span } from "./format.js";
import { marks } from "./mark.js";
import { table } from "./table.js";

const MINUTES = 60;
const FEW = 5;
const AGENT_LETTERS = 56;
const KINDS = { guessing: "Guessing", stuffing: "Stuffing", spraying: "Spraying", flood: "Flood" };
const FIGURES = { requests: "Requests", denied: "Denied", failed: "Failed", signed_in: "Signed in", clients: "Clients", accounts: "Accounts" };

// Returns functions: one that asks and shows, and whether an attack is under way.
export function attacks(bans) {
  const section = byId("attacks");
  const nothing = element("p", { class: "quiet empty" }, "Loading…");
  const list = byId("attacks-list");
  const fold = foldable(section, list);
  let cards = new Map();
  list.replaceChildren(nothing);

  function show(all) {
    const shown = all.filter(passes);
    const before = cards;
    cards = new Map(shown.map((attack) => [attack.id, before.get(attack.id) ?? card(attack, bans)]));
    for (const attack of shown) cards.get(attack.id).show(attack);
    setText(nothing, all.length > 0 ? "None that this filter shows." : "No attack in the last hour.");
    nothing.hidden = shown.length > 0;
    const nodes = [...cards.values()].map((one) => one.node);
    for (const [id, one] of before) if (!cards.has(id)) one.node.remove();
    nodes.forEach((node, index) => list.children[index + 1] !== node && list.insertBefore(node, list.children[index + 1] ?? null));
    fold(shown.length === 0);
    byId("first").classList.toggle("attacked", shown.length > 0);
  }

  return async function load() {
    try {
      show(await get(withQuery("/api/v1/attacks", { minutes: MINUTES })));
    } catch (problem) {
      // A gateway of before does not tell attacks.
      if (!(problem instanceof Problem && problem.status === 404)) throw problem;
      section.hidden = true;
    }
  };
}

function card(first, bans) {
  let attack = first;
  const state = element("span", { class: "pill" });
  const title = element("h3", {}, state, `${KINDS[first.kind] ?? first.kind} on `, first.route && first.route !== "-" ? value("route", first.route) : "no route", first.limit ? ", limit " : "", first.limit ? value("limit", first.limit) : "");
  const since = element("span", { class: "quiet" });
  const sentence = element("p");
  const figures = element("dl", { class: "figures" });
  const marking = marks({
    bans, label: `the networks of ${first.kind} on ${first.route}`,
    reason: () => `${attack.kind} on ${attack.route}`, warning: () => hits(attack),
  });
  for (const { network } of first.networks) if (first.ban?.split(" ").includes(network)) marking.mark(network);
  const networks = element("div", { class: "networks" });
  const showNetworks = table(networks, {
    label: "Networks of this attack", few: FEW, keyOf: (one) => one.network, empty: "No network stands out.",
    columns: [
      { title: "From", class: "name", text: (one) => one.network, node: (one) => value("network", one.network) },
      { title: "Clients", numeric: true, text: (one) => number(one.clients) },
      { title: "Requests", numeric: true, text: (one) => number(one.requests) },
      { title: "Part", class: "part", text: (one) => String(Math.round((one.requests / attack.requests) * 100)), node: (one) => share(one.requests / attack.requests) },
      { title: "Ban", class: "state", text: (one) => marking.state(one.network), node: (one) => marking.cell(one.network) },
    ],
  });
  const names = element("div");
  const agents = element("div");
  const hit = element("p", { class: "quiet" });
  const command = element("code");
  const asCommand = element("details", {}, element("summary", {}, "As a command"), command);
  const body = element("details", { class: "body" }, element("summary", {}, "Who and whom"), figures, element("div", { class: "sides" }, networks, element("div", { class: "lists" }, names, agents)), marking.bar, hit, asCommand);
  body.open = !first.over;
  const node = element("article", { class: "attack", "aria-label": `${KINDS[first.kind] ?? first.kind} on ${first.route}` }, element("div", { class: "head" }, title, since), sentence, body);

  return { node, show(now) {
    attack = now;
    node.classList.toggle("over", now.over);
    setText(state, now.over ? "✓ over" : "✕ now");
    setText(since, now.over ? `${clock(now.since).slice(0, 5)} to ${clock(now.last).slice(0, 5)} UTC` : `since ${clock(now.since).slice(0, 5)} UTC, ${span((Date.now() - new Date(now.since)) / 1000)}`);
    setText(sentence, now.sentence);
    figures.replaceChildren(...Object.entries(FIGURES).map(([name, text]) => element("div", { class: name === "signed_in" && now.signed_in > 0 ? "bad" : null }, element("dt", {}, text), element("dd", {}, `${name === "signed_in" && now.signed_in > 0 ? "✕ " : ""}${number(now[name])}`))));
    showNetworks(now.networks);
    fill(names, "Accounts", now.names, ({ account, failed, signed_in: entered }) => [value("account", account), ` ${counted(failed, "failure")}`, entered > 0 ? element("b", { class: "bad" }, `, ✕ ${counted(entered, "sign-in")}`) : null]);
    fill(agents, "Agents", now.agents, ({ agent, requests }) => [value("agent", agent, agent.length > AGENT_LETTERS ? `${agent.slice(0, AGENT_LETTERS)}…` : agent || "(none)"), ` ${counted(requests, "request")}`]);
    setText(hit, hits(now));
    setText(command, now.ban ?? "");
    asCommand.hidden = !now.ban;
  } };
}

// Drawn anew only where it differs, so that the focus stays.
function fill(root, title, items, parts) {
  const text = JSON.stringify(items);
  if (root.dataset.shown === text) return;
  root.dataset.shown = text;
  root.replaceChildren(...(items.length === 0 ? [] : [element("h4", {}, title), element("ul", { class: "plain" }, ...items.slice(0, FEW).map((item) => element("li", {}, ...parts(item))))]));
}

function hits({ would_hit: hit, others_denied: others }) {
  const told = [hit > 0 ? `The ban would also stop ${counted(hit, "client")} that signed in lately.` : "The ban would stop no client that signed in lately."];
  if (others > 0) told.push(`${counted(others, "client")} with a sign-in before ${others === 1 ? "was" : "were"} denied meanwhile.`);
  return told.join(" ");
}

const share = (part) => svg("svg", { class: "share", viewBox: "0 0 100 8", preserveAspectRatio: "none", role: "img", "aria-label": `${Math.round(part * 100)} % of its requests` },
  svg("rect", { class: "all", width: 100, height: 8 }), svg("rect", { width: Math.max(1, part * 100), height: 8 }));
