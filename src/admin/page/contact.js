// Whether the gateway answers. While it does not, the page says since when, and tries again.

import { say } from "./ask.js";
import { byId } from "./dom.js";
import { clock } from "./format.js";

const RETRY_MS = 2000;

let goneSince = null;
let listeners = { gone() {}, back() {} };

// `gone(since)` is called each time the gateway stops answering, and `back` each time it answers again.
export function onContact({ gone, back }) {
  listeners = { gone, back };
}

export function isGone() {
  return goneSince !== null;
}

// An answer arrived.
export function reached() {
  if (goneSince === null) return;
  const text = `The gateway answers again. It was gone from ${clock(goneSince)} to ${clock(new Date())} UTC.`;
  goneSince = null;
  byId("gone").hidden = true;
  say(text);
  listeners.back();
}

// No answer arrived.
export function lost() {
  if (goneSince !== null) return;
  goneSince = new Date();
  const gone = byId("gone");
  gone.hidden = false;
  gone.textContent = `The gateway has not answered since ${clock(goneSince)} UTC. What stands below is older. Trying again every 2 seconds.`;
  listeners.gone(goneSince);
  setTimeout(probe, RETRY_MS);
}

// Asks whether the gateway answers.
export async function probe() {
  try {
    await fetch("/healthz", { cache: "no-store", signal: AbortSignal.timeout(RETRY_MS) });
    reached();
  } catch {
    if (goneSince === null) lost();
    else setTimeout(probe, RETRY_MS);
  }
}
