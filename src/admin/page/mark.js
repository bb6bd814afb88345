// Marks of addresses and networks in a list, and the button that bans what is marked.

import { button, counted, element, moment, setText } from "./tools.js";

const SPANS = { "15m": "15 minutes", "1h": "1 hour", "24h": "1 day", "7d": "7 days" };

// `bans`: {banNow, banOf} of the panel of bans. `reason()` is what the bans say. Returns the bar with the button, and the cell of an
// address.
export function marks({ bans, label, reason, warning = () => "" }) {
  const marked = new Set();
  const span = element("select", { label: `How long to ban: ${label}` }, ...Object.entries(SPANS).map(([text, name]) => element("option", { value: text }, `for ${name}`)));
  span.value = "1h";
  const act = button("", ban, { class: "serious" });
  const bar = element("div.bar.marked", act, span);
  update();

  function update() {
    act.disabled = marked.size === 0;
    setText(act, marked.size === 0 ? "Mark whom to ban" : `Ban ${marked.size === 1 ? [...marked][0] : counted(marked.size, "marked", "marked")}…`);
  }

  async function ban() {
    const addresses = [...marked];
    if (await bans.banNow({ addresses, span: span.value, reason: reason(), warning: warning(addresses) })) {
      marked.clear();
      update();
    }
  }

  return {
    bar,
    span: () => span.value,
    mark(address) {
      if (bans.banOf(address) === undefined) marked.add(address);
      update();
    },
    // What the cell shows, as text: it is drawn anew when that changes.
    state: (address) => bans.banOf(address)?.until ?? "free",
    cell(address) {
      const banned = bans.banOf(address);
      if (banned) {
        marked.delete(address);
        update();
        return element("span.state", `banned until ${moment(banned.until)}`);
      }
      const box = element("input", { type: "checkbox", label: `Mark ${address}` });
      box.checked = marked.has(address);
      box.addEventListener("change", () => {
        if (box.checked) marked.add(address);
        else marked.delete(address);
        update();
      });
      return box;
    },
  };
}
