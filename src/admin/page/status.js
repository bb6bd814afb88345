// The gateways on this store, and the servers of the applications.

import { get } from "/page/api.js";
import { byId, setText } from "/page/dom.js";
import { moment, number, span } from "/page/format.js";
import { table } from "/page/table.js";

const STATES = { up: "✓ up", draining: "! draining", ended: "ended", missing: "! no answer", gone: "✕ gone" };

// Returns a function that asks and shows.
export function status() {
  const showGateways = table(byId("gateways-list"), {
    label: "Gateways", keyOf: (gateway) => gateway.id, empty: "No gateway is known.",
    columns: [
      { title: "Gateway", class: "id", text: (gateway) => `${gateway.id}${gateway.isThis ? " (this one)" : ""}` },
      { title: "State", text: (gateway) => STATES[gateway.state] ?? gateway.state },
      { title: "Passed, last minute", numeric: true, text: (gateway) => number(gateway.last_minute.passed) },
      { title: "Denied, last minute", numeric: true, text: (gateway) => number(gateway.last_minute.denied) },
      { title: "Since", class: "wide", text: (gateway) => `${moment(gateway.since)} (${span((Date.now() - new Date(gateway.since)) / 1000)})` },
      { title: "Last heard of", class: "time", text: (gateway) => moment(gateway.last_seen) },
      { title: "Version", class: "name wide", text: (gateway) => gateway.version },
    ],
  });
  const showServers = table(byId("servers-list"), {
    label: "Servers", keyOf: (server) => `${server.upstream} ${server.server}`, empty: "No server is configured.",
    columns: [
      { title: "Upstream", class: "name", text: (server) => server.upstream },
      { title: "Server", class: "name wide", text: (server) => server.server },
      { title: "State", text: (server) => (server.healthy ? "✓ healthy" : "✕ not healthy") },
    ],
  });

  return async function load() {
    const now = await get("/api/v1/status");
    showGateways(now.gateways.map((gateway) => ({ ...gateway, isThis: gateway.id === now.gateway })));
    showServers(now.upstreams.flatMap(({ name, servers }) => servers.map((server) => ({ upstream: name, ...server }))));
    const { source, loaded } = now.configuration;
    setText(byId("config-state"), `${source}, loaded ${moment(loaded)} UTC. Listens on ${now.listeners.join(", ") || "no address"}.`);
    return now;
  };
}
