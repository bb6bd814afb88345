// What passed and what was denied: over time, by route and by limit.

import { get, withQuery } from "/page/api.js";
import { bars, chart } from "/page/chart.js";
import { byId, setNote } from "/page/dom.js";
import { clock, counted, missingText, number } from "/page/format.js";
import { grouped, lastMinute, steps, together, total } from "/page/history.js";
import { table } from "/page/table.js";

const MAX_BARS = 360;
const SMALL_BARS = 60;

// `changed` is called when another time is chosen. Returns a function that asks and shows; it answers what all gateways
// together, each route and each limit did in each step.
export function traffic(changed) {
  const passedChart = chart(byId("charts"), { kind: "passed", title: "Passed" });
  const deniedChart = chart(byId("charts"), { kind: "denied", title: "Denied" });
  const showRoutes = table(byId("routes"), {
    label: "Requests by route", columns: columns("Route", true), keyOf: (row) => row.name, empty: "No route is configured.",
  });
  const showLimits = table(byId("limits"), {
    label: "Decisions by limit", columns: columns("Limit", false), keyOf: (row) => row.name,
    empty: "No limit is configured: everything passes.",
  });
  const showMinutes = table(byId("by-minute"), {
    label: "Requests by minute", keyOf: (row) => row.time, empty: "Nothing was counted.",
    columns: [
      { title: "From", text: (row) => row.time },
      { title: "Passed", numeric: true, text: (row) => number(row.passed) },
      { title: "Denied", numeric: true, text: (row) => number(row.denied) },
      { title: "Signed in", numeric: true, text: (row) => number(row.signedIn) },
      { title: "Failed to", numeric: true, text: (row) => number(row.failed) },
      { title: "Errors", numeric: true, text: (row) => number(row.errors) },
    ],
  });

  byId("minutes").addEventListener("change", () => {
    for (const one of [passedChart, deniedChart]) one.wait();
    for (const show of [showRoutes, showLimits, showMinutes]) show(null);
    changed();
  });

  return async function load() {
    const minutes = byId("minutes").value;
    const history = await get(withQuery("/api/v1/history", { minutes }));
    const length = Math.max(0, ...Object.values(history.routes).flatMap(Object.values).map((values) => values.length));
    const routes = rows(history.routes, length);
    const limits = rows(history.limits, length);
    const all = together(routes.map((row) => row.steps), length);
    if (minutes === byId("minutes").value) show(history, { routes, limits, all });
    return { all, routes, limits };
  };

  function show(history, { routes, limits, all }) {
    setNote(byId("traffic-missing"), missingText(history.missing));
    const seconds = history.step_seconds;
    for (const [one, name] of [[passedChart, "passed"], [deniedChart, "denied"]]) {
      const { values, size } = grouped(all[name], MAX_BARS);
      const begin = new Date(history.from).getTime();
      const at = (index) => clock(begin + Math.max(0, all[name].length - (values.length - index) * size) * seconds * 1000);
      one.show({
        values, text: sentence(all[name], values, at, size * seconds), unit: `in ${size * seconds} s`,
        marks: [at(0), at(Math.floor(values.length / 2)), "now"],
      });
    }
    showRoutes(routes.filter((row) => row.name !== "-" || total(row.steps.passed) + total(row.steps.denied) + total(row.steps.errors) > 0));
    showLimits(limits);
    showMinutes(byMinute(history, all));
  }
}

function rows(series, length) {
  return Object.entries(series).map(([name, decisions]) => ({ name, steps: steps(decisions, length) }));
}

function sentence(all, values, at, seconds) {
  const peak = Math.max(...values, 0);
  if (peak === 0) return "none in this time.";
  return `${number(total(all))} in this time, ${number(lastMinute(all))} in the last minute; most ${number(peak)} in ${seconds} s, at ${at(values.indexOf(peak))}.`;
}

function byMinute(history, all) {
  const begin = new Date(history.from).getTime();
  const sums = new Map();
  all.passed.forEach((_, index) => {
    const time = clock(begin + index * history.step_seconds * 1000).slice(0, 5);
    const sum = sums.get(time) ?? { time, passed: 0, denied: 0, errors: 0, signedIn: 0, failed: 0 };
    for (const name of ["passed", "denied", "errors", "signedIn", "failed"]) sum[name] += all[name][index];
    sums.set(time, sum);
  });
  return [...sums.values()].reverse();
}

function columns(title, isRoute) {
  const sum = (name, of, heading) => ({ title: heading, numeric: true, text: (row) => number(of(row.steps[name])) });
  return [
    { title, text: (row) => (row.name === "-" ? "on no route" : row.name), class: "name" },
    sum("passed", lastMinute, "Passed, last minute"),
    sum("denied", lastMinute, "Denied, last minute"),
    sum("passed", total, "Passed, this time"),
    sum("denied", total, "Denied, this time"),
    ...(isRoute ? [sum("signedIn", total, "Signed in"), sum("failed", total, "Failed to"), sum("errors", total, "Errors")] : []),
    { title: "Over time", class: "spark", text: (row) => JSON.stringify([row.steps.passed, row.steps.denied]), node: small },
  ];
}

function small(row) {
  const passed = grouped(row.steps.passed, SMALL_BARS).values;
  const denied = grouped(row.steps.denied, SMALL_BARS).values;
  const sums = passed.map((value, index) => value + denied[index]);
  const label = `${counted(total(passed), "passed", "passed")}, ${number(total(denied))} denied in this time`;
  // Denied in front of both together: what is left visible behind is what passed.
  return bars([{ kind: "passed", values: sums }, { kind: "denied", values: denied }], Math.max(...sums, 0), label);
}

