// What passed, failed and was denied over time, and what happened meanwhile.

import { chart } from "./chart.js";
import { grouped, lastMinute, SERIES, total } from "./history.js";
import { byId, clock, count, element, filtered, missingText, number, setNote, setText, table } from "./tools.js";

// Bars of the chart, at most, and of how many steps each may be.
const MAX_BARS = 90;
const SIZES = [1, 3, 6, 12, 30, 60, 90, 180];
// The shortest time that is shown, in steps: five minutes.
const FEWEST = 30;
const FIGURES = { passed: "Passed", denied: "Denied", signedIn: "Signed in", failed: "Failed" };

// Returns functions: one that shows counts and what happened, and one that shows none until they are there.
export function traffic() {
  const root = byId("chart");
  const sentence = element("figcaption.quiet");
  root.append(sentence);
  const picture = chart(root, "Requests over time");
  const figures = Object.entries(FIGURES).map(([name, title]) => figure(name, title));
  byId("figures").replaceChildren(...figures.map((one) => one.node));
  const showMinutes = table(byId("by-minute"), {
    label: "Requests by minute", keyOf: (row) => row.time, empty: "Nothing was counted.",
    columns: [
      { title: "From", text: (row) => row.time },
      ...Object.entries({ ...FIGURES, errors: "Errors" }).map(([name, title]) => count(title, (row) => row[name])),
    ],
  });
  wait();

  function wait() {
    setText(sentence, "Loading…");
    figures.forEach((one) => one.show(null));
    picture.wait();
    showMinutes(null);
    byId("traffic").classList.remove("nothing");
  }

  // `all`: the sums of all gateways, or of the route or limit that is looked at. `past`: bans, reloads and the like.
  function show(history, all, past, listeners) {
    setNote(byId("traffic-missing"), missingText(history.missing));
    const seconds = history.step_seconds;
    const begin = new Date(history.from).getTime();
    const minutes = byId("minutes").selectedOptions[0].textContent;
    figures.forEach((one) => one.show(lastMinute(all[one.name]), total(all[one.name]), minutes));
    showMinutes(byMinute(begin, seconds, all));
    const isNothing = SERIES.every((name) => total(all[name]) === 0);
    byId("traffic").classList.toggle("nothing", isNothing);
    if (isNothing) {
      const what = filtered("route") ?? filtered("limit");
      return setText(sentence, what ? `Nothing was counted of ${what} in this time.` : `No request came in this time. The gateway accepts them at ${listeners.join(", ") || "no address"}.`);
    }
    const marks = past.map(markOf).filter((mark) => mark !== null);
    for (const sign of byId("legend").children) sign.hidden = !marks.some(({ kind }) => kind === sign.dataset.kind);
    const first = firstStep(all, begin, seconds, marks);
    const size = SIZES.find((one) => (all.passed.length - first) / one <= MAX_BARS) ?? SIZES.at(-1);
    // The last bar ends now, so that it is as long as the others.
    const ahead = (size - ((all.passed.length - first) % size)) % size;
    const sums = Object.fromEntries(SERIES.map((name) => [name, grouped(all[name].slice(first), size, ahead)]));
    const start = begin + (first - ahead) * seconds * 1000;
    const times = sums.passed.map((_, index) => start + index * size * seconds * 1000);
    picture.show({
      times, seconds: size * seconds, marks,
      layers: [
        { kind: "passed", values: sums.passed.map((value, index) => Math.max(0, value - sums.failed[index])) },
        { kind: "failed", values: sums.failed }, { kind: "denied", values: sums.denied },
      ],
      tip: (index) => tip(index, times, size * seconds, sums, marks),
    });
    setText(sentence, sentenceOf(all, sums, times, size * seconds));
  }

  return { show, wait };
}

// A number of the last minute, and below it that of the chosen time.
function figure(name, title) {
  const now = element("b");
  const then = element("span.quiet");
  const swatch = name === "signedIn" ? null : element("i", { class: `swatch ${name}`, "aria-hidden": "true" });
  const node = element("div.figure", { id: `figure-${name}` }, element("span", swatch, title), now, then);
  return { name, node, show(lately, all, minutes) {
    node.classList.toggle("loading", lately === null);
    setText(now, lately === null ? "" : number(lately));
    setText(then, lately === null ? "" : `${number(all)} in ${minutes}`);
  } };
}

// The axis begins where something was counted or happened.
function firstStep(all, begin, seconds, marks) {
  const counted = SERIES.map((name) => all[name].findIndex((value) => value > 0));
  const happened = marks.map((mark) => Math.floor((mark.at - begin) / 1000 / seconds));
  const steps = [...counted, ...happened].filter((step) => step >= 0);
  return Math.max(0, Math.min(...steps, all.passed.length - FEWEST));
}

function markOf({ event, time, limit, key, address, reason, account, client, route }) {
  const at = new Date(time).getTime();
  const isLockdown = !address && limit && Object.keys(key ?? {}).length === 0;
  if (event === "ban") return { at, kind: isLockdown ? "lockdown" : "ban", text: isLockdown ? `${route ?? limit} locked` : `ban of ${address ?? Object.values(key ?? {}).join(" ")}` };
  if (event === "reload") return { at, kind: "reload", text: reason ? `reload: ${reason}` : "reload" };
  if (event === "signed_in_after_failures") return { at, kind: "entered", text: `${account} signed in from ${client}` };
  return null;
}

function tip(index, times, seconds, sums, marks) {
  const end = times[index] + seconds * 1000;
  const until = index === times.length - 1 ? "now" : clock(end);
  const line = (name, title) => ({ kind: name, name: title, text: number(sums[name][index]) });
  const here = marks.filter(({ at }) => at >= times[index] && at < end).map(({ text }) => text);
  const more = here.length > 2 ? [`and ${here.length - 2} more`] : [];
  return [
    { name: `${clock(times[index])} to ${until}`, text: "" },
    line("denied", "Denied"), line("passed", "Passed"), line("failed", "of them failed"),
    ...[...here.slice(0, 2), ...more].map((name) => ({ name, text: "" })),
  ];
}

function sentenceOf(all, sums, times, seconds) {
  const tops = sums.passed.map((value, index) => value + sums.denied[index]);
  const peak = Math.max(...tops);
  const failed = total(all.failed) > 0 ? `, ${number(total(all.failed))} of them failed to sign in` : "";
  return `${number(total(all.passed))} passed${failed}, ${number(total(all.denied))} denied in this time; most ${number(peak)} in ${seconds < 60 ? `${seconds} s` : `${seconds / 60} min`}, at ${clock(times[tops.indexOf(peak)])}.`;
}

function byMinute(begin, seconds, all) {
  const size = 60 / seconds;
  const ahead = Math.floor(begin / 1000 / seconds) % size;
  const sums = SERIES.map((name) => [name, grouped(all[name], size, ahead)]);
  const time = (index) => clock(begin + (index * size - ahead) * seconds * 1000).slice(0, 5);
  return sums[0][1].map((_, index) => ({ time: time(index), ...Object.fromEntries(sums.map(([name, values]) => [name, values[index]])) })).reverse();
}
