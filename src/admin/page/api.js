// Asks the gateway. One place knows how a change proves that it comes from this page, and whether the gateway answers.

import { lost, reached } from "./contact.js";

// An answer that is an error: a problem document of the gateway.
export class Problem extends Error {
  constructor(status, document) {
    super(document.detail ?? `the gateway answered ${status}`);
    this.status = status;
    this.mistakes = document.mistakes ?? [];
  }
}

// No answer: the gateway is gone, or the network to it.
export class NoAnswer extends Error {
  constructor() {
    super("the gateway does not answer");
  }
}

const PATIENCE_MS = 8000;

let csrfToken = null;
let whenClosed = () => {};

export function setCsrfToken(token) {
  csrfToken = token;
}

// `listener` is called when the gateway does not know the session any more.
export function onSessionClosed(listener) {
  whenClosed = listener;
}

export const get = (path) => call("GET", path);
// What several gateways have answered together: {answer, missing}, with the ids of those that did not answer.
export const getOfAll = (path) => call("GET", path, undefined, PATIENCE_MS, "application/json", (answer, headers) => ({
  answer, missing: headers.get("X-Portcullis-Missing")?.split(", ") ?? [],
}));
export const post = (path, body, patience = PATIENCE_MS) => call("POST", path, body, patience);
export const getText = (path) => call("GET", path, undefined, PATIENCE_MS, "application/yaml");
export const remove = (path) => call("DELETE", path);

// The path of a limit's key, or of another parameterised resource.
export const withQuery = (path, parameters) => {
  const text = new URLSearchParams(parameters).toString();
  return text === "" ? path : `${path}?${text}`;
};

async function call(method, path, body, patience = PATIENCE_MS, accept = "application/json", read = (answer) => answer) {
  const headers = { Accept: accept };
  if (csrfToken !== null) headers["X-CSRF-Token"] = csrfToken;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  let text;
  try {
    const signal = AbortSignal.timeout(patience);
    response = await fetch(path.startsWith("/") ? path : `/api/v1/${path}`, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body), cache: "no-store" });
    text = await response.text();
  } catch {
    lost();
    throw new NoAnswer();
  }
  reached();
  if (response.ok && accept !== "application/json") return text;
  const answer = parsed(text);
  if (response.ok) return read(answer, response.headers);
  if (response.status === 401 && path !== "/session") whenClosed();
  throw new Problem(response.status, answer ?? {});
}

function parsed(text) {
  try {
    return text === "" ? null : JSON.parse(text);
  } catch {
    return text;
  }
}
