// The gateways on this store, the servers of the applications, and what looks misconfigured.

import { byId, count, counted, element, foldable, get, moment, quiet, redraw, setText, span, table } from "./tools.js";

const FEW = 8;
const COUNTS = { passed: "Passed, last minute", denied: "Denied", signed_in: "Signed in", failed: "Failed" };
const STATES = { up: "✓ up", draining: "! draining", ended: "ended", missing: "! no answer", gone: "✕ gone" };

// Returns a function that asks and shows.
export function status() {
  const showGateways = table(byId("gateways-list"), {
    label: "Gateways", few: FEW, keyOf: (gateway) => gateway.id, empty: "No gateway is known.",
    columns: [
      { title: "Gateway", class: "id", text: (gateway) => `${gateway.name}${gateway.isThis ? " (this one)" : ""}` },
      { title: "State", text: (gateway) => STATES[gateway.state] ?? gateway.state },
      ...Object.entries(COUNTS).map(([name, title]) => count(title, (gateway) => gateway.last_minute[name] ?? 0)),
      { title: "Since", class: "wide", text: (gateway) => `${moment(gateway.since)} (${span((Date.now() - new Date(gateway.since)) / 1000)})` },
      { title: "Last heard of", class: "time", text: (gateway) => moment(gateway.last_seen) },
      { title: "Version", class: "name wide", text: (gateway) => gateway.version },
    ],
  });
  const showServers = table(byId("servers-list"), {
    label: "Servers", few: FEW, keyOf: (server) => `${server.upstream} ${server.server}`, empty: "No server is configured.",
    columns: [
      { title: "Upstream", class: "name", text: (server) => server.upstream },
      { title: "Server", class: "name wide", text: (server) => server.server },
      { title: "State", text: (server) => (server.healthy ? "✓ healthy" : "✕ not healthy") },
    ],
  });

  return async function load() {
    const now = await get("status");
    // What is not well stands first.
    const first = (isWell) => (one, other) => isWell(one) - isWell(other);
    const gateways = now.gateways.map((gateway) => ({ ...gateway, isThis: gateway === now.gateways[0] }));
    showGateways(gateways.sort(first((gateway) => gateway.state === "up")));
    const servers = now.upstreams.flatMap(({ name, servers: all }) => all.map((server) => ({ upstream: name, ...server })));
    showServers(servers.sort(first((server) => server.healthy)));
    setText(byId("whose"), now.gateways.length > 1 ? `${now.gateway}, one of ${counted(now.gateways.length, "gateway")}` : now.gateway);
    const { source, loaded } = now.configuration;
    setText(byId("config-state"), `${source}, loaded ${moment(loaded)} UTC. Listens on ${now.listeners.join(", ") || "no address"}.`);
    return now;
  };
}

// Returns a function that shows the advice of a status.
export function advice() {
  const fold = foldable("advice");
  return function show(now) {
    fold(now.length === 0);
    redraw(byId("advice-list"), now, () => (now.length === 0 ? [element("p.quiet.empty", "Nothing looks misconfigured.")] : now.map(entry)));
  };
}

function entry({ message, since, limit, route, help }) {
  const where = [limit && `limit ${limit}`, route && `route ${route}`, `since ${moment(since)}`].filter(Boolean).join(", ");
  return element("div.advice",
    element("p", message, " ", quiet(`(${where})`)),
    element("p.help", help));
}
