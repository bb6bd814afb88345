// The dashboard: asks the gateway every ten seconds and whenever an event says that something changed.

import { attacks } from "./attacks.js";
import { bans } from "./bans.js";
import { config } from "./config.js";
import { isGone, onContact, probe } from "./contact.js";
import { events } from "./events.js";
import { keys } from "./keys.js";
import { done, entered } from "./lately.js";
import { requests } from "./requests.js";
import { startSession } from "./session.js";
import { advice, status } from "./status.js";
import { byId, clock, get, NoAnswer, onFilter, Problem, say, setText, withQuery } from "./tools.js";
import { top } from "./top.js";
import { traffic } from "./traffic.js";
import { verdict } from "./verdict.js";
import { where } from "./where.js";

const REFRESH_MS = 10_000;
// An attack has thousands of events a second; the page asks no more often than this because of them.
const SOON_MS = 2_000;

// What happened is shown for an hour at least.
const PAST_MINUTES = 60;

const { show: showVerdict, showGone, showUnknown } = verdict();
const { show: showTraffic, wait: waitForTraffic } = traffic();
const wherePanel = where();
const loadStatus = status();
const showAdvice = advice();
const banPanel = bans(() => refresh());
const keyPanel = keys((ban) => banPanel.prepare(ban));
const leads = {
  changed: () => refresh(),
  bans: banPanel,
  prepareBan: (ban) => banPanel.prepare(ban),
  prepareKey: (key) => keyPanel.prepare(key),
};
const showEntered = entered(banPanel);
const loadAttacks = attacks(banPanel);
const showDone = done(banPanel);
const topPanel = top(leads);
const requestPanel = requests(leads);
config(() => refresh());
const stream = events({ happened: refreshSoon, broken: () => setTimeout(probe, 200) });

for (const heading of document.querySelectorAll("section h2")) heading.closest("section").setAttribute("aria-labelledby", heading.id);

let isOpen = false;
let isFiltered = false;
let isAsking = false;
let isDue = false;
let timer = 0;
let soon = 0;

async function refresh() {
  clearTimeout(timer);
  clearTimeout(soon);
  soon = 0;
  // What changed while the answers are on their way is asked for again.
  isDue = isAsking;
  if (!isOpen || isGone() || isAsking) return;
  isAsking = true;
  try {
    if (!stream.isOpen()) stream.open();
    // First, so that none of the others asks for a limit that was removed.
    const configured = await keyPanel.load();
    for (const panel of [banPanel, topPanel, requestPanel, wherePanel]) panel.setLimits(configured);
    if (isFiltered) for (const panel of [topPanel, requestPanel]) panel.filter();
    isFiltered = false;
    // First too: what is banned already is shown beside those whom one could ban.
    const banned = await banPanel.load();
    const minutes = Math.max(PAST_MINUTES, byId("minutes").value);
    const [{ history, all, signIns, isCurrent }, now, past, attacked] = await Promise.all([
      wherePanel.load(), loadStatus(), get(withQuery("events/recent", { minutes })),
      loadAttacks(), topPanel.load(), requestPanel.load(),
    ]);
    // Another answer failed to arrive meanwhile, or the session has ended.
    if (!isOpen || isGone()) return;
    if (isCurrent) showTraffic(history, all, past, now.listeners);
    const hour = past.filter((one) => Date.now() - new Date(one.time) < PAST_MINUTES * 60_000);
    showEntered(hour, attacked, signIns > 0 || minutes > byId("minutes").value);
    showDone(banned, hour);
    showVerdict(now.verdict);
    showAdvice(now.advice);
    setText(byId("updated"), `as of ${clock(new Date())} UTC`);
  } catch (error) {
    if (!(error instanceof NoAnswer || (error instanceof Problem && error.status === 401))) say(`${error.message}.`);
  } finally {
    isAsking = false;
    timer = setTimeout(refresh, isDue ? 0 : REFRESH_MS);
  }
}

function refreshSoon() {
  if (soon === 0) soon = setTimeout(refresh, SOON_MS);
}

byId("minutes").addEventListener("change", () => {
  waitForTraffic();
  wherePanel.wait();
  refresh();
});
onFilter(() => {
  isFiltered = true;
  stream.draw();
  refresh();
});

const checkSession = startSession({
  open() {
    isOpen = true;
    refresh();
  },
  closed() {
    isOpen = false;
    stream.close();
    if (!isGone()) showUnknown();
    setText(byId("updated"), "");
  },
});

onContact({
  gone: showGone,
  // A gateway that started again does not know the session any more, nor who listened to its events.
  back() {
    showUnknown();
    stream.close();
    checkSession().catch(refreshSoon);
  },
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) refresh();
});
checkSession().catch(() => {});
