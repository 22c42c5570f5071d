// Controls that several parts of the panel use.

import { create, h } from "./dom.js";
import { act, ui } from "./store.js";
import { say, words } from "./words.js";

/** @typedef {import("./dom.js").Children} Children */

/** Shows text in which backticks enclose code. @param {string} text @returns {Children} */
export const rich = (text) => text.split("`").map((part, index) => (index % 2 === 1 ? h("code", null, part) : part));

/** The same text without the marks of code, for where nothing but text can be shown. @param {string} text */
export const plain = (text) => text.replaceAll("`", "");

/** The `id` of a control. Its key may have a selector in it, whose spaces would make several identifiers of one. @param {string} key */
const idFor = (key) => `do-${key.replace(/[^\w-]/g, (character) => `_${character.codePointAt(0)}_`)}`;

/**
 * A button whose work may fail; the message appears beside it.
 * @param {{key: string, label: Children, class?: string, work: () => Promise<unknown>, name?: string, describedBy?: string, unavailable?: boolean, submit?: boolean}} options
 */
export const action = ({ key, label, class: style, work, name, describedBy, unavailable = false, submit = false }) => {
  const busy = ui.busy.has(key);
  const error = ui.errors.get(key);
  const id = idFor(key);
  return [
    h(
      "button",
      {
        id,
        type: submit ? "submit" : "button",
        class: style,
        "aria-label": name,
        // Not `disabled`, which would take the focus away from the button that was just pressed.
        "aria-disabled": busy || unavailable ? "true" : undefined,
        "aria-busy": busy ? "true" : undefined,
        "aria-describedby": [error && `${id}-error`, describedBy].filter(Boolean).join(" ") || undefined,
        onclick: submit ? undefined : () => void (unavailable || act(key, work)),
      },
      label,
    ),
    failure(key),
  ];
};

/** The message of a control that failed. @param {string} key */
export const failure = (key) => {
  const error = ui.errors.get(key);
  return error !== undefined && h("p", { id: `${idFor(key)}-error`, class: "trouble", role: "alert" }, rich(error));
};

/**
 * @param {{id: string, label: string, hint?: string, value: string, oninput: (value: string) => void, rows?: number, required?: boolean, code?: boolean, type?: string}} options
 */
export const textField = ({ id, label, hint, value, oninput, rows, required = false, code = false, type }) =>
  h(
    "div",
    { class: "field", key: `${id}-field` },
    h("label", { for: id }, label),
    hint && h("span", { class: "hint", id: `${id}-hint` }, hint),
    h(rows ? "textarea" : "input", {
      id,
      ...(rows ? { rows } : { type: type ?? "text" }),
      value,
      class: code ? "code" : undefined,
      autocomplete: "off",
      spellcheck: code ? "false" : undefined,
      autocapitalize: code ? "none" : undefined,
      "aria-required": required ? "true" : undefined,
      "aria-describedby": hint && `${id}-hint`,
      oninput: (/** @type {any} */ event) => oninput(event.target.value),
    }),
  );

/** @param {{id: string, label: string, hint?: string, checked: boolean, onchange: (checked: boolean) => void}} options */
export const checkbox = ({ id, label, hint, checked, onchange }) =>
  h(
    "div",
    { class: "tick", key: `${id}-field` },
    h("input", { id, type: "checkbox", checked, "aria-describedby": hint && `${id}-hint`, onchange: (/** @type {any} */ event) => onchange(event.target.checked) }),
    h("div", null, h("label", { for: id }, label), hint && h("span", { class: "hint", id: `${id}-hint` }, hint)),
  );

/**
 * @param {{name: string, legend: string, hint?: string, selected: number | string | null,
 *   options: {value: number | string, label: Children, detail?: Children, warning?: Children}[], onchange: (value: any) => void}} options
 */
export const radios = ({ name, legend, hint, selected, options, onchange }) =>
  h(
    "fieldset",
    { key: name, "aria-describedby": hint && `${name}-hint` },
    h("legend", null, legend),
    hint && h("p", { class: "hint", id: `${name}-hint` }, hint),
    options.map(({ value, label, detail, warning }) => {
      const id = `${name}-${value}`;
      return h(
        "div",
        { class: "tick", key: `${id}-field` },
        h("input", {
          id,
          type: "radio",
          name,
          checked: value === selected,
          "aria-describedby": detail || warning ? `${id}-detail` : undefined,
          onchange: () => onchange(value),
        }),
        h(
          "div",
          null,
          h("label", { for: id }, label),
          (detail || warning) && h("span", { id: `${id}-detail` }, detail && h("span", { class: "hint" }, detail), warning && h("span", { class: "hint warn" }, warning)),
        ),
      );
    }),
  );

/** @param {{id: string, label: Children, selected: string, options: {value: string, label: string}[], warning?: string, onchange: (value: string) => void}} options */
export const choice = ({ id, label, selected, options, warning, onchange }) =>
  h(
    "div",
    { class: "field", key: `${id}-field` },
    h("label", { for: id }, label),
    h(
      "select",
      { id, value: selected, "aria-describedby": warning && `${id}-warning`, onchange: (/** @type {any} */ event) => onchange(event.target.value) },
      options.map(({ value, label: text }) => h("option", { key: value, value }, text)),
    ),
    warning && h("span", { class: "hint warn", id: `${id}-warning` }, warning),
  );

/** A form that never leaves the page. @param {string} label @param {() => void} submit @param {...Children} children */
export const form = (label, submit, ...children) =>
  h(
    "form",
    {
      "aria-label": label,
      novalidate: true,
      onsubmit: (/** @type {Event} */ event) => {
        event.preventDefault();
        submit();
      },
    },
    children,
  );

/**
 * Says that a list goes on, or may go on, after the rows of its response.
 * @param {import("./api.js").Paging} paging
 * @param {string} rest How the rest is read.
 */
export const pagingNotice = ({ rows, total, sign, parameters }, rest) => {
  const goesOn =
    rows !== null && total !== null
      ? say(words.listHasOf, { rows, total })
      : rows !== null && sign !== null
        ? say(words.listGoesOn, { count: rows, sign: `\`${sign}\`` })
        : say(words.listMayGoOn, { parameters: parameters.map((parameter) => `\`${parameter}\``).join(", ") });
  return h("p", { class: "notice", key: "paging" }, rich(`${goesOn} ${rest}`));
};

const MAX_ROWS_SHOWN = 5;

/** Shows a JSON value as an author reads it. @param {any} value @returns {Children} */
export const shownValue = (value) => {
  if (value === null || value === undefined) return h("span", { class: "none" }, words.nothing);
  if (typeof value === "boolean") return value ? words.yes : words.no;
  if (value === "") return h("span", { class: "none" }, words.emptyText);
  if (typeof value !== "object") return String(value);
  if (!Array.isArray(value)) {
    return h(
      "dl",
      { class: "facts" },
      Object.entries(value).map(([name, member]) => [h("dt", { key: `t-${name}` }, name), h("dd", { key: `d-${name}` }, shownValue(member))]),
    );
  }
  const shown = value.slice(0, MAX_ROWS_SHOWN);
  const rest = value.length - shown.length;
  const columns = [...new Set(shown.flatMap((row) => (row && typeof row === "object" ? Object.keys(row) : [])))];
  const note = h("p", { class: "hint" }, rest > 0 ? say(words.moreRows, { count: rest }) : say(words.rows, { count: value.length }));
  if (columns.length === 0) return [h("ul", null, shown.map((row) => h("li", null, shownValue(row)))), note];
  return [
    h(
      "div",
      // Scrolls sideways, and so has to be reachable with the keyboard.
      { class: "wide", tabindex: "0", role: "group", "aria-label": words.value },
      h(
        "table",
        null,
        h("thead", null, h("tr", null, columns.map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", null, shown.map((row) => h("tr", null, columns.map((name) => h("td", null, shownValue(row?.[name])))))),
      ),
    ),
    note,
  ];
};

/**
 * Asks before something that cannot be undone.
 * @param {{title: string, text: string, confirm: string, danger?: boolean}} options
 * @returns {Promise<boolean>}
 */
export const confirmed = async ({ title, text, confirm, danger = false }) => (await answered({ title, text, confirm, danger })) !== null;

/**
 * Asks for a choice, and resolves to its value, or to null where it was cancelled.
 * @param {{title: string, text: string, confirm: string, label: string, options: {value: string, text: string}[]}} question
 * @returns {Promise<string | null>}
 */
export const chosen = (question) => answered({ ...question, danger: false });

/**
 * @param {{title: string, text: string, confirm: string, danger: boolean, label?: string, options?: {value: string, text: string}[]}} question
 * @returns {Promise<string | null>}
 */
const answered = ({ title, text, confirm, danger, label, options }) =>
  new Promise((resolve) => {
    const select = options && /** @type {HTMLSelectElement} */ (create(h("select", { id: "dialog-choice" }, options.map((option) => h("option", { value: option.value }, option.text)))));
    const close = (/** @type {string} */ answer) => () => dialog.close(answer);
    const dialog = /** @type {HTMLDialogElement} */ (
      create(
        h(
          "dialog",
          { "aria-labelledby": "dialog-title", "aria-describedby": "dialog-text" },
          h("h2", { id: "dialog-title" }, title),
          h("p", { id: "dialog-text" }, text),
          select && h("p", { class: "field" }, h("label", { for: "dialog-choice" }, label), select),
          h(
            "div",
            { class: "row" },
            h("button", { type: "button", class: danger ? "danger" : "primary", onclick: close("yes") }, confirm),
            h("button", { type: "button", onclick: close("no") }, words.cancel),
          ),
        ),
      )
    );
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes" ? (select ? select.value : "yes") : null);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
