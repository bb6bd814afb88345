// Sums of the history: what passed, was denied, failed, in steps.

export const SERIES = ["passed", "denied", "errors", "signedIn", "failed"];

const WORDS = {
  passed: ["allowed", "delayed"],
  denied: ["denied", "banned", "listed", "tarpitted", "challenged"],
  errors: ["error"],
  signedIn: ["success"],
  failed: ["failure"],
};

// Of the decisions and outcomes of one route or limit: each series by its name.
export function steps(decisions, length) {
  return Object.fromEntries(SERIES.map((name) => [name, sumOf(WORDS[name].map((word) => decisions[word] ?? []), length)]));
}

// Several of them together.
export function together(all, length) {
  return Object.fromEntries(SERIES.map((name) => [name, sumOf(all.map((one) => one[name]), length)]));
}

export const total = (values) => values.reduce((sum, value) => sum + value, 0);

// The last six steps: up to a minute.
export const lastMinute = (values) => total(values.slice(-6));

// The sums of each `size` values; `ahead` of the first are missing.
export function grouped(values, size, ahead = 0) {
  const groups = new Array(Math.ceil((values.length + ahead) / size)).fill(0);
  values.forEach((value, index) => (groups[Math.floor((index + ahead) / size)] += value));
  return groups;
}

function sumOf(lists, length) {
  const sums = new Array(length).fill(0);
  for (const list of lists) list.forEach((value, index) => (sums[index] += value));
  return sums;
}
