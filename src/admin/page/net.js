// Addresses and networks: which one lies within another.

// {bits, prefix, value} of an address or a network; null of anything else.
function parsed(text) {
  const [address, prefix] = String(text).split("/");
  const groups = address.includes(":") ? ofIpv6(address) : ofIpv4(address);
  if (groups === null) return null;
  const [width, bits] = groups.length === 4 ? [8n, 32] : [16n, 128];
  const value = groups.reduce((sum, group) => (sum << width) | BigInt(group), 0n);
  return { bits, prefix: prefix === undefined ? bits : Number(prefix), value };
}

function ofIpv4(text) {
  const parts = text.split(".");
  return parts.length === 4 && parts.every((part) => /^\d{1,3}$/.test(part)) ? parts.map(Number) : null;
}

function ofIpv6(text) {
  if (!/^[\da-f:]+$/i.test(text)) return null;
  const [head, tail] = text.split("::").map((half) => half.split(":").filter((group) => group !== "").map((group) => parseInt(group, 16)));
  const zeros = tail === undefined ? 0 : 8 - head.length - tail.length;
  const groups = [...head, ...new Array(Math.max(0, zeros)).fill(0), ...(tail ?? [])];
  return groups.length === 8 ? groups : null;
}

// Whether all of `inner` lies in `outer`.
export function covers(outer, inner) {
  const [one, other] = [parsed(outer), parsed(inner)];
  if (one === null || other === null || one.bits !== other.bits || one.prefix > other.prefix) return false;
  const rest = BigInt(one.bits - one.prefix);
  return one.value >> rest === other.value >> rest;
}

// Whether one lies in the other.
export const overlap = (one, other) => covers(one, other) || covers(other, one);
