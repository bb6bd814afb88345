// Whether the gateway is well, in one sentence and one sign, and the facts that say so.

import { byId, element, setText } from "/page/dom.js";
import { clock, counted, keyText, missingText, moment, number } from "/page/format.js";

const SIGNS = { well: "✓", look: "!", bad: "✕" };
const WORDS = { well: "well", look: "look at this", bad: "not well" };

// From one denial a second on, somebody is at it.
const ATTACK = 60;
// Fewer failed requests in a minute are one browser's.
const MANY_FAILED = 10;

// Returns functions that show what the facts say, that the gateway does not answer, and that it has not told yet how it is.
export function verdict() {
  let heard = "";
  let latest = null;

  // `isHeard`: whether those who listen to the page hear the sentence.
  function write({ level, sign, text, title, isHeard }, facts) {
    const section = byId("verdict");
    if (section.className !== level) section.className = level;
    setText(byId("verdict-sign"), sign);
    const sentence = byId("verdict-sentence");
    sentence.setAttribute("aria-live", isHeard ? "polite" : "off");
    setText(sentence, text);
    document.title = title;
    byId("facts").replaceChildren(...facts);
  }

  function show(facts) {
    const deciding = facts.filter((fact) => !fact.isAside);
    const unwell = ["bad", "look"].flatMap((level) => deciding.filter((fact) => fact.level === level));
    const level = unwell[0]?.level ?? "well";
    const told = level === "well" ? deciding.slice(0, 1) : unwell;
    const text = `${level === "well" ? "All is well. " : ""}${told.map((fact) => fact.text).join(" ")}`;
    // The numbers change every ten seconds. Listeners hear a verdict once.
    const words = text.replace(/[\d,]+/g, "");
    const title = `${SIGNS[level]} ${WORDS[level]}: portcullis`;
    write({ level, sign: SIGNS[level], text, title, isHeard: words !== heard }, facts.filter((fact) => !told.includes(fact)).map(line));
    heard = words;
    latest = { text, time: new Date() };
    document.body.classList.remove("stale");
  }

  // The notice above is heard, and says the same.
  function showGone(since) {
    const text = `The gateway has not answered since ${clock(since)} UTC.`;
    const before = latest === null ? [] : [element("li", { class: "quiet" }, `Before, at ${clock(latest.time)} UTC: ${latest.text}`)];
    write({ level: "bad", sign: SIGNS.bad, text, title: `${SIGNS.bad} no answer: portcullis`, isHeard: false }, before);
    heard = "";
    document.body.classList.add("stale");
  }

  // What the page shows is older, until the gateway has answered.
  function showUnknown() {
    write({ level: "", sign: "", text: "Asking the gateway…", title: "portcullis", isHeard: false }, []);
    document.body.classList.add("stale");
  }

  return { show, showGone, showUnknown };
}

const line = (fact) => element("li", { class: fact.level },
  element("span", { class: "sign", "aria-hidden": "true" }, SIGNS[fact.level]), " ", element("b", {}, fact.name), " ", fact.text);

// What happens now. In an attack also where, and who is behind it: routes and limits, what denied most first, and the client
// that was denied most.
export function trafficFacts(lately, { routes, limits, busiest }) {
  const traffic = trafficFact(lately, limits);
  return lately.denied < ATTACK ? [traffic] : [traffic, whereFact(routes), whoFact(busiest)].filter((fact) => fact !== null);
}

function trafficFact({ passed, denied, failed }, limits) {
  const name = "Requests";
  if (passed + denied + failed === 0) return { name, level: "well", text: "No request came in the last minute." };
  const failures = failed === 0 ? "" : ` ${counted(failed, "request")} failed: refused as malformed, or not answered by the application.`;
  const counts = `${counted(passed, "request")} passed and ${number(denied)} ${denied === 1 ? "was" : "were"} denied in the last minute.${failures}`;
  if (denied < ATTACK) return { name, level: failed > MANY_FAILED && failed > passed / 10 ? "look" : "well", text: counts };
  const by = limits.length > 0 ? ` Most by the limit ${limits[0].name}: ${number(limits[0].denied)}.` : "";
  return { name, level: "look", text: `Under attack: ${counts}${by}` };
}

function whereFact(routes) {
  if (routes.length === 0) return null;
  const shown = routes.slice(0, 3).map((route) => `${route.name === "-" ? "no route" : route.name} ${number(route.denied)}`);
  return { name: "Where", level: "look", text: `Denied in the last minute by route: ${shown.join(", ")}.`, isAside: true };
}

function whoFact(busiest) {
  if (busiest === undefined || busiest.denied === 0) return null;
  const text = `Denied most in 10 minutes: ${keyText(busiest.key)}, ${counted(busiest.denied, "time")}, first at ${moment(busiest.first)}.`;
  return { name: "Who", level: "look", text, isAside: true };
}

// What looks misconfigured. It may wait until the morning, and does not change the verdict.
export function adviceFact(advice) {
  const name = "Advice";
  if (advice.length === 0) return { name, level: "well", text: "Nothing looks misconfigured.", isAside: true };
  return { name, level: "look", text: `${counted(advice.length, "thing looks", "things look")} misconfigured: see below.`, isAside: true };
}

// What the status says of the store, the applications, the configuration and the other gateways.
export function statusFacts({ store, upstreams, lists, certificates, configuration, gateways, complete }) {
  const facts = [storeFact(store), upstreamsFact(upstreams), configurationFact(configuration), gatewaysFact(gateways, complete)];
  if (lists.length > 0) facts.push(listsFact(lists));
  return certificates.length === 0 ? facts : [...facts, certificatesFact(certificates)];
}

function storeFact(store) {
  const name = "Store";
  if (store.up) return { name, level: "well", text: store.kind === "redis" ? "Redis answers." : "This gateway counts in its memory." };
  const away = (store.away ?? []).map((one) => `${one.server}: ${one.cause}`).join("; ");
  return { name, level: "bad", text: `Redis does not answer${away ? ` (${away})` : ""}. Limits do as on_failure says: ${store.on_failure}.` };
}

function upstreamsFact(upstreams) {
  const name = "Upstreams";
  const servers = upstreams.flatMap((upstream) => upstream.servers);
  const ill = servers.filter((server) => !server.healthy).map((server) => server.server);
  if (ill.length === 0) return { name, level: "well", text: servers.length === 1 ? "The server is healthy." : `All ${servers.length} servers are healthy.` };
  const dead = upstreams.filter((upstream) => upstream.servers.every((server) => !server.healthy)).map((upstream) => upstream.name);
  if (dead.length > 0) return { name, level: "bad", text: `No server of ${dead.join(", ")} is healthy: ${ill.join(", ")}.` };
  return { name, level: "look", text: `${ill.length} of ${servers.length} servers ${ill.length === 1 ? "is" : "are"} not healthy: ${ill.join(", ")}.` };
}

function listsFact(lists) {
  const name = "Lists";
  const known = ({ list, entries }) => `${list} has ${counted(entries, "decision")}`;
  const away = lists.filter((list) => !list.up);
  if (away.length === 0) return { name, level: "well", text: `The sources answer: ${lists.map(known).join(", ")}.` };
  const why = (list) => `${list.source}${list.reason ? ` (${list.reason})` : ""}; ${known(list)}`;
  return { name, level: "look", text: `Not answered by ${away.map(why).join("; ")}.` };
}

function certificatesFact(certificates) {
  const name = "Certificates";
  const shown = ({ names, expires }) => `${names.slice(0, 3).join(", ")}${names.length > 3 ? ` and ${names.length - 3} more` : ""}, good until ${moment(expires)}`;
  const ending = certificates.filter((certificate) => certificate.ends_soon);
  if (ending.length > 0) return { name, level: "look", text: `To be renewed: ${ending.map(shown).join("; ")}.` };
  return { name, level: "well", text: `The first to be renewed: ${shown(certificates[0])}.` };
}

function configurationFact({ loaded, last_reload: last }) {
  const name = "Configuration";
  if (last?.result === "failure") return { name, level: "bad", text: `The reload of ${moment(last.at)} failed, the configuration of ${moment(loaded)} stays in force: ${last.reason}` };
  return { name, level: "well", text: `Loaded ${moment(loaded)}.` };
}

function gatewaysFact(gateways, isComplete) {
  const name = "Gateways";
  const gone = gateways.filter((gateway) => gateway.state === "gone");
  const up = gateways.filter((gateway) => gateway.state === "up").length;
  if (gone.length > 0) return { name, level: "bad", text: `${gone.map((gateway) => `${gateway.id} was last heard of at ${moment(gateway.last_seen)}`).join("; ")}. ${counted(up, "gateway")} up.` };
  const missing = gateways.filter((gateway) => gateway.state === "missing").map((gateway) => gateway.id);
  if (missing.length > 0) return { name, level: "look", text: missingText(missing) };
  if (!isComplete) return { name, level: "look", text: "Redis does not tell of other gateways: what is shown is of this one alone." };
  return { name, level: "well", text: up === 1 ? "This one alone." : `All ${up} are up.` };
}
