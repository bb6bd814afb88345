// Why: the newest requests that were denied or held, and any of them by its id.

import { get, Problem, withQuery } from "/page/api.js";
import { byId, element } from "/page/dom.js";
import { isHidden, keyText, moment, number, span } from "/page/format.js";
import { table } from "/page/table.js";

const NEWEST = 50;
const FEW = 10;

// `prepareBan` leads to the form of bans, `prepareKey` to where a key stands.
export function requests({ changed, prepareBan, prepareKey }) {
  const showRows = table(byId("requests-list"), {
    label: "The newest requests that were denied or held", few: FEW, keyOf: (request) => request.id,
    empty: "This gateway has denied or held no request.",
    columns: [
      { title: "Time", class: "time", text: (request) => moment(request.time) },
      { title: "Decision", text: (request) => request.decision },
      { title: "Client", class: "name", text: (request) => request.client },
      { title: "By", class: "name", text: (request) => request.limit ?? request.list ?? (request.ban ? `ban ${request.ban}` : "") },
      { title: "Request", class: "name wide", text: (request) => `${request.method} ${request.path}` },
      { title: "Why", class: "id", text: (request) => request.id, node: whyButton },
    ],
  });

  function whyButton(request) {
    return element("button", { type: "button", "aria-label": `Why request ${request.id} was ${request.decision}`, click: () => find(request.id) }, request.id);
  }

  async function find(id) {
    byId("request-id").value = id;
    byId("request-error").textContent = "";
    byId("story").replaceChildren();
    try {
      const story = await get(`/api/v1/requests/${encodeURIComponent(id)}`);
      if (byId("request-id").value.trim() !== id) return;
      show(story);
      byId("story-sentence").focus();
    } catch (problem) {
      byId("request-error").textContent = `${problem.message}.`;
    }
  }

  function show(story) {
    const facts = {
      Id: story.id, Time: `${moment(story.time)} UTC`, Decision: story.decision, Client: story.client, Peer: story.peer,
      Request: `${story.method} ${story.host}${story.path}`, Route: story.route, Status: story.status, Ban: story.ban, List: story.list,
    };
    const known = Object.entries(facts).filter(([, value]) => value !== null && value !== undefined);
    byId("story").replaceChildren(
      element("p", { id: "story-sentence", class: "sentence", tabindex: "-1" }, story.sentence),
      element("dl", {}, ...known.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, String(value))])),
      element("ul", { class: "plain" }, ...story.limits.flatMap(limitLines)),
      element("div", { class: "bar" },
        element("button", { type: "button", click: () => prepareBan({ values: { address: story.client } }) }, `Ban ${story.client}…`),
        ...story.limits.filter((limit) => limit.key && !isHidden(limit.key)).map((limit) => element("button", { type: "button", click: () => prepareKey({ limit: limit.name, values: limit.key }) }, `See ${limit.name}`)),
      ),
    );
  }

  byId("request-form").addEventListener("submit", (event) => {
    event.preventDefault();
    find(byId("request-id").value.trim());
  });
  const choices = { decision: "requests-decision", client: "requests-client", limit: "requests-limit" };
  for (const id of Object.values(choices)) {
    byId(id).addEventListener("change", () => {
      byId("requests-error").textContent = "";
      showRows(null);
      changed();
    });
  }

  const chosen = () => Object.entries(choices).map(([name, id]) => [name, byId(id).value.trim()]).filter(([, value]) => value !== "");
  const pathChosen = () => withQuery("/api/v1/requests", [...chosen(), ["n", NEWEST]]);

  return {
    async load() {
      const path = pathChosen();
      try {
        const rows = await get(path);
        if (path === pathChosen()) showRows(rows, chosen().length > 0 ? "This gateway has denied or held no request like that." : undefined);
      } catch (problem) {
        if (!(problem instanceof Problem) || problem.status === 401) throw problem;
        if (path !== pathChosen()) return;
        byId("requests-error").textContent = `${problem.message}.`;
        showRows([], "");
      }
    },
    setLimits(now) {
      const select = byId("requests-limit");
      const names = ["", ...now.map((limit) => limit.name)];
      if (JSON.stringify(names) === JSON.stringify([...select.options].map((option) => option.value))) return;
      const chosen = select.value;
      select.replaceChildren(...names.map((name) => element("option", { value: name }, name === "" ? "any" : name)));
      select.value = names.includes(chosen) ? chosen : "";
    },
  };
}

function limitLines({ name, key, decision, rates }) {
  const whose = key ? ` for ${keyText(key)}` : "";
  const line = (text) => element("li", { class: decision === "allowed" ? null : "deciding" }, text);
  if (rates.length === 0) return [line(`${name}${whose}: ${decision}`)];
  return rates.map((rate) => {
    const frees = rate.frees_at ? `; frees at ${moment(rate.frees_at)} UTC` : "";
    return line(`${name}${whose}: ${decision}; ${number(rate.counted)} counted of ${number(rate.limit)} in ${span(rate.window)}${frees}`);
  });
}
