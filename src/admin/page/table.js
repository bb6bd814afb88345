// Tables that change in place: a row keeps its elements, and with them the focus and what is selected, while it exists.

import { button, element, setText } from "./dom.js";
import { number } from "./format.js";

// `columns`: [{title, numeric, text(item), node(item)}]; `text` is what a cell shows, or stands for what `node` shows.
// `keyOf(item)` is different for each row. `empty` says what it means that there is none. More rows than `few` wait for a
// button. Returns a function that shows items, and before the answer with them is there, null.
export function table(root, { label, columns, keyOf, empty, few = Infinity }) {
  const heads = columns.map((column) => element("th", { scope: "col", class: classOf(column) }, column.title));
  const body = element("tbody", { role: "rowgroup" });
  const whole = element("table", { label }, element("thead", element("tr", ...heads)), body);
  const nothing = element("p.quiet.empty");
  const more = button("", toggle);
  let rows = new Map();
  let all = [];
  let areAllShown = false;
  root.replaceChildren(whole, nothing, more);
  show(null);

  function show(items, none = empty) {
    all = items ?? [];
    setText(nothing, items === null ? "Loading…" : none);
    nothing.classList.toggle("loading", items === null);
    nothing.hidden = all.length > 0;
    whole.hidden = all.length === 0;
    more.hidden = all.length <= few;
    setText(more, areAllShown ? "Show fewer" : `Show all ${all.length}`);
    more.setAttribute("aria-label", `${more.textContent}: ${label}`);
    showRows(areAllShown ? all : all.slice(0, few));
  }

  function toggle() {
    areAllShown = !areAllShown;
    show(all);
  }

  function showRows(items) {
    const before = rows;
    rows = new Map();
    let position = body.firstChild;
    for (const item of items) {
      const key = keyOf(item);
      const row = before.get(key) ?? { node: element("tr"), cells: columns.map((column) => newCell(column)) };
      if (!before.has(key)) row.node.append(...row.cells.map((cell) => cell.node));
      before.delete(key);
      rows.set(key, row);
      columns.forEach((column, index) => showCell(row.cells[index], column, item));
      if (row.node === position) position = position.nextSibling;
      else body.insertBefore(row.node, position);
    }
    for (const row of before.values()) row.node.remove();
  }

  return show;
}

// A column of numbers.
export const count = (title, of) => ({ title, numeric: true, text: (item) => number(of(item)) });

function newCell(column) {
  return { node: element("td", { class: classOf(column), "data-title": column.title }), text: null };
}

function showCell(cell, column, item) {
  const text = column.text(item);
  if (cell.text === text) return;
  cell.text = text;
  cell.node.replaceChildren(column.node ? column.node(item) : text);
}

const classOf = (column) => [column.numeric ? "number" : null, column.class ?? null].filter(Boolean).join(" ") || null;
