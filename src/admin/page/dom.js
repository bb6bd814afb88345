// Builds elements. All text goes into text nodes, so that HTML in a name or a path is shown as text.

export const byId = (id) => document.getElementById(id);

// An element with attributes and children. An attribute that is null is left out; `click` is a listener.
export function element(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

export const button = (text, click, attributes = {}) => element("button", { type: "button", ...attributes, click }, text);

// Text in the quiet colour.
export const quiet = (text, name = "span") => element(name, { class: "quiet" }, text);

// A sign before words: colour never says anything alone.
export const sign = (text) => element("span", { class: "sign", "aria-hidden": "true" }, `${text} `);

// Replaces the choices of a list where they differ, and keeps what is chosen. `first` stands before them.
export function setChoices(select, names, first, nameOf = (name) => name) {
  const values = [...first.map(([value]) => value), ...names];
  if (JSON.stringify(values) === JSON.stringify([...select.options].map((option) => option.value))) return;
  const before = select.value;
  const option = (value, text) => element("option", { value }, text);
  select.replaceChildren(...first.map(([value, text]) => option(value, text)), ...names.map((name) => option(name, nameOf(name))));
  select.value = values.includes(before) ? before : values[0] ?? "";
}

// Changes text only where it differs: what did not change is not announced again, and stays selected.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Shows a note, or hides it where there is nothing to say.
export function setNote(node, text) {
  setText(node, text);
  node.hidden = text === "";
}

function fill(node, { click, ...attributes }, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  if (click) node.addEventListener("click", click);
  node.append(...children.filter((child) => child !== null));
  return node;
}
