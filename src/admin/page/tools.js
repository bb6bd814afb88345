// What every part of the page uses.

export * from "./api.js";
export * from "./ask.js";
export * from "./dom.js";
export * from "./filter.js";
export * from "./fold.js";
export * from "./format.js";
export * from "./table.js";
