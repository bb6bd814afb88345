// Numbers, times and keys as text. Times are in UTC, as in the logs.

const NUMBERS = new Intl.NumberFormat("en");

export const number = (value) => NUMBERS.format(value);

// `3 requests`, `1 request`.
export const counted = (value, singular, plural = `${singular}s`) => `${number(value)} ${value === 1 ? singular : plural}`;

// `14:02:11`, of a Date or a text in RFC 3339.
export const clock = (time) => new Date(time).toISOString().slice(11, 19);

// `14:02:11`, with the date where that is not today.
export function moment(time) {
  const text = new Date(time).toISOString();
  const today = new Date().toISOString().slice(0, 10);
  return text.startsWith(today) ? text.slice(11, 19) : `${text.slice(0, 10)} ${text.slice(11, 19)}`;
}

// `45 s`, `12 min`, `3 h`, `2 days`, of seconds.
export function span(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 100) return `${whole} s`;
  if (whole < 100 * 60) return `${Math.round(whole / 60)} min`;
  if (whole < 48 * 3600) return `${Math.round(whole / 3600)} h`;
  return `${Math.round(whole / 86400)} days`;
}

// `in 12 min`.
export const fromNow = (time) => `in ${span((new Date(time) - Date.now()) / 1000)}`;

// Which gateways do not answer; empty: all do.
export function missingText(ids) {
  if (ids.length === 0) return "";
  const [verb, their] = ids.length === 1 ? ["does", "it"] : ["do", "they"];
  return `${ids.join(", ")} ${verb} not answer: what ${their} counted last is not shown.`;
}

// Whether what is shown of a key does not name it: a value is a mask, or it was cut.
export function isHidden(key) {
  return Object.values(key ?? {}).some((value) => /^.?\*\*\*[0-9a-f]*$/u.test(value) || value.endsWith("…"));
}

// `signed_in` as a title: `Signed in`.
export const titled = (word) => word[0].toUpperCase() + word.slice(1).replace("_", " ");

// Equal things are one: the first of them, with their number.
export const together = (things, keyOf) => [...Map.groupBy(things, keyOf).values()].map((equal) => ({ ...equal[0], count: equal.length, equal }));

// `client_ip 198.51.100.7, param.username alice`.
export function keyText(key) {
  const parts = Object.entries(key ?? {}).map(([selector, value]) => `${selector} ${value === "" ? "(empty)" : value}`);
  return parts.length === 0 ? "all requests" : parts.join(", ");
}
