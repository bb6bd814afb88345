// Fields for the parts of a limit's key.

import { element } from "./tools.js";

const LABELS = { address: "Address or network" };

// Replaces the fields in `root`, and keeps what was typed for a selector that stays.
export function showParts(root, prefix, selectors) {
  const typed = partsIn(root);
  root.replaceChildren(...selectors.flatMap((selector, index) => {
    const id = `${prefix}-${index}`;
    const field = element("input", { id, "data-selector": selector, autocomplete: "off" });
    field.value = typed[selector] ?? "";
    return [element("label", { for: id }, LABELS[selector] ?? selector), field];
  }));
}

// What stands in the fields, by selector.
export function partsIn(root) {
  const fields = [...root.querySelectorAll("input")];
  return Object.fromEntries(fields.map((field) => [field.dataset.selector, field.value.trim()]));
}

// Clients that are counted by their network are named by an address in it.
export function fillParts(root, values) {
  for (const field of root.querySelectorAll("input")) {
    const value = values[field.dataset.selector] ?? "";
    field.value = field.dataset.selector === "client_ip" ? value.replace(/\/\d+$/, "") : value;
  }
}
