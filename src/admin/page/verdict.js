// Whether the gateway is well, in one sentence and one sign, and the facts that say so.

import { bold, byId, clock, element, setText, titled } from "./tools.js";

const SIGNS = { well: "✓", look: "!", bad: "✕" };
// The levels of the gateway's verdict, as the page colours them.
const LEVELS = { well: "well", notice: "look", attack: "bad", trouble: "bad" };
// Beside that, trouble has a colour of its own.
const classOf = (word) => (word === "trouble" ? "bad trouble" : LEVELS[word]);
const WORDS = { well: "well", notice: "look at this", attack: "under attack", trouble: "trouble" };

// Returns functions that show what the facts say, that the gateway does not answer, and that it has not told yet how it is.
export function verdict() {
  let heard = "";
  let latest = null;

  // `isHeard`: whether those who listen to the page hear the sentence.
  function write({ level, sign, text, title, isHeard }, facts) {
    const section = byId("verdict");
    if (section.className !== level) section.className = level;
    setText(byId("verdict-sign"), sign);
    const sentence = byId("verdict-sentence");
    sentence.setAttribute("aria-live", isHeard ? "polite" : "off");
    setText(sentence, text);
    document.title = title;
    byId("facts").replaceChildren(...facts);
  }

  function show({ level: word, sentence: text, parts }) {
    const level = LEVELS[word];
    const told = parts.filter((part) => text.includes(part.sentence));
    // The numbers change every ten seconds. Listeners hear a verdict once.
    const words = text.replace(/[\d,]+/g, "");
    const title = `${SIGNS[level]} ${WORDS[word]}: portcullis`;
    const facts = parts.filter((part) => !told.includes(part)).map(({ about, level: of, sentence }) => ({ name: titled(about), level: LEVELS[of], text: sentence }));
    write({ level: classOf(word), sign: SIGNS[level], text, title, isHeard: words !== heard }, facts.map(line));
    heard = words;
    latest = { text, time: new Date() };
    document.body.classList.remove("stale");
  }

  // The notice above is heard, and says the same.
  function showGone(since) {
    const text = `The gateway has not answered since ${clock(since)} UTC.`;
    const before = latest === null ? [] : [element("li.quiet", `Before, at ${clock(latest.time)} UTC: ${latest.text}`)];
    write({ level: "bad trouble", sign: SIGNS.bad, text, title: `${SIGNS.bad} no answer: portcullis`, isHeard: false }, before);
    heard = "";
    document.body.classList.add("stale");
  }

  // What the page shows is older, until the gateway has answered.
  function showUnknown() {
    write({ level: "", sign: "", text: "Asking the gateway…", title: "portcullis", isHeard: false }, []);
    document.body.classList.add("stale");
  }

  return { show, showGone, showUnknown };
}

const line = (fact) => element("li", { class: fact.level },
  element("span.sign", { "aria-hidden": "true" }, SIGNS[fact.level]), " ", bold(fact.name), " ", fact.text);
