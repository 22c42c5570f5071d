// The still picture of the page, in which an author selects an element with the pointer or the keyboard.

import { messageOf, post } from "./api.js";
import { selectionCard, selectionOf } from "./card.js";
import { create, h } from "./dom.js";
import { act, focusLater, ui, update } from "./store.js";
import { createTree } from "./tree.js";
import { failure } from "./widgets.js";
import { say, words } from "./words.js";

/**
 * @typedef {import("./api.js").PageNode} PageNode
 * @typedef {{tab: import("./store.js").Tab, use: import("./card.js").Use, pageKind: string, opener: string}} Purpose
 * @typedef {{purpose: Purpose, page: import("./api.js").Inspection, view: ReturnType<typeof createView>, selection: import("./card.js").Selection | null, done: string | null}} Active
 * @type {{active: Active | null, opening: Purpose | null}}
 */
export const inspection = { active: null, opening: null };

const MAX_LISTED = 2000;
/** The time without a key after which the studio is asked what a selector matches, in milliseconds. */
const FIND_AFTER = 200;

/** Takes a picture of the page. `key` is the control that asked for it. @param {string} key @param {Purpose} purpose */
export const startInspection = (key, purpose) => act(key, () => open(purpose));

/**
 * A button that takes a picture of the page to select an element in; the focus returns to it.
 * @param {{id: string, label: string, class?: string, purpose: Omit<Purpose, "opener">, unavailable?: boolean}} options
 */
export const inspectButton = ({ id, label, class: style, purpose, unavailable = false }) => [
  h(
    "button",
    {
      id, type: "button", class: style, "aria-busy": ui.busy.has(id) ? "true" : undefined, "aria-disabled": unavailable || inspection.opening !== null ? "true" : undefined,
      onclick: () => void (unavailable || inspection.opening !== null || startInspection(id, { ...purpose, opener: id })),
    },
    label,
  ),
  failure(id),
];

/** @param {Purpose} purpose */
const open = async (purpose) => {
  inspection.opening = purpose;
  update();
  const isWanted = () => inspection.opening === purpose;
  /** @type {import("./api.js").Inspection} */
  let page;
  try {
    page = await post("inspect");
    // The author has cancelled meanwhile.
    if (!isWanted()) return;
  } catch (error) {
    if (!isWanted()) return;
    throw error;
  } finally {
    if (isWanted()) inspection.opening = null;
  }
  /** @type {Active} */
  const active = { purpose, page, view: createView(page, select), selection: null, done: null };
  inspection.active = active;
  ui.tab = purpose.tab;
  focusLater("picture");
};

/** @param {number} node */
const select = (node) => {
  const { active } = inspection;
  const found = active?.page.nodes.find((candidate) => candidate.node === node);
  if (!active || !found) return;
  const { use, pageKind } = active.purpose;
  active.done = null;
  // An author who selects another element keeps what they were about to do with it.
  active.selection = selectionOf(
    { page: { inspection: active.page.inspection, node } },
    { title: found.label, text: found.text, use: active.selection?.use ?? use, pageKind: active.selection?.pageKind ?? pageKind, url: active.page.url },
  );
  active.view.choose(node);
  ui.tab = active.purpose.tab;
  focusLater("selection-heading");
};

export const stopInspection = () => {
  const { active } = inspection;
  if (!active) return;
  inspection.active = null;
  // Of a new picture as well, if one is being taken.
  inspection.opening = null;
  focusLater(active.purpose.opener);
};

const stopSelecting = () => {
  const { active } = inspection;
  if (!active) return;
  active.selection = null;
  active.view.choose(null);
  focusLater("picture");
};

/** Leaves the picture, or stops waiting for it. Returns whether there was anything to leave. */
export const cancelInspection = () => {
  const { active, opening } = inspection;
  if (opening && !active) {
    inspection.opening = null;
    focusLater(opening.opener);
  } else if (!active) return false;
  // The selection first, so that a slip does not cost what was entered beside it.
  else if (active.selection && document.getElementById("panel")?.contains(document.activeElement)) stopSelecting();
  else stopInspection();
  return true;
};

/** Until something was done, leaving is to cancel. @param {Active} active */
const leaveName = ({ done }) => (done === null ? words.cancel : words.backToBrowser);

/** The left side while an inspection is open. @param {Active} active */
export const inspectionStage = (active) => {
  const parent = active.view.parentOf();
  const changed = ui.state?.page && ui.state.page.url !== active.page.url;
  return h(
    "div",
    { class: "inspection", key: "inspection" },
    h(
      "div",
      { class: "bar" },
      h("h2", null, words.inspection),
      h(
        "div",
        { class: "row" },
        h("button", { id: "wider", type: "button", title: words.widerHint, "aria-disabled": parent === null ? "true" : undefined, onclick: () => parent !== null && select(parent) }, words.wider),
        h("button", { id: "do-again", type: "button", "aria-busy": ui.busy.has("again") ? "true" : undefined, onclick: () => void act("again", () => open(active.purpose)) }, words.refreshPicture),
        h("button", { id: "leave", type: "button", onclick: stopInspection }, leaveName(active)),
      ),
    ),
    h("p", { class: "hint", id: "inspection-help" }, words.inspectionHelp),
    failure("again"),
    active.page.image === null && h("p", { class: "notice" }, words.noPicture),
    changed && h("p", { class: "notice", role: "status" }, words.pageChanged),
    active.view.element,
  );
};

/** The panel while an inspection is open. @param {Active} active */
export const inspectionPanel = (active) => {
  const parent = active.view.parentOf();
  return h(
    "div",
    { key: "inspection-panel" },
    active.done !== null && h("p", { class: "done" }, active.done),
    active.selection === null
      ? h("div", { class: "card" }, h("h3", { id: "selection-heading", tabindex: "-1" }, words.inspection), h("p", null, active.done === null ? words.chooseSomething : words.selectAnother), h("button", { type: "button", onclick: stopInspection }, leaveName(active)))
      : selectionCard(active.selection, {
          headingId: "selection-heading",
          buttons: [
            h("button", { type: "button", title: words.widerHint, "aria-disabled": parent === null ? "true" : undefined, onclick: () => parent !== null && select(parent) }, words.wider),
            h("button", { type: "button", class: "plain", onclick: stopInspection }, words.backToBrowser),
          ],
          onCancel: stopSelecting,
          onDone: (message, use) => {
            // A field is often followed by another one of the same page; a page is marked once, and a click changes the page.
            if (use === "mark" || use === "dismiss") return stopInspection();
            active.selection = null;
            active.done = message;
            active.view.choose(null);
            focusLater("picture");
          },
        }),
  );
};

/**
 * How far to scroll until a range is in view, or its beginning where it is longer than the view. A long one of which a part is in view stays.
 * @param {[number, number]} range
 * @param {[number, number]} view
 */
const distance = ([start, end], [from, to]) => {
  const isLong = end - start > to - from;
  if (isLong ? start < to && end > from : start >= from && end <= to) return 0;
  return start < from || isLong ? start - from : end - to;
};

/**
 * Creates the picture with its outlines, and the list of elements. They change with each movement of the pointer, so they change themselves instead of
 * being drawn with the rest of the page.
 * @param {import("./api.js").Inspection} page
 * @param {(node: number) => void} onSelect
 */
const createView = (page, onSelect) => {
  const { nodes, width, height } = page;
  const byNode = new Map(nodes.map((node) => [node.node, node]));
  /** @type {Map<number | null, PageNode[]>} */
  const children = new Map();
  for (const node of nodes) {
    // A parent that is not visible is not listed.
    const parent = node.parent !== null && byNode.has(node.parent) ? node.parent : null;
    const siblings = children.get(parent);
    if (siblings) siblings.push(node);
    else children.set(parent, [node]);
  }
  /** @type {Map<number, number>} */
  const levels = new Map();
  for (const node of nodes) levels.set(node.node, (levels.get(node.parent ?? -1) ?? 0) + 1);

  /** @type {PageNode | null} */
  let highlighted = null;
  /** @type {PageNode | null} */
  let chosen = null;

  const outline = (/** @type {string} */ style) => create(h("div", { class: `outline ${style}`, hidden: true }));
  const hover = outline("hover");
  const selected = outline("chosen");
  const description = create(h("p", { class: "described", id: "described", role: "status" }, words.noneHovered));
  const surface = create(
    h("div", {
      id: "picture", class: "surface", tabindex: "0", role: "application", "aria-roledescription": words.pictureRole, "aria-label": words.picture,
      "aria-describedby": "inspection-help", style: { "aspect-ratio": `${width} / ${height}` },
    }),
  );
  const place = (/** @type {HTMLElement} */ element, /** @type {PageNode} */ { box: [x, y, boxWidth, boxHeight] }) => {
    element.style.left = `${(100 * x) / width}%`;
    element.style.top = `${(100 * y) / height}%`;
    element.style.width = `${(100 * boxWidth) / width}%`;
    element.style.height = `${(100 * boxHeight) / height}%`;
    element.hidden = false;
  };
  if (page.image !== null && /^data:image\/(jpeg|png|webp);base64,/.test(page.image)) {
    surface.append(create(h("img", { src: page.image, alt: "", draggable: "false" })));
  } else {
    surface.classList.add("plain-surface");
    for (const node of nodes) {
      const box = create(h("div", { class: "blank" }, children.has(node.node) ? null : node.text));
      place(box, node);
      surface.append(box);
    }
  }
  surface.append(hover, selected);
  const frame = create(h("div", { class: "picture" }, surface));
  /** Scrolls the picture alone, so that the rest of the page stays where it is. */
  const showSelected = () => {
    const [around, inner] = [frame.getBoundingClientRect(), selected.getBoundingClientRect()];
    const behavior = matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";
    frame.scrollBy({ top: distance([inner.top, inner.bottom], [around.top, around.bottom]), left: distance([inner.left, inner.right], [around.left, around.right]), behavior });
  };

  /** @param {PageNode | null} node */
  const highlight = (node) => {
    if (node === highlighted) return;
    highlighted = node;
    if (node) place(hover, node);
    else hover.hidden = true;
    description.textContent = "";
    if (node) description.append(create(h("code", null, node.label)), ` ${node.text}`);
    else description.textContent = words.noneHovered;
  };
  /** Returns the smallest element at a point; of elements of the same size, the one inside. @param {PointerEvent | MouseEvent} event */
  const at = (event) => {
    const bounds = surface.getBoundingClientRect();
    const x = ((event.clientX - bounds.left) / bounds.width) * width;
    const y = ((event.clientY - bounds.top) / bounds.height) * height;
    /** @type {PageNode | null} */
    let smallest = null;
    for (const node of nodes) {
      const [left, top, boxWidth, boxHeight] = node.box;
      if (x < left || y < top || x >= left + boxWidth || y >= top + boxHeight) continue;
      if (smallest === null || boxWidth * boxHeight <= smallest.box[2] * smallest.box[3]) smallest = node;
    }
    return smallest;
  };
  // The pointer does not announce each element that it crosses.
  surface.addEventListener("pointermove", (event) => {
    description.setAttribute("aria-live", "off");
    highlight(at(event));
  });
  surface.addEventListener("pointerleave", () => highlight(chosen));
  surface.addEventListener("click", (event) => {
    const node = at(event);
    if (node) onSelect(node.node);
  });
  surface.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const from = highlighted ?? chosen;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      if (from) onSelect(from.node);
      return;
    }
    if (!["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) return;
    event.preventDefault();
    description.removeAttribute("aria-live");
    const siblings = from ? (children.get(from.parent !== null && byNode.has(from.parent) ? from.parent : null) ?? []) : [];
    const index = from ? siblings.indexOf(from) : 0;
    const next = !from
      ? nodes[0]
      : {
          ArrowUp: from.parent === null ? undefined : byNode.get(from.parent),
          ArrowDown: children.get(from.node)?.[0],
          // At the last of its siblings, goes on in the order of the page, so that two keys reach every element.
          ArrowRight: siblings[index + 1] ?? nodes[nodes.indexOf(from) + 1],
          ArrowLeft: siblings[index - 1] ?? nodes[nodes.indexOf(from) - 1],
          Home: nodes[0],
          End: nodes[nodes.length - 1],
        }[event.key];
    if (!next) return;
    highlight(next);
    hover.scrollIntoView({ block: "nearest" });
  });

  const count = create(h("p", { class: "hint", role: "status" }));
  const tree = createTree({
    label: words.elements,
    onChoose: (id) => onSelect(Number(id)),
    onActive: (id) => highlight(id === null ? chosen : (byNode.get(Number(id)) ?? null)),
  });
  /** Lists the elements with a text, and those that it matches as a selector: null until that is known. @param {string} filter @param {Set<number> | null} found */
  const list = (filter, found) => {
    const wanted = filter.trim().toLowerCase();
    const matching = wanted === "" ? nodes : nodes.filter(({ node, label, text }) => found?.has(node) || `${label} ${text}`.toLowerCase().includes(wanted));
    const listed = matching.slice(0, MAX_LISTED);
    tree.show(
      listed.map((node) => ({
        id: String(node.node),
        // Levels would have gaps where a filter leaves out what is between.
        level: wanted === "" ? (levels.get(node.node) ?? 1) : 1,
        content: [h("code", null, node.label), node.text && h("span", { class: "sample" }, node.text)],
      })),
    );
    const none = found === null ? "" : found.size > 0 ? say(words.hiddenElements, { count: found.size }) : words.noElements;
    count.textContent =
      matching.length === 0 ? none : matching.length > listed.length ? say(words.elementsCut, { count: listed.length, total: matching.length }) : say(words.elementCount, { count: matching.length });
  };
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let asking;
  /** @param {string} filter */
  const search = (filter) => {
    clearTimeout(asking);
    list(filter, null);
    if (filter.trim() !== "") asking = setTimeout(() => void find(filter), FIND_AFTER);
  };
  /** @param {string} filter */
  const find = async (filter) => {
    const isWanted = () => /** @type {HTMLInputElement} */ (input).value === filter;
    try {
      const { nodes: found } = await post("find", { inspection: page.inspection, selector: filter });
      if (isWanted()) list(filter, new Set(found));
    } catch (error) {
      if (isWanted()) count.textContent = messageOf(error);
    }
  };
  const input = create(
    h("input", {
      id: "filter", type: "search", placeholder: words.filterHint, autocomplete: "off", spellcheck: "false",
      oninput: (/** @type {any} */ event) => search(event.target.value),
      onkeydown: (/** @type {KeyboardEvent & {target: any}} */ event) => {
        if (event.key !== "Escape" || event.target.value === "") return;
        event.preventDefault();
        event.target.value = "";
        search("");
      },
    }),
  );
  list("", null);

  return {
    element: create(
      h(
        "div",
        { class: "inspected" },
        frame,
        description,
        h("div", { class: "elements" }, h("div", { class: "filter-row" }, h("label", { for: "filter" }, words.filterElements), input, count), tree.element),
      ),
    ),
    /** @param {number | null} node */
    choose(node) {
      chosen = node === null ? null : (byNode.get(node) ?? null);
      if (chosen) {
        place(selected, chosen);
        showSelected();
      } else selected.hidden = true;
      highlight(chosen);
      tree.choose(node === null ? null : String(node));
    },
    /** The visible element around the selected one. */
    parentOf() {
      const parent = chosen?.parent ?? null;
      return parent !== null && byNode.has(parent) ? parent : null;
    },
  };
};
