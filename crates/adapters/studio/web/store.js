// What the page knows, and when it is drawn again.

import { messageOf } from "./api.js";

/**
 * @typedef {"pages" | "fields" | "responses" | "run" | "definition"} Tab
 */

export const ui = {
  /** @type {import("./api.js").State | null} */ state: null,
  /** @type {"connecting" | "connected" | "lost" | "ended"} */ connection: "connecting",
  /** @type {Tab} */ tab: "pages",
  /** Requests that are under way, by the control that began them. @type {Set<string>} */ busy: new Set(),
  /** Messages of requests that failed, by the control that began them. @type {Map<string, string>} */ errors: new Map(),
};

let draw = () => {};
let scheduled = false;
/** @type {string | null} */
let focusNext = null;
/** Whether a drawing has lacked the element that gets the focus. */
let isLate = false;
/** Until when it may appear. */
let focusUntil = 0;
/** The state with what was changed may arrive after the answer to the change, in milliseconds. */
const MAX_LATENESS = 3000;

/** @param {() => void} callback */
export const onUpdate = (callback) => {
  draw = callback;
};

/** Draws the page once, after the changes of this task. */
export const update = () => {
  if (scheduled) return;
  scheduled = true;
  queueMicrotask(() => {
    scheduled = false;
    draw();
    if (focusNext === null) return;
    const target = document.getElementById(focusNext);
    const isWanted = performance.now() < focusUntil && (!isLate || document.activeElement === document.body);
    if (target === null && isWanted) {
      isLate = true;
      return;
    }
    focusNext = null;
    if (isWanted) target?.focus();
  });
};

/**
 * Moves the focus to an element that the next drawing shows, or a later one within three seconds, unless the author has moved it elsewhere until then.
 * @param {string} id
 */
export const focusLater = (id) => {
  focusNext = id;
  isLate = false;
  focusUntil = performance.now() + MAX_LATENESS;
  update();
};

/**
 * Does the work of a control. Returns whether it succeeded; if it failed, the message is kept for the place beside the control.
 * @param {string} key
 * @param {() => Promise<unknown>} work
 */
export const act = async (key, work) => {
  if (ui.busy.has(key)) return false;
  ui.busy.add(key);
  ui.errors.delete(key);
  update();
  try {
    await work();
    return true;
  } catch (error) {
    ui.errors.set(key, messageOf(error));
    return false;
  } finally {
    ui.busy.delete(key);
    update();
  }
};

/** Tells users of a screen reader, and shows it for a moment. @param {string} text */
export const announce = (text) => {
  const region = /** @type {HTMLElement} */ (document.getElementById("announcements"));
  region.textContent = "";
  region.classList.remove("hidden");
  // The region has to be empty first for the same text to be read again.
  setTimeout(() => (region.textContent = text), 50);
  clearTimeout(hideAnnouncement);
  hideAnnouncement = setTimeout(() => region.classList.add("hidden"), ANNOUNCEMENT_TIME);
};
const ANNOUNCEMENT_TIME = 6000;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let hideAnnouncement;
