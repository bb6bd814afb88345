// Bars of a series of numbers. The sentence beside them says the same.

import { element, setText, svg } from "/page/dom.js";

const HEIGHT = 100;

// The picture of some bars, as wide and as high as the style says. `kind` chooses the colour: passed, denied.
export function bars(layers, peak, label) {
  const length = layers[0].values.length;
  const paths = layers.map(({ kind, values }) => svg("path", { class: kind, d: outline(values, peak) }));
  return svg("svg", {
    viewBox: `0 0 ${length} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": label, class: "bars",
  }, ...paths);
}

// A chart with its sentence, its scale and its times. `show` shows values, `wait` none until they are there.
export function chart(root, { kind, title }) {
  const sentence = element("figcaption");
  const scale = element("span", { class: "scale", "aria-hidden": "true" });
  const plot = element("div", { class: "plot" });
  const times = ["from", "middle", "until"].map(() => element("span"));
  const axis = element("div", { class: "times", "aria-hidden": "true" }, ...times);
  root.append(element("figure", { id: `chart-${kind}` }, sentence, element("div", { class: "frame" }, scale, plot, axis)));
  wait();

  function wait() {
    setText(sentence, `${title}: loading…`);
    for (const node of [scale, ...times]) setText(node, "");
    plot.replaceChildren();
  }

  function show({ values, text, marks, unit }) {
    const peak = Math.max(...values, 0);
    setText(sentence, `${title}: ${text}`);
    setText(scale, peak === 0 ? "0" : `${peak} ${unit}`);
    times.forEach((node, index) => setText(node, marks[index]));
    plot.replaceChildren(bars([{ kind, values }], peak, `${title}: ${text}`));
  }

  return { show, wait };
}

// One closed outline of all bars: a thousand rectangles would cost a thousand elements.
function outline(values, peak) {
  const y = (value) => (peak === 0 ? HEIGHT : HEIGHT - (value / peak) * HEIGHT).toFixed(2);
  const tops = values.map((value, index) => `V${value > 0 ? Math.min(y(value), HEIGHT - 2) : HEIGHT}H${index + 1}`);
  return `M0 ${HEIGHT}${tops.join("")}V${HEIGHT}Z`;
}
