// A list with levels that works with the keyboard (ARIA tree pattern). Only one row is in the tab order; the arrow keys move between rows.

import { create, h, render } from "./dom.js";

/**
 * @typedef {{id: string, level: number, content: import("./dom.js").Children, expanded?: boolean}} Row
 */

/**
 * @param {{label: string, onChoose: (id: string) => void, onToggle?: (id: string) => void, onActive?: (id: string | null) => void}} options
 *   `onChoose` is for rows without children inside them, or with; `onToggle` for rows that have `expanded`.
 */
export const createTree = ({ label, onChoose, onToggle, onActive }) => {
  /** @type {Row[]} */
  let rows = [];
  /** @type {Map<string, number>} */
  let places = new Map();
  /** @type {string | null} */
  let current = null;
  /** @type {string | null} */
  let chosen = null;
  const element = create(h("div", { role: "tree", "aria-label": label, class: "tree" }));

  /** @param {string | null} id @returns {HTMLElement | null} */
  const rowElement = (id) => {
    const place = id === null ? undefined : places.get(id);
    return place === undefined ? null : /** @type {HTMLElement | null} */ (element.children.item(place));
  };
  const draw = () => {
    const first = current !== null && places.has(current) ? current : rows[0]?.id;
    current = first ?? null;
    render(
      element,
      rows.map((row) =>
        h(
          "div",
          {
            key: row.id,
            role: "treeitem",
            "data-row": row.id,
            "aria-level": row.level,
            "aria-expanded": row.expanded,
            "aria-selected": row.id === chosen,
            tabindex: row.id === current ? "0" : "-1",
            style: { "--level": Math.min(row.level - 1, MAX_INDENT) },
          },
          row.content,
        ),
      ),
    );
  };
  /** @param {string} id */
  const move = (id) => {
    rowElement(current)?.setAttribute("tabindex", "-1");
    current = id;
    const next = rowElement(id);
    next?.setAttribute("tabindex", "0");
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
  };
  /** @param {string} id */
  const use = (id) => {
    const row = rows[places.get(id) ?? -1];
    if (row?.expanded === undefined || !onToggle) onChoose(id);
    else onToggle(id);
  };
  /** @param {Event} event @returns {string | null} */
  const idOf = (event) => /** @type {Element} */ (event.target).closest("[data-row]")?.getAttribute("data-row") ?? null;

  element.addEventListener("keydown", (event) => {
    if (current === null || event.altKey || event.ctrlKey || event.metaKey) return;
    const place = places.get(current) ?? 0;
    const row = rows[place];
    if (!row) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      use(current);
      return;
    }
    if ((event.key === "ArrowRight" && row.expanded === false) || (event.key === "ArrowLeft" && row.expanded === true)) {
      event.preventDefault();
      onToggle?.(current);
      return;
    }
    const next = rows[place + 1];
    const target = {
      ArrowDown: next,
      ArrowUp: rows[place - 1],
      Home: rows[0],
      End: rows[rows.length - 1],
      ArrowRight: next && next.level > row.level ? next : undefined,
      ArrowLeft: rows.slice(0, place).findLast((candidate) => candidate.level < row.level),
    }[event.key];
    if (["ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) event.preventDefault();
    if (target) move(target.id);
  });
  element.addEventListener("click", (event) => {
    const id = idOf(event);
    if (id === null) return;
    move(id);
    use(id);
  });
  element.addEventListener("focusin", (event) => onActive?.(idOf(event)));
  element.addEventListener("pointerover", (event) => onActive?.(idOf(event)));
  element.addEventListener("pointerleave", () => onActive?.(null));

  return {
    element,
    /** @param {Row[]} next */
    show(next) {
      rows = next;
      places = new Map(rows.map((row, place) => [row.id, place]));
      element.hidden = rows.length === 0;
      draw();
    },
    /** Marks a row as the chosen one, and shows it. @param {string | null} id */
    choose(id) {
      rowElement(chosen)?.setAttribute("aria-selected", "false");
      chosen = id;
      const row = rowElement(id);
      if (!row || id === null) return;
      row.setAttribute("aria-selected", "true");
      rowElement(current)?.setAttribute("tabindex", "-1");
      current = id;
      row.setAttribute("tabindex", "0");
      // Only the tree is scrolled, not the page around it.
      const top = row.offsetTop - element.offsetTop;
      if (top < element.scrollTop || top + row.offsetHeight > element.scrollTop + element.clientHeight) element.scrollTop = top - element.clientHeight / 3;
    },
  };
};

/** Deeper levels are not moved further to the right, where they would not be read. */
const MAX_INDENT = 24;
