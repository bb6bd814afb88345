// Where it happens: by route and by limit. The history is asked for here, for all that counts from it.

import { bars } from "./chart.js";
import { grouped, lastMinute, steps, together, total } from "./history.js";
import { byId, count, counted, filtered, get, HIDDEN, number, table, value, withQuery } from "./tools.js";

const SMALL_BARS = 60;
const FEW = 8;
// More rows than this that count nothing are one row.
const MOST_SILENT = 3;

export function where() {
  let configured = [];
  const showRoutes = table(byId("routes"), {
    label: "Requests by route", columns: columns("Route", "route"), keyOf: (row) => row.name, few: FEW, empty: "No route is configured.",
  });
  const showLimits = table(byId("limits"), {
    label: "Decisions by limit", columns: columns("Limit", "limit"), keyOf: (row) => row.name, few: FEW,
    empty: "No limit is configured: everything passes.",
  });

  function wait() {
    for (const show of [showRoutes, showLimits]) show(null);
  }

  // Asks; answers the history, the sums of all, or of the route or limit that is looked at, and how many sign-ins there were.
  async function load() {
    const minutes = byId("minutes").value;
    const history = await get(withQuery("history", { minutes }));
    const length = Math.max(0, ...Object.values(history.routes).flatMap(Object.values).map((values) => values.length));
    const routes = rows(history.routes, length);
    const limits = rows(history.limits, length);
    const isCurrent = minutes === byId("minutes").value;
    if (isCurrent) show(routes, limits);
    const sumOf = (rows) => together(rows.map((row) => row.steps), length);
    return { history, all: sumOf(lookedAt(routes, limits)), signIns: total(sumOf(routes).signedIn) + total(sumOf(routes).failed), isCurrent };
  }

  function lookedAt(routes, limits) {
    if (filtered("route")) return routes.filter((row) => row.name === filtered("route"));
    if (filtered("limit")) return limits.filter((row) => row.name === filtered("limit"));
    return routes;
  }

  function show(routes, limits) {
    const [route, limit] = [filtered("route"), filtered("limit")];
    const meets = (name, of) => configured.some((one) => one.name === name && (one.everywhere || one.routes.includes(of)));
    showRoutes(busiestFirst(routes.filter((row) => (row.name !== "-" || isBusy(row)) && (!route || row.name === route) && (!limit || meets(limit, row.name)))), route || limit ? HIDDEN : undefined);
    showLimits(busiestFirst(limits.filter((row) => (!limit || row.name === limit) && (!route || meets(row.name, route)))), route || limit ? HIDDEN : undefined);
  }

  return { load, wait, setLimits: (now) => (configured = now) };
}

const isBusy = (row) => Object.values(row.steps).some((values) => total(values) > 0);

// Those that denied most, then those that passed most. Rows that count nothing are equal: they become one, with their number.
function busiestFirst(all) {
  const silent = all.filter((row) => !isBusy(row));
  const shown = silent.length > MOST_SILENT ? all.filter(isBusy) : [...all];
  shown.sort((one, other) => total(other.steps.denied) - total(one.steps.denied) || total(other.steps.passed) - total(one.steps.passed));
  if (silent.length > MOST_SILENT) shown.push({ ...silent[0], name: `${silent.length} others`, title: silent.map((row) => row.name).join(", "), isMany: true });
  return shown;
}

const rows = (series, length) => Object.entries(series).map(([name, decisions]) => ({ name, steps: steps(decisions, length) }));

function columns(title, kind) {
  const sum = (name, of, heading) => count(heading, (row) => of(row.steps[name]));
  const nameOf = (row) => (row.name === "-" ? "on no route" : row.name);
  return [
    { title, text: nameOf, class: "name", node: (row) => (row.name === "-" || row.isMany ? nameOf(row) : value(kind, row.name)) },
    sum("passed", lastMinute, "Passed, last minute"),
    sum("denied", lastMinute, "Denied, last minute"),
    sum("passed", total, "Passed, this time"),
    sum("denied", total, "Denied, this time"),
    ...(kind === "route" ? [sum("signedIn", total, "Signed in"), sum("failed", total, "Failed"), sum("errors", total, "Errors")] : []),
    { title: "Over time", class: "spark", text: (row) => JSON.stringify([row.steps.passed, row.steps.denied]), node: small },
  ];
}

function small(row) {
  const size = Math.max(1, Math.ceil(row.steps.passed.length / SMALL_BARS));
  const passed = grouped(row.steps.passed, size);
  const denied = grouped(row.steps.denied, size);
  const sums = passed.map((count, index) => count + denied[index]);
  const label = `${counted(total(passed), "passed", "passed")}, ${number(total(denied))} denied in this time`;
  // Denied in front of both together: what is left visible behind is what passed.
  return bars([{ kind: "passed", values: sums }, { kind: "denied", values: denied }], Math.max(...sums, 0), label);
}
