// The tab with the JSON responses that the page received, in which an author selects a member.

import { read } from "./api.js";
import { selectionCard, selectionOf } from "./card.js";
import { create, h } from "./dom.js";
import { act, focusLater, ui, update } from "./store.js";
import { createTree } from "./tree.js";
import { failure } from "./widgets.js";
import { say, words } from "./words.js";

const MAX_FOUND = 200;
const CHILDREN_STEP = 100;
const MAX_PARAMETERS = 8;
const MAX_PARAMETER_LENGTH = 24;

/** `pageUrl` is that of the page shown then. @typedef {{number: number, url: string, pageUrl: string | null, status: number, view: HTMLElement, selection: import("./card.js").Selection | null}} Opened */
/** @type {Opened | null} */
let opened = null;

/** @param {import("./api.js").State} state */
export const responsesTab = (state) => {
  if (opened) return openedView(opened);
  const responses = [...state.responses].reverse();
  return [
    h("p", { class: "lead" }, words.responsesLead),
    responses.length === 0
      ? h("p", { class: "empty" }, words.noResponses)
      : h(
          "ul",
          { class: "responses" },
          responses.map(({ number, url, status, noBody }) => {
            const key = `response-${number}`;
            return h(
              "li",
              { key },
              noBody === null
                ? h(
                    "button",
                    { id: key, type: "button", "aria-busy": ui.busy.has(key) ? "true" : undefined, onclick: () => void act(key, () => open(number)) },
                    h("span", { class: status < 400 ? "tag good" : "tag warn" }, String(status)),
                    place(url, state.page?.url),
                    h("span", { class: "id" }, say(words.responseNumber, { number })),
                  )
                : h(
                    "p",
                    { class: "without" },
                    h("span", { class: "tag quiet" }, String(status)),
                    place(url, state.page?.url),
                    h("span", { class: "none" }, noBodyText(noBody)),
                    h("span", { class: "id" }, say(words.responseNumber, { number })),
                  ),
              failure(key),
            );
          }),
        ),
  ];
};

/** Says why a response has no body, and what to do. @param {import("./api.js").NoBody} noBody */
const noBodyText = ({ reason, maxKib, contentType }) => {
  if (reason === "notJson" && contentType) return say(words.noBody.notJsonOf, { type: contentType });
  return say(words.noBody[reason], { max: maxKib ?? 0 });
};

/** The address of a response: its path, and what tells it from others with that path. @param {string} url @param {string | undefined} page */
const place = (url, page) => {
  try {
    const { origin, pathname, searchParams, host } = new URL(url);
    const path = page !== undefined && new URL(page).origin === origin ? pathname : host + pathname;
    const parameters = [...searchParams];
    return h("span", { class: "path", title: url }, path, parameters.length > 0 && h("span", { class: "query" }, shownQuery(parameters)));
  } catch {
    return h("span", { class: "path" }, url);
  }
};

/** The parameters of an address, the first ones, each shortened. @param {[string, string][]} parameters */
const shownQuery = (parameters) => {
  const shown = parameters.slice(0, MAX_PARAMETERS).map((pair) => pair.map(shortened).join("="));
  return `?${shown.join("&")}${parameters.length > MAX_PARAMETERS ? "&…" : ""}`;
};

/** Keeps both ends, which differ most often. @param {string} text */
const shortened = (text) => (text.length > MAX_PARAMETER_LENGTH ? `${text.slice(0, 14)}…${text.slice(-9)}` : text);

/** @param {number} number */
const open = async (number) => {
  const { url, pageUrl, status, body, noBody } = await read(`responses/${number}`);
  const view = noBody === null ? bodyView(number, body) : create(h("p", { class: "none" }, noBodyText(noBody)));
  opened = { number, url, pageUrl, status, view, selection: null };
  focusLater("response-heading");
};

const close = () => {
  const number = opened?.number;
  opened = null;
  focusLater(`response-${number}`);
};

/** @param {Opened} response */
const stopSelecting = (response) => {
  response.selection = null;
  focusLater("find-member");
};

/** Leaves the member, or the response. Returns whether one was chosen. */
export const cancelResponse = () => {
  if (!opened) return false;
  if (opened.selection) stopSelecting(opened);
  else close();
  return true;
};

/** @param {Opened} response */
const openedView = (response) => {
  const backToMembers = () => stopSelecting(response);
  return h(
    "div",
    { key: `opened-${response.number}` },
    h("div", { class: "row" }, h("button", { type: "button", class: "plain", onclick: close }, words.backToResponses)),
    h("h3", { id: "response-heading", tabindex: "-1" }, say(words.response, { number: response.number })),
    h("p", { class: "address" }, h("span", { class: "tag quiet" }, String(response.status)), " ", response.url),
    response.selection &&
      selectionCard(response.selection, {
        headingId: "selection-heading",
        buttons: [h("button", { type: "button", onclick: backToMembers }, words.backToMembers)],
        onDone: backToMembers,
        onCancel: backToMembers,
      }),
    // Kept while a member is selected, so that what was expanded stays so.
    h("div", { key: "members", hidden: response.selection !== null }, response.view),
  );
};

/** @param {any} value */
const isContainer = (value) => value !== null && typeof value === "object";
/** @param {string} name */
const escaped = (name) => name.replaceAll("~", "~0").replaceAll("/", "~1");
/** @param {any} container @returns {[string, any][]} */
const entriesOf = (container) => (Array.isArray(container) ? container.map((item, index) => [String(index), item]) : Object.entries(container));

/** @param {number} number @param {any} body */
const bodyView = (number, body) => {
  const expanded = new Set([""]);
  /** How many members of a container are listed. @type {Map<string, number>} */
  const limits = new Map();
  const count = create(h("p", { class: "hint", role: "status" }));
  const tree = createTree({
    label: words.responseMembers,
    onChoose: (id) => {
      if (id.startsWith(MORE)) {
        const pointer = id.slice(MORE.length);
        limits.set(pointer, (limits.get(pointer) ?? CHILDREN_STEP) + CHILDREN_STEP);
        list();
      } else select(number, id.slice(MEMBER.length), valueAt(body, id.slice(MEMBER.length)));
    },
    onToggle: (id) => {
      const pointer = id.slice(MEMBER.length);
      if (expanded.has(pointer)) expanded.delete(pointer);
      else expanded.add(pointer);
      list();
    },
  });
  // A short response is shown whole.
  if (isContainer(body)) for (const [name, value] of entriesOf(body).slice(0, 20)) if (isContainer(value) && entriesOf(value).length <= 20) expanded.add(`/${escaped(name)}`);

  const list = () => {
    const wanted = find.value.trim().toLowerCase();
    if (wanted === "") {
      tree.show(rowsOf(body, expanded, limits));
      count.textContent = "";
      return;
    }
    const found = leavesWith(body, wanted);
    tree.show(found.slice(0, MAX_FOUND).map(([pointer, value]) => ({ id: MEMBER + pointer, level: 1, content: leaf(pointer, value) })));
    count.textContent = found.length === 0 ? words.noMembers : found.length > MAX_FOUND ? say(words.membersCut, { count: MAX_FOUND }) : say(words.memberCount, { count: found.length });
  };
  const find = /** @type {HTMLInputElement} */ (create(h("input", { id: "find-member", type: "search", placeholder: words.findMemberHint, autocomplete: "off", spellcheck: "false", oninput: () => list() })));
  list();
  return create(h("div", { class: "elements" }, h("div", { class: "filter-row" }, h("label", { for: "find-member" }, words.findMember), find, count), tree.element));
};

// Prefixes of row identifiers; a pointer may be empty or have any characters.
const MEMBER = "m";
const MORE = "+";

/** @param {string} name @param {any} value */
const leaf = (name, value) => [h("code", null, name), h("span", { class: `sample is-${value === null ? "null" : typeof value}` }, typeof value === "string" ? `"${value}"` : String(value))];

/** @param {any} body @param {Set<string>} expanded @param {Map<string, number>} limits */
const rowsOf = (body, expanded, limits) => {
  /** @type {import("./tree.js").Row[]} */
  const rows = [];
  /** @param {string} pointer @param {string} name @param {any} value @param {number} level */
  const visit = (pointer, name, value, level) => {
    const id = MEMBER + pointer;
    if (!isContainer(value)) {
      rows.push({ id, level, content: leaf(name, value) });
      return;
    }
    const entries = entriesOf(value);
    const isOpen = expanded.has(pointer);
    rows.push({ id, level, expanded: isOpen, content: [h("code", null, name), h("span", { class: "hint" }, say(Array.isArray(value) ? words.itemCount : words.memberCount, { count: entries.length }))] });
    if (!isOpen) return;
    const limit = limits.get(pointer) ?? CHILDREN_STEP;
    for (const [key, member] of entries.slice(0, limit)) visit(`${pointer}/${escaped(key)}`, key, member, level + 1);
    if (entries.length > limit) rows.push({ id: MORE + pointer, level: level + 1, content: h("span", { class: "more" }, say(words.showMore, { count: Math.min(CHILDREN_STEP, entries.length - limit) })) });
  };
  visit("", words.bodyRoot, body, 1);
  return rows;
};

/** Returns one more than are shown, if there are more. @param {any} body @param {string} wanted */
const leavesWith = (body, wanted) => {
  /** @type {[string, any][]} */
  const found = [];
  /** @type {[string, any][]} */
  const left = [["", body]];
  for (let next = left.pop(); next && found.length <= MAX_FOUND; next = left.pop()) {
    const [pointer, value] = next;
    if (isContainer(value)) {
      for (const [key, member] of entriesOf(value).reverse()) left.push([`${pointer}/${escaped(key)}`, member]);
    } else if (pointer.toLowerCase().includes(wanted) || String(value).toLowerCase().includes(wanted)) found.push([pointer, value]);
  }
  return found;
};

/** @param {any} body @param {string} pointer */
const valueAt = (body, pointer) =>
  pointer === "" ? body : pointer.slice(1).split("/").reduce((value, key) => value?.[key.replaceAll("~1", "/").replaceAll("~0", "~")], body);

/** @param {number} number @param {string} pointer @param {any} value */
const select = (number, pointer, value) => {
  if (!opened) return;
  opened.selection = selectionOf({ response: { number, pointer } }, { title: pointer || words.bodyRoot, text: String(value), use: "field", url: opened.pageUrl ?? undefined });
  focusLater("selection-heading");
  update();
};
