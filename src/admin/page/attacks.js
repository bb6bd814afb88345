// What is attacked and by whom: a card for each attack, from which its networks are banned.

import { marks } from "./mark.js";
import { button, byId, clock, count, counted, element, foldable, get, HIDDEN, number, passes, Problem, redraw, setText, span, svg, table, titled, value, whom, withQuery } from "./tools.js";

const MINUTES = 60;
const FEW = 5;
const AGENT_LETTERS = 56;
const FIGURES = ["requests", "denied", "failed", "signed_in", "clients", "accounts"];

// Returns a function that asks, shows, and returns the attacks.
export function attacks(bans) {
  const nothing = element("p.quiet.empty", "Loading…");
  const list = byId("attacks-list");
  const fold = foldable("attacks");
  let cards = new Map();
  list.replaceChildren(nothing);

  function show(all) {
    const shown = all.filter(passes);
    const before = cards;
    cards = new Map(shown.map((attack) => [attack.id, before.get(attack.id) ?? card(attack, bans)]));
    for (const attack of shown) cards.get(attack.id).show(attack);
    setText(nothing, all.length > 0 ? HIDDEN : "No attack in the last hour.");
    nothing.hidden = shown.length > 0;
    const nodes = [...cards.values()].map((one) => one.node);
    for (const [id, one] of before) if (!cards.has(id)) one.node.remove();
    nodes.forEach((node, index) => list.children[index + 1] !== node && list.insertBefore(node, list.children[index + 1] ?? null));
    fold(shown.length === 0);
    byId("first").classList.toggle("attacked", shown.some((attack) => !attack.over));
  }

  return async function load() {
    try {
      const all = await get(withQuery("attacks", { minutes: MINUTES }));
      show(all);
      return all;
    } catch (problem) {
      // A gateway of before does not tell attacks.
      if (!(problem instanceof Problem && problem.status === 404)) throw problem;
      byId("attacks").hidden = true;
      return [];
    }
  };
}

function card(first, bans) {
  let attack = first;
  const state = element("span.pill");
  const title = element("h3", state, `${titled(first.kind)} on `, first.route && first.route !== "-" ? value("route", first.route) : "no route", first.limit ? ", limit " : "", first.limit ? value("limit", first.limit) : "");
  const since = element("span.quiet");
  const sentence = element("p");
  const figures = element("dl.figures");
  const reason = () => `${attack.kind} on ${attack.route}`;
  const marking = marks({
    bans, label: `the networks of ${first.kind} on ${first.route}`,
    reason, warning: (addresses) => (addresses.toSorted().join() === proposed(attack).toSorted().join() ? hits(attack) : ""),
  });
  for (const { network } of first.networks) if (proposed(first).includes(network)) marking.mark(network);
  const all = button("", () => bans.banNow({ addresses: proposed(attack), span: marking.span(), reason: reason(), warning: hits(attack) }), { class: "serious" });
  marking.bar.append(all);
  const networks = element("div.networks");
  const showNetworks = table(networks, {
    label: "Networks of this attack", few: FEW, keyOf: (one) => one.network, empty: "No network stands out.",
    columns: [
      { title: "From", class: "name", text: (one) => one.network, node: (one) => whom(one.network) },
      count("Clients", (one) => one.clients),
      count("Requests", (one) => one.requests),
      { title: "Part", class: "part", text: (one) => String(Math.round((one.requests / attack.requests) * 100)), node: (one) => share(one.requests / attack.requests) },
      { title: "Ban", class: "state", text: (one) => marking.state(one.network), node: (one) => marking.cell(one.network) },
    ],
  });
  const names = element("div");
  const agents = element("div");
  const hit = element("p.quiet");
  const body = element("details.body", element("summary", "Who and whom"), figures, element("div.sides", networks, element("div.lists", names, agents)), marking.bar, hit);
  body.open = !first.over;
  const node = element("article.attack", element("div.head", title, since), sentence, body);

  return { node, show(now) {
    attack = now;
    node.classList.toggle("over", now.over);
    setText(state, now.over ? "✓ over" : "✕ now");
    const quietFor = age(now.last);
    setText(since, now.over ? `${clock(now.since).slice(0, 5)} to ${clock(now.last).slice(0, 5)} UTC` : `since ${clock(now.since).slice(0, 5)} UTC, ${span(age(now.since))}${quietFor > 60 ? `, quiet for ${span(quietFor)}` : ""}`);
    setText(sentence, now.sentence);
    figures.replaceChildren(...FIGURES.map((name) => element("div", { class: name === "signed_in" && now.signed_in > 0 ? "bad" : null }, element("dt", titled(name)), element("dd", `${name === "signed_in" && now.signed_in > 0 ? "✕ " : ""}${number(now[name])}`))));
    showNetworks(now.networks);
    fill(names, "Accounts", now.names, ({ account, failed, signed_in: entered }) => [value("account", account), ` ${counted(failed, "failure")}`, entered === 0 ? null : now.signed_in === 0 ? `, ${counted(entered, "sign-in")} of others` : element("b.bad", `, ✕ ${counted(entered, "sign-in")}`)]);
    fill(agents, "Agents", now.agents, ({ agent, requests }) => [value("agent", agent, agent.length > AGENT_LETTERS ? `${agent.slice(0, AGENT_LETTERS)}…` : agent || "(none)"), ` ${counted(requests, "request")}`]);
    // Where the networks that are shown hold others too, a ban of smaller ones is proposed.
    all.hidden = now.over || proposed(now).every((one) => now.networks.some(({ network }) => network === one));
    setText(all, `Ban the ${counted(proposed(now).length, "smaller network")} of it…`);
    setText(hit, hits(now));
    hit.hidden = proposed(now).every((one) => bans.banOf(one));
  } };
}

// In seconds.
const age = (time) => (Date.now() - new Date(time)) / 1000;

const fill = (root, title, items, parts) => redraw(root, items, () => (items.length === 0 ? [] : [element("h4", title), element("ul", ...items.slice(0, FEW).map((item) => element("li", ...parts(item))))]));

// What the ban has to name that ends the attack.
const proposed = ({ ban }) => ban?.split(" ").filter((word) => /^[\da-f:.]+(\/\d+)?$/.test(word) && /[.:]/.test(word)) ?? [];

function hits({ ban, would_hit: hit, others_denied: others }) {
  const told = ban ? [`The ban would stop ${hit > 0 ? `also ${counted(hit, "client")}` : "no client"} that signed in lately.`] : [];
  if (others > 0) told.push(`${counted(others, "client")} with a sign-in before ${others === 1 ? "was" : "were"} denied meanwhile.`);
  return told.join(" ");
}

const share = (part) => svg("svg", { class: "share", viewBox: "0 0 100 8", preserveAspectRatio: "none", role: "img", label: `${Math.round(part * 100)} % of its requests` },
  svg("rect", { class: "all", width: 100, height: 8 }), svg("rect", { width: Math.max(1, part * 100), height: 8 }));
