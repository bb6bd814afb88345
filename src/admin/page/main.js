// The dashboard: asks the gateway every ten seconds and whenever an event says that something changed.

import { advice } from "/page/advice.js";
import { get, NoAnswer, Problem, withQuery } from "/page/api.js";
import { say } from "/page/ask.js";
import { bans } from "/page/bans.js";
import { config } from "/page/config.js";
import { isGone, onContact, probe } from "/page/contact.js";
import { byId, setText } from "/page/dom.js";
import { events } from "/page/events.js";
import { clock } from "/page/format.js";
import { lastMinute } from "/page/history.js";
import { keys } from "/page/keys.js";
import { requests } from "/page/requests.js";
import { startSession } from "/page/session.js";
import { top } from "/page/top.js";
import { traffic } from "/page/traffic.js";
import { status } from "/page/status.js";
import { asideFacts, verdict } from "/page/verdict.js";

const REFRESH_MS = 10_000;
// An attack has thousands of events a second; the page asks no more often than this because of them.
const SOON_MS = 2_000;

const { show: showVerdict, showGone, showUnknown } = verdict();
const loadTraffic = traffic(() => refresh());
const loadStatus = status();
const showAdvice = advice();
const banPanel = bans(() => refresh());
const keyPanel = keys((ban) => banPanel.prepare(ban));
const leads = {
  changed: () => refresh(),
  prepareBan: (ban) => banPanel.prepare(ban),
  prepareKey: (key) => keyPanel.prepare(key),
};
const topPanel = top(leads);
const requestPanel = requests(leads);
config(() => refresh());
const stream = events({ happened: refreshSoon, broken: () => setTimeout(probe, 200) });

let isOpen = false;
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
    for (const panel of [banPanel, topPanel, requestPanel]) panel.setLimits(configured);
    const [{ all, routes }, [busiest], now] = await Promise.all([
      loadTraffic(), get(withQuery("/api/v1/top", { n: 1 })), loadStatus(), banPanel.load(), topPanel.load(), requestPanel.load(),
    ]);
    // Another answer failed to arrive meanwhile, or the session has ended.
    if (!isOpen || isGone()) return;
    const lately = { passed: lastMinute(all.passed), errors: lastMinute(all.errors) };
    showVerdict(now.verdict, asideFacts(now.verdict.level, lately, { routes: mostDenied(routes), busiest }));
    showAdvice(now.advice);
    setText(byId("updated"), `as of ${clock(new Date())} UTC`);
  } catch (error) {
    if (!(error instanceof NoAnswer || (error instanceof Problem && error.status === 401))) say(`${error.message}.`);
  } finally {
    isAsking = false;
    timer = setTimeout(refresh, isDue ? 0 : REFRESH_MS);
  }
}

// What denied in the last minute, the most first.
function mostDenied(rows) {
  const denied = rows.map(({ name, steps }) => ({ name, denied: lastMinute(steps.denied) })).filter((row) => row.denied > 0);
  return denied.sort((one, other) => other.denied - one.denied);
}

function refreshSoon() {
  if (soon === 0) soon = setTimeout(refresh, SOON_MS);
}

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
