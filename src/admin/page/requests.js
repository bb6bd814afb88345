// Why: the newest requests that were denied or held, and any of them by its id.

import { button, byId, count, element, filtered, foldable, get, isHidden, keyText, moment, number, passes, Problem, setChoices, span, table, together, value, withQuery } from "./tools.js";

const NEWEST = 200;
const FEW = 10;
const DECISIONS = ["denied", "banned", "listed", "delayed", "tarpitted", "challenged"];

// `prepareBan` leads to the form of bans, `prepareKey` to where a key stands.
export function requests({ changed, prepareBan, prepareKey }) {
  const showRows = table(byId("requests-list"), {
    label: "The newest requests that were denied or held", few: FEW, keyOf: sameAs,
    empty: "This gateway has denied or held no request.",
    columns: [
      { title: "Time", class: "time", text: (request) => moment(request.time) },
      { title: "Decision", text: (request) => request.decision },
      { title: "Client", class: "name", text: (request) => request.client, node: (request) => value("client", request.client) },
      { title: "By", class: "name", text: by, node: (request) => (request.limit ? value("limit", request.limit) : by(request)) },
      { title: "Request", class: "name wide", text: (request) => `${request.method} ${request.path}` },
      count("Times", (request) => request.count),
      { title: "Why", class: "id wide", text: (request) => request.id, node: whyButton },
    ],
  });

  function whyButton(request) {
    return button(request.id, () => find(request.id), { label: `Why request ${request.id} was ${request.decision}` });
  }

  setChoices(byId("requests-decision"), DECISIONS, [["", "any"]]);
  const fold = foldable("requests");

  async function find(id) {
    byId("request-id").value = id;
    byId("request-error").textContent = "";
    byId("story").replaceChildren();
    try {
      const story = await get(`requests/${encodeURIComponent(id)}`);
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
      element("dl", ...known.flatMap(([name, value]) => [element("dt", name), element("dd", String(value))])),
      element("ul.plain", ...story.limits.flatMap(limitLines)),
      element("div.bar",
        button(`Ban ${story.client}…`, () => prepareBan({ values: { address: story.client } })),
        ...story.limits.filter((limit) => limit.key && !isHidden(limit.key)).map((limit) => button(`See ${limit.name}`, () => prepareKey({ limit: limit.name, values: limit.key }))),
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
  const pathChosen = () => withQuery("requests", [...chosen(), ["n", NEWEST]]);

  return {
    async load() {
      const path = pathChosen();
      try {
        const rows = await get(path);
        if (path !== pathChosen()) return;
        const shown = rows.filter(passes);
        showRows(together(shown, sameAs), chosen().length > 0 || rows.length > shown.length ? "This gateway has denied or held no request like that." : undefined);
        fold(rows.length === 0 && chosen().length === 0);
      } catch (problem) {
        if (!(problem instanceof Problem) || problem.status === 401) throw problem;
        if (path !== pathChosen()) return;
        byId("requests-error").textContent = `${problem.message}.`;
        showRows([], "");
      }
    },
    // Asks for those that the page is filtered by.
    filter() {
      byId("requests-client").value = filtered("client") ?? "";
      const limit = byId("requests-limit");
      limit.value = [...limit.options].some((option) => option.value === filtered("limit")) ? filtered("limit") : "";
    },
    setLimits: (now) => setChoices(byId("requests-limit"), now.map((limit) => limit.name), [["", "any"]]),
  };
}

const by = (request) => request.limit ?? request.list ?? (request.ban ? `ban ${request.ban}` : "");

const sameAs = (request) => [request.decision, request.client, by(request), request.method, request.path].join("\n");

function limitLines({ name, key, decision, rates }) {
  const whose = key ? ` for ${keyText(key)}` : "";
  const line = (text) => element("li", { class: decision === "allowed" ? null : "deciding" }, text);
  if (rates.length === 0) return [line(`${name}${whose}: ${decision}`)];
  return rates.map((rate) => {
    const frees = rate.frees_at ? `; frees at ${moment(rate.frees_at)} UTC` : "";
    return line(`${name}${whose}: ${decision}; ${number(rate.counted)} counted of ${number(rate.limit)} in ${span(rate.window)}${frees}`);
  });
}
