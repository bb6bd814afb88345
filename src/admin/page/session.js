// The session of this browser: where a token is configured, a form asks for it once.

import { byId, get, onSessionClosed, post, Problem, remove, setCsrfToken } from "./tools.js";

// Calls `open` each time this browser may use the API, and `closed` when it may not any more.
export function startSession({ open, closed }) {
  const form = byId("session");
  const field = byId("token");
  const error = byId("session-error");

  function show({ needs_token: needsToken, open: isOpen, csrf_token: csrfToken }) {
    setCsrfToken(csrfToken);
    form.hidden = isOpen;
    for (const one of document.querySelectorAll("main, nav")) one.hidden = !isOpen;
    byId("end-session").hidden = !(isOpen && needsToken);
    if (isOpen) return open();
    closed();
    field.focus();
  }

  async function check() {
    show(await get("/session"));
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    error.textContent = "";
    try {
      const session = await post("/session", { token: field.value });
      field.value = "";
      show(session);
    } catch (problem) {
      error.textContent = problem instanceof Problem ? `${problem.message}.` : "The gateway does not answer.";
      field.select();
    }
  });

  byId("end-session").addEventListener("click", async () => {
    await remove("/session").catch(() => {});
    show({ needs_token: true, open: false, csrf_token: null });
  });

  onSessionClosed(() => show({ needs_token: true, open: false, csrf_token: null }));
  return check;
}
