// The tab with the details, the findings and the text of the definition.

import { post } from "./api.js";
import { create, h } from "./dom.js";
import { act, announce, ui, update } from "./store.js";
import { action, form, rich, textField } from "./widgets.js";
import { say, words } from "./words.js";

// Details

/** @typedef {{displayName: string, description: string, platform: string, version: string, hosts: string, ssoHosts: string}} Details */
/** @type {Details | null} */
let details = null;
let detailsNumber = -1;
let detailsEdited = false;

/** Reads the details from the document, which has all of them; the outline is for what the document cannot give. @param {import("./api.js").State} state @returns {Details} */
const detailsOf = (state) => {
  /** @type {any} */
  let document = {};
  try {
    document = JSON.parse(state.document) ?? {};
  } catch {
    // The findings say so.
  }
  const text = (/** @type {"displayName" | "description" | "platform" | "version"} */ name) =>
    typeof document[name] === "string" ? document[name] : name === "description" ? "" : (state.outline?.[name] ?? "");
  const lines = (/** @type {"hosts" | "ssoHosts"} */ name) => (Array.isArray(document[name]) ? document[name] : (state.outline?.[name] ?? [])).join("\n");
  return { displayName: text("displayName"), description: text("description"), platform: text("platform"), version: text("version"), hosts: lines("hosts"), ssoHosts: lines("ssoHosts") };
};

/** @param {import("./api.js").State} state */
const detailsForm = (state) => {
  if (!details || (!detailsEdited && detailsNumber !== state.documentNumber)) {
    details = detailsOf(state);
    detailsNumber = state.documentNumber;
  }
  const current = details;
  const reload = () => {
    details = null;
    detailsEdited = false;
    update();
  };
  const save = async () => {
    const lines = (/** @type {string} */ text) => text.split(/[\s,]+/).filter(Boolean);
    await post("edit", {
      op: "setDetails",
      displayName: current.displayName.trim(), description: current.description.trim(), platform: current.platform.trim(), version: current.version.trim(),
      hosts: lines(current.hosts), ssoHosts: lines(current.ssoHosts),
    });
    announce(words.detailsSaved);
    // The next state has them as they were stored.
    detailsEdited = false;
  };
  const field = (/** @type {keyof Details} */ name, /** @type {string} */ label, /** @type {string | undefined} */ hint, /** @type {object} */ more = {}) =>
    textField({
      id: `details-${name}`, label, hint, value: current[name],
      oninput: (value) => {
        current[name] = value;
        detailsEdited = true;
        update();
      },
      ...more,
    });
  return form(
    words.details,
    () => void act("details", save),
    detailsEdited && detailsNumber !== state.documentNumber && h("div", { class: "notice", role: "status" }, h("p", null, words.detailsChanged), h("button", { type: "button", onclick: reload }, words.reload)),
    field("displayName", words.displayName, words.displayNameHint, { required: true }),
    field("description", words.description, undefined, { rows: 2 }),
    h("div", { class: "pair" }, field("platform", words.platform, words.platformHint, { required: true, code: true }), field("version", words.versionLabel, words.versionHint, { required: true, code: true })),
    field("hosts", words.hosts, words.hostsHint, { rows: 3, code: true, required: true }),
    field("ssoHosts", words.ssoHosts, words.ssoHostsHint, { rows: 2, code: true }),
    h("div", { class: "row" }, action({ key: "details", label: words.saveDetails, work: async () => {}, submit: true }), detailsEdited && h("button", { type: "button", class: "plain", onclick: reload }, words.revert)),
  );
};

// The text

// Created once: what an author types is never replaced by a drawing of the page.
const numbers = create(h("div", { class: "numbers", "aria-hidden": "true" }));
const area = /** @type {HTMLTextAreaElement} */ (
  create(h("textarea", { id: "document", wrap: "off", spellcheck: "false", autocomplete: "off", autocapitalize: "none", "aria-describedby": "document-state", oninput: () => typed(), onscroll: () => follow() }))
);
const editor = create(h("div", { class: "editor" }, numbers, area));
let documentNumber = -1;
let documentText = "";
let lineCount = 0;

/** Whether the author has changed the text and not applied it. */
export const isEdited = () => documentNumber >= 0 && area.value !== documentText;

const typed = () => {
  const count = area.value.split("\n").length;
  if (count !== lineCount) {
    lineCount = count;
    numbers.textContent = Array.from({ length: count }, (_, index) => index + 1).join("\n");
  }
  follow();
  update();
};
const follow = () => {
  numbers.scrollTop = area.scrollTop;
};

/** @param {string} text @param {number} number */
const load = (text, number) => {
  const { scrollTop, scrollLeft, selectionStart, selectionEnd } = area;
  // As a textarea has it.
  documentText = text.replace(/\r\n?/g, "\n");
  documentNumber = number;
  if (area.value !== documentText) {
    area.value = documentText;
    area.setSelectionRange(selectionStart, selectionEnd);
    area.scrollTop = scrollTop;
    area.scrollLeft = scrollLeft;
  }
  typed();
};

/** Takes over a new document, unless the author is editing the one before. @param {import("./api.js").State} state */
export const receive = (state) => {
  if (documentNumber !== state.documentNumber && !isEdited()) load(state.document, state.documentNumber);
};

/** @param {number} line @param {number | null} column */
const goTo = (line, column) => {
  const lines = area.value.split("\n");
  const place = Math.min(line, lines.length) - 1;
  const before = lines.slice(0, place).reduce((length, text) => length + text.length + 1, 0);
  const length = lines[place]?.length ?? 0;
  // The text may have changed since it was checked, so that the line can be shorter than the column.
  const offset = Math.max((column ?? 1) - 1, 0);
  const from = before + (offset < length ? offset : 0);
  area.focus();
  area.setSelectionRange(from, before + length);
  area.scrollTop = (place - 3) * (area.scrollHeight / lines.length);
  area.scrollLeft = 0;
  editor.scrollIntoView({ block: "nearest" });
};

/** @param {import("./api.js").State} state */
const textForm = (state) => {
  const edited = isEdited();
  const conflict = edited && documentNumber !== state.documentNumber;
  const apply = async () => {
    const text = area.value;
    await post("edit", { op: "replace", document: text });
    announce(words.applied);
    documentText = text;
    if (ui.state) receive(ui.state);
  };
  const revert = () => {
    load(state.document, state.documentNumber);
    area.focus();
  };
  return [
    conflict && h("p", { key: "conflict", class: "notice", role: "status" }, words.conflict),
    h("label", { for: "document", class: "hidden" }, words.json),
    editor,
    h("p", { class: "hint", id: "document-state", role: "status" }, edited && words.edited),
    h(
      "div",
      { class: "row" },
      action({ key: "apply", label: words.apply, class: "primary", work: apply, unavailable: !edited }),
      edited && h("button", { type: "button", class: "plain", onclick: revert }, conflict ? words.reload : words.revert),
    ),
  ];
};

// Findings and attestation

/** @param {import("./api.js").Finding} finding */
const findingItem = ({ severity, path, line, column, message }) =>
  h(
    "li",
    { class: severity },
    h("span", { class: severity === "error" ? "tag bad" : "tag warn" }, severity === "error" ? words.error : words.warning),
    h("div", null, h("p", null, rich(message)), h("p", { class: "hint" }, h("code", null, path))),
    line !== null && h("button", { type: "button", class: "plain", "aria-label": `${say(words.goToLine, { line })}: ${message}`, onclick: () => goTo(line, column) }, say(words.goToLine, { line })),
  );

/** @type {{host: string, canAttest: boolean, reasons: string[]}[] | null} */
let hosts = null;

const attestation = () => [
  h("p", { class: "hint" }, words.attestationLead),
  h("div", { class: "row" }, action({ key: "probe", label: words.checkHosts, work: async () => void ({ hosts } = await post("probe")) })),
  h(
    "div",
    { "aria-live": "polite" },
    hosts &&
      (hosts.length === 0
        ? h("p", { class: "none" }, words.noHosts)
        : h(
            "ul",
            { class: "plain-list" },
            hosts.map(({ host, canAttest, reasons }) =>
              h("li", { key: host }, h("div", { class: "step" }, h("code", null, host), h("span", { class: `tag ${canAttest ? "good" : "warn"}` }, canAttest ? words.canAttest : words.cannotAttest)), h("ul", { class: "conditions" }, reasons.map((reason) => h("li", null, rich(reason))))),
            ),
          )),
  ),
];

/** @param {import("./api.js").State} state */
export const definitionTab = (state) => {
  receive(state);
  return [
    h("h3", { id: "findings-heading", tabindex: "-1" }, words.findings),
    state.findings.length === 0 ? h("p", { class: "none" }, words.noFindings) : h("ul", { class: "findings" }, state.findings.map(findingItem)),
    h("h3", null, words.json),
    textForm(state),
    h("h3", null, words.details),
    state.outline && !state.outline.hasOwnIcon && h("p", { key: "icon", class: "notice" }, rich(words.noIcon)),
    detailsForm(state),
    state.canProbe && [h("h3", { key: "attestation" }, words.attestation), attestation()],
  ];
};
