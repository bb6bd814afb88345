// Sections that have nothing to show fold to one line, and unfold on demand.

import { button, byId, setText } from "./dom.js";

// Returns a function that says whether the section is quiet. Its list stays in the line: the sentence that says so. The
// section stays open while the focus is in it.
export function foldable(id) {
  const section = byId(id);
  const name = section.querySelector("h2").textContent;
  let wanted = null;
  let isQuiet = false;
  const toggle = button("", () => {
    wanted = section.classList.contains("folded");
    show();
  }, { class: "fold" });
  byId(`${id}-list`).classList.add("kept");
  section.append(toggle);
  show();

  function show() {
    const isFolded = isQuiet && !wanted;
    section.classList.toggle("folded", isFolded);
    // Where there is nothing to set, there is nothing to open.
    toggle.hidden = !isQuiet || section.querySelector("label") === null;
    setText(toggle, isFolded ? "Open" : "Fold");
    toggle.setAttribute("aria-expanded", String(!isFolded));
    toggle.setAttribute("aria-label", `${toggle.textContent}: ${name}`);
  }

  return (now) => {
    if (!now) wanted = null;
    isQuiet = now && (isQuiet || !section.contains(document.activeElement));
    show();
  };
}
