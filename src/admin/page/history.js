// Sums of the history: what passed and what was denied, in steps.

const PASSED = ["allowed", "delayed"];
const DENIED = ["denied", "banned", "listed", "tarpitted", "challenged"];
const ERRORS = ["error"];
const SIGNED_IN = ["success"];
const FAILED = ["failure"];

// Of the decisions of one route or limit: {passed: [..], denied: [..], errors: [..]}, and of the outcomes of a route
// {signedIn: [..], failed: [..]}.
export function steps(decisions, length) {
  const add = (words) => sumOf(words.map((word) => decisions[word] ?? []), length);
  return { passed: add(PASSED), denied: add(DENIED), errors: add(ERRORS), signedIn: add(SIGNED_IN), failed: add(FAILED) };
}

// Several of them together.
export function together(all, length) {
  const add = (name) => sumOf(all.map((one) => one[name]), length);
  return Object.fromEntries(["passed", "denied", "errors", "signedIn", "failed"].map((name) => [name, add(name)]));
}

export const total = (values) => values.reduce((sum, value) => sum + value, 0);

// The last six steps: up to a minute.
export const lastMinute = (values) => total(values.slice(-6));

// At most `most` values, each the sum of as many steps.
export function grouped(values, most) {
  const size = Math.max(1, Math.ceil(values.length / most));
  const groups = [];
  for (let end = values.length; end > 0; end -= size) groups.unshift(total(values.slice(Math.max(0, end - size), end)));
  return { values: groups, size };
}

function sumOf(lists, length) {
  const sums = new Array(length).fill(0);
  for (const list of lists) list.forEach((value, index) => (sums[index] += value));
  return sums;
}
