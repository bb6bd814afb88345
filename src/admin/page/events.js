// Live events, equal ones together: ten thousand denials of one client are one line.

import { byId, clock, counted, foldable, HIDDEN, keyText, moment, number, passes, setText, span, table } from "./tools.js";

const KINDS = ["denial", "delay", "ban", "unban", "reload", "signed_in_after_failures"];
const WORDS = { signed_in_after_failures: "signed in" };
const MAX_LINES = 100;
const FEW = 20;
const TOGETHER_MS = 60_000;
const REDRAW_MS = 1000;

// `happened(kind)` is called for each event, `broken` when the stream ended.
export function events({ happened, broken }) {
  let source = null;
  let lines = [];
  // Whether the gateway tells its events: before, nobody knows whether there are any.
  let isHeard = false;
  let isDrawing = false;
  let lost = 0;
  const showRows = table(byId("events-list"), {
    label: "Events", few: FEW, keyOf: (line) => line.number, empty: "Nothing was denied, banned or reloaded at this gateway since this page is open.",
    columns: [
      { title: "Time", class: "time", text: (line) => clock(line.last) },
      { title: "Event", text: (line) => WORDS[line.kind] ?? line.kind },
      { title: "What", class: "name wide", text: sentence },
    ],
  });
  const fold = foldable("events");
  let next = 0;

  function add(kind, event) {
    const same = lines.find((line) => line.same === sameAs(event) && line.last - line.first < TOGETHER_MS);
    const time = new Date(event.time);
    if (same) {
      same.count += 1;
      same.last = time;
      same.event = event;
    } else {
      lines.unshift({ number: next++, kind, event, same: sameAs(event), count: 1, first: time, last: time });
      lines.length = Math.min(lines.length, MAX_LINES);
    }
    draw();
    happened(kind);
  }

  function draw() {
    if (isDrawing || !isHeard) return;
    isDrawing = true;
    setTimeout(() => {
      isDrawing = false;
      const shown = lines.filter((line) => passes(line.event));
      fold(lines.length === 0);
      showRows(shown.toSorted((one, other) => other.last - one.last || other.number - one.number), lines.length > 0 ? HIDDEN : undefined);
      setText(byId("events-state"), `Since this page is open, at this gateway, the newest first.${lost > 0 ? ` ${counted(lost, "event")} came too fast to be shown.` : ""}`);
    }, lines.length < 2 ? 0 : REDRAW_MS);
  }

  function open() {
    close();
    source = new EventSource("/api/v1/events");
    for (const kind of KINDS) source.addEventListener(kind, (message) => add(kind, JSON.parse(message.data)));
    source.addEventListener("lost", (message) => {
      lost += JSON.parse(message.data).lost;
      draw();
    });
    source.addEventListener("open", () => {
      isHeard = true;
      draw();
    });
    // The browser tries again by itself where the connection broke; where it was refused, it stops.
    source.addEventListener("error", () => broken());
  }

  function close() {
    source?.close();
    source = null;
  }

  const isOpen = () => source !== null && source.readyState !== EventSource.CLOSED;
  return { open, close, isOpen, draw };
}

const sameAs = (event) => [event.event, event.decision, event.limit, event.list, event.client, event.address, event.route, event.reason && event.event !== "denial" ? event.reason : ""].join("\n");

function sentence({ event, count, first, last }) {
  const times = count === 1 ? "" : ` ${number(count)} times in ${span(Math.max(1, (last - first) / 1000))}`;
  const whose = event.client ?? event.address ?? (event.key ? keyText(event.key) : "");
  const by = event.limit ? ` by ${event.limit}` : event.list ? ` by the list ${event.list}` : "";
  const where = event.route ? ` on route ${event.route}` : "";
  const until = event.until && event.event === "ban" ? `, until ${moment(event.until)}` : "";
  const reason = event.reason ? `: ${event.reason}` : "";
  if (event.event === "signed_in_after_failures") return `${event.account} signed in after ${counted(event.failures, "failure")} from ${event.client}${where}`;
  if (event.event === "reload") return `configuration${reason}`;
  return `${event.decision ?? event.event} ${whose}${times}${by}${where}${until}${event.event === "denial" ? "" : reason}`;
}
