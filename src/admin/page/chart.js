// A chart of stacked bars over time on one scale, with marks of what happened, and the value under the pointer or the
// keyboard's cursor. Drawn in pixels, so that text and lines are sharp at any width.

import { bold, clock, element, number, svg } from "./tools.js";

const HEIGHT = 164;
const [LEFT, RIGHT, TOP, BOTTOM] = [44, 6, 20, 20];
const TIP = { width: 176, height: 150 };
const MINUTES = [1, 2, 5, 10, 15, 30, 60, 120];
// Between two times on the axis.
const APART = 64;

// Bars of a row of a table, as wide as its cell. `layers` from the back to the front.
export function bars(layers, peak, label) {
  const length = layers[0].values.length;
  const paths = layers.map(({ kind, values }) => svg("path", { class: kind, d: outline(values, peak) }));
  return svg("svg", { viewBox: `0 0 ${length} 100`, preserveAspectRatio: "none", role: "img", label, class: "bars" }, ...paths);
}

// One closed outline of all bars: a thousand rectangles would cost a thousand elements.
function outline(values, peak) {
  const y = (value) => (peak === 0 ? 100 : 100 - (value / peak) * 100).toFixed(2);
  const tops = values.map((value, index) => `V${value > 0 ? Math.min(y(value), 98) : 100}H${index + 1}`);
  return `M0 100${tops.join("")}V100Z`;
}

// The chart in `root`. `show({times, seconds, layers, marks, tip})`: `times` of the bars in milliseconds, each of `seconds`;
// `layers` from the lowest to the highest, {kind, name, values}; `marks` {at, kind, text}; `tip(index)` the lines of the value.
export function chart(root, label) {
  const picture = svg("svg", { class: "chart", "aria-hidden": "true", height: HEIGHT });
  const plot = element("div.plot", { tabindex: "0", role: "slider", label, "aria-valuemin": 0, "aria-valuemax": 0, "aria-valuenow": 0 }, picture);
  const cursor = svg("g", { class: "cursor" });
  let shown = null;
  let place = null;
  // The time that the cursor is at: the bars move on below it.
  let at = null;
  root.append(plot);

  function draw() {
    const width = plot.clientWidth;
    if (shown === null || width === 0) return picture.replaceChildren();
    const { times, seconds, layers, marks } = shown;
    const count = times.length;
    const sums = times.map((_, index) => layers.reduce((sum, layer) => sum + layer.values[index], 0));
    const ticks = ticksUpTo(Math.max(...sums, 1));
    const top = ticks.at(-1);
    const [step, inner] = [(width - LEFT - RIGHT) / count, HEIGHT - TOP - BOTTOM];
    const x = (index) => LEFT + index * step;
    const y = (value) => TOP + inner * (1 - value / top);
    place = { x, step, count, width };
    const end = times[0] + count * seconds * 1000;
    const xOf = (time) => LEFT + ((time - times[0]) / (end - times[0])) * (width - LEFT - RIGHT);
    const lines = ticks.flatMap((tick) => [
      svg("line", { class: tick === 0 ? "axis" : "grid", x1: LEFT, x2: width - RIGHT, y1: y(tick), y2: y(tick) }),
      svg("text", { x: LEFT - 6, y: y(tick) + 4, "text-anchor": "end" }, short(tick)),
    ]);
    const labels = timesOfAxis(times[0], end, width - LEFT - RIGHT).flatMap((time) => [
      svg("line", { class: "axis", x1: xOf(time), x2: xOf(time), y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM + 4 }),
      svg("text", { x: xOf(time), y: HEIGHT - 4, "text-anchor": xOf(time) > width - 24 ? "end" : "middle" }, clock(time).slice(0, 5)),
    ]);
    const below = new Array(count).fill(0);
    const stacks = layers.map(({ kind, values }) => {
      const gap = step > 4 ? 1 : 0;
      const path = values.map((value, index) => {
        if (value === 0) return "";
        const from = below[index];
        below[index] += value;
        // What is there is seen, however small it is.
        const high = Math.max(1, y(from) - y(below[index]));
        return `M${x(index).toFixed(1)} ${y(from).toFixed(1)}v${-high.toFixed(1)}h${(step - gap).toFixed(1)}v${high.toFixed(1)}z`;
      });
      return svg("path", { class: kind, d: path.join("") });
    });
    // Of one kind, those that stand nearer to each other than a sign is wide are one.
    const visible = marks.filter(({ at: time }) => time >= times[0] && time <= end);
    const apart = new Map(visible.map((mark) => [`${mark.kind} ${Math.round(xOf(mark.at) / 8)}`, mark]));
    const signs = [...apart.values()].map(({ at: time, kind }) => svg("g", { class: `mark ${kind}`, transform: `translate(${xOf(time).toFixed(1)} 0)` },
      svg("line", { y1: TOP - 4, y2: HEIGHT - BOTTOM }), svg("path", { d: MARKS[kind] })));
    picture.setAttribute("width", width);
    picture.replaceChildren(pattern(), ...lines, ...labels, ...stacks, ...signs, cursor);
    point(at === null ? null : Math.min(count - 1, Math.max(0, Math.round((at - times[0]) / (seconds * 1000)))));
  }

  function point(index) {
    if (index === null || shown === null || place === null) {
      at = null;
      return cursor.replaceChildren();
    }
    const { x, step, width } = place;
    at = shown.times[index];
    const left = x(index) + step + 8 + TIP.width > width ? x(index) - 8 - TIP.width : x(index) + step + 8;
    const rows = shown.tip(index);
    tell(index, rows);
    cursor.replaceChildren(
      svg("rect", { x: x(index), y: TOP, width: step, height: HEIGHT - TOP - BOTTOM }),
      svg("foreignObject", { x: Math.max(0, left), y: TOP, width: TIP.width, height: TIP.height }, element("div.tip", ...rows.map(tipRow))),
    );
  }

  function tell(index, rows) {
    plot.setAttribute("aria-valuenow", index);
    plot.setAttribute("aria-valuetext", rows.map(({ name, text }) => `${name} ${text}`.trim()).join(", "));
  }

  const under = (event) => Math.floor((event.clientX - plot.getBoundingClientRect().left - LEFT) / place.step);
  plot.addEventListener("pointermove", (event) => place && point(under(event) >= 0 && under(event) < place.count ? under(event) : null));
  plot.addEventListener("pointerleave", () => point(null));
  plot.addEventListener("blur", () => point(null));
  plot.addEventListener("focus", () => place && point(place.count - 1));
  plot.addEventListener("keydown", (event) => {
    if (place === null) return;
    const now = Number(plot.getAttribute("aria-valuenow"));
    const to = { ArrowLeft: now - 1, ArrowDown: now - 1, ArrowRight: now + 1, ArrowUp: now + 1, Home: 0, End: place.count - 1 }[event.key];
    if (event.key === "Escape") point(null);
    if (to === undefined) return;
    event.preventDefault();
    point(Math.min(place.count - 1, Math.max(0, to)));
  });
  new ResizeObserver(draw).observe(plot);

  return {
    show(data) {
      shown = data;
      plot.classList.remove("loading");
      plot.setAttribute("aria-valuemax", data.times.length - 1);
      if (at === null) tell(data.times.length - 1, data.tip(data.times.length - 1));
      draw();
    },
    wait() {
      shown = null;
      plot.classList.add("loading");
      plot.setAttribute("aria-valuetext", "loading");
      draw();
    },
  };
}

// A ban points down, a lockdown is a bar across, a reload a ring.
const MARKS = { ban: "M-5 5h10l-5 9z", lockdown: "M-6 6h12v7h-12z", reload: "M0 5a4.5 4.5 0 1 0 .01 0zm0 2.5a2 2 0 1 1-.01 0z", entered: "M0 3l6 6-6 6-6-6z" };

const tipRow = ({ kind, name, text }) => element("div", kind ? element("i", { class: `swatch ${kind}` }) : null, element("span", name), bold(text));

// What failed is hatched, so that it differs from what passed without its colour.
function pattern() {
  return svg("pattern", { id: "hatch", width: 4, height: 4, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    svg("rect", { width: 2, height: 4 }));
}

// Round values from 0 to at least `peak`, three or four steps.
function ticksUpTo(peak) {
  const rough = peak / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= rough && Number.isInteger(size)) ?? Math.ceil(rough));
  return Array.from({ length: Math.ceil(peak / step) + 1 }, (_, index) => index * step);
}

// Full minutes, as many as find room.
function timesOfAxis(begin, end, width) {
  const most = Math.max(1, Math.floor(width / APART));
  const minutes = MINUTES.find((size) => (end - begin) / (size * 60_000) <= most) ?? MINUTES.at(-1);
  const size = minutes * 60_000;
  const first = Math.ceil(begin / size) * size;
  return Array.from({ length: Math.max(0, Math.floor((end - first) / size) + 1) }, (_, index) => first + index * size);
}

const short = (value) => (value >= 10_000 ? `${number(value / 1000)}k` : number(value));
