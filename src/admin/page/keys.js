// Where a key stands with a limit, and its reset.

import { attempt } from "./bans.js";
import { fillParts, partsIn, showParts } from "./keyparts.js";
import { askAgain, button, byId, clock, element, get, keyText, number, quiet, remove, say, setChoices, span, withQuery } from "./tools.js";

// `prepareBan` leads to the form of bans.
export function keys(prepareBan) {
  let limits = null;
  let shown = null;

  const chosen = () => limits.find((limit) => limit.name === byId("key-limit").value);
  const pathOf = ({ limit, key }) => withQuery(`limits/${encodeURIComponent(limit)}/state`, key);

  function showFields() {
    showParts(byId("key-parts"), "key-part", selectorsOf(chosen()));
  }

  async function look() {
    const asked = { limit: byId("key-limit").value, key: partsIn(byId("key-parts")) };
    await attempt("key-error", async () => {
      const state = await get(pathOf(asked));
      if (byId("key-limit").value === asked.limit) show(asked, state);
    });
    if (byId("key-error").textContent !== "") byId("standing").replaceChildren();
  }

  function show(asked, state) {
    shown = asked;
    const rates = state.rates.map((rate) => element("li", rateText(rate)));
    byId("standing").replaceChildren(
      element("p", { class: state.allowed ? "well" : "bad" }, sentence(asked, state), " ", quiet(`As of ${clock(new Date())} UTC.`)),
      rates.length > 0 ? element("ul.plain", ...rates) : "",
      element("div.bar",
        button("Reset this key…", reset, { id: "key-reset" }),
        state.shadow ? "" : button("Ban this key…", () => prepareBan(banOf(asked))),
      ),
    );
  }

  // The `distinct` value is no part of the key that is banned.
  const banOf = ({ limit, key }) => {
    const selectors = limits.find((one) => one.name === limit)?.key ?? [];
    return { limit, values: Object.fromEntries(selectors.map((selector) => [selector, key[selector]])) };
  };

  async function reset() {
    const asked = shown;
    const title = `Reset ${asked.limit} for ${keyText(asked.key)}?`;
    if (!(await askAgain({ title, text: "What was counted for this key is forgotten, on every gateway of this store. A ban stays.", yes: "Reset" }))) return;
    await attempt("key-error", async () => {
      await remove(pathOf(asked));
      say(`${asked.limit} is reset for ${keyText(asked.key)}.`);
      show(asked, await get(pathOf(asked)));
      byId("key-reset").focus();
    });
  }

  byId("key-limit").addEventListener("change", () => {
    byId("standing").replaceChildren();
    showFields();
  });
  byId("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    look();
  });

  return {
    async load() {
      const now = await get("limits");
      if (JSON.stringify(now) === JSON.stringify(limits)) return now;
      limits = now;
      setChoices(byId("key-limit"), limits.map((limit) => limit.name), []);
      byId("key-form").hidden = limits.length === 0;
      byId("standing").textContent = limits.length === 0 ? "No limit is configured." : "";
      showFields();
      return now;
    },
    // Fills the form in and looks.
    prepare({ limit, values }) {
      byId("key-limit").value = limit;
      showFields();
      fillParts(byId("key-parts"), values);
      look();
      byId("key-limit").focus();
    },
  };
}

const selectorsOf = (limit) => (limit === undefined ? [] : [...limit.key, ...(limit.distinct ? [limit.distinct] : [])]);

function sentence({ limit, key }, state) {
  const whose = `${keyText(key)} under ${limit}`;
  const shadow = state.shadow ? " The limit is a shadow: it denies nothing." : "";
  if (state.ban) return `Banned: ${whose}, for another ${span(state.retry_after)}.${shadow}`;
  if (state.allowed) return `May pass now: ${whose}.${shadow}`;
  return `Denied now: ${whose}. A request passes in ${span(state.retry_after)}.${shadow}`;
}

function rateText(rate) {
  const used = rate.limit - Math.min(rate.limit, rate.remaining);
  const reset = rate.reset === 0 ? "nothing is used" : `more pass in ${span(rate.reset)}`;
  return `${number(used)} of ${number(rate.limit)} in ${span(rate.window)} used, ${number(rate.remaining)} left; ${reset}`;
}
