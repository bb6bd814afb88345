// Builds elements. All text goes into text nodes, so that HTML in a name or a path is shown as text.

export const byId = (id) => document.getElementById(id);

// `element("p.quiet", { title: "why" }, child)`: an element with classes, attributes and children. Attributes may be left out,
// one that is null is; `label` is for those who listen, `click` is a listener.
export function element(name, ...rest) {
  const [tag, ...classes] = name.split(".");
  const node = fill(document.createElement(tag), rest);
  node.classList.add(...classes);
  return node;
}

export const svg = (name, ...rest) => fill(document.createElementNS("http://www.w3.org/2000/svg", name), rest);

export const bold = (text) => element("b", text);

export const button = (text, click, attributes = {}) => element("button", { type: "button", ...attributes, click }, text);

// Text in the quiet colour.
export const quiet = (text, name = "span") => element(`${name}.quiet`, text);

// A sign before words: colour never says anything alone.
export const sign = (text) => element("span.sign", { "aria-hidden": "true" }, `${text} `);

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

const drawn = new WeakMap();

// Draws again only what differs, so that the focus stays. `data` is what the drawing is of.
export function redraw(node, data, draw) {
  const text = JSON.stringify(data);
  if (drawn.get(node) === text) return;
  drawn.set(node, text);
  node.replaceChildren(...draw().filter((child) => child !== null));
}

// Shows a note, or hides it where there is nothing to say.
export function setNote(node, text) {
  setText(node, text);
  node.hidden = text === "";
}

function fill(node, rest) {
  const { click, ...attributes } = rest[0]?.constructor === Object ? rest.shift() : {};
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) node.setAttribute(name === "label" ? "aria-label" : name, value);
  }
  if (click) node.addEventListener("click", click);
  node.append(...rest.filter((child) => child !== null));
  return node;
}
