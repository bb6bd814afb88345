// Tables that change in place: a row keeps its elements, and with them the focus and what is selected, while it exists.

import { element } from "/page/dom.js";

// `columns`: [{title, numeric, text(item), node(item)}]; `text` is what a cell shows, or stands for what `node` shows.
// `keyOf(item)` is different for each row. `empty` says what it means that there is none.
export function table(root, { label, columns, keyOf, empty }) {
  const heads = columns.map((column) => element("th", { scope: "col", class: classOf(column) }, column.title));
  const body = element("tbody", { role: "rowgroup" });
  const whole = element("table", { "aria-label": label }, element("thead", {}, element("tr", {}, ...heads)), body);
  const nothing = element("p", { class: "quiet empty" }, empty);
  let rows = new Map();
  root.replaceChildren(whole, nothing);

  return function show(items) {
    whole.hidden = items.length === 0;
    nothing.hidden = items.length > 0;
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
  };
}

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
