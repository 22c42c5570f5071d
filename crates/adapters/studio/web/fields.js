// The tab with the fields that applicants share.

import { ApiError, post } from "./api.js";
import { h } from "./dom.js";
import { inspectButton } from "./inspection.js";
import { act, announce, focusLater, ui, update } from "./store.js";
import { action, checkbox, confirmed, form, rich, shownValue, textField } from "./widgets.js";
import { say, words } from "./words.js";

/** @type {{name: string, newName: string, label: string, required: boolean, pii: boolean} | null} */
let editing = null;

/** @param {import("./api.js").State} state @param {(tab: import("./store.js").Tab) => void} openTab */
export const fieldsTab = (state, openTab) => {
  const fields = state.outline?.fields ?? [];
  return [
    h("p", { class: "lead" }, words.fieldsLead),
    h(
      "div",
      { class: "row" },
      inspectButton({ id: "add-from-page", label: words.addFromPage, class: "primary", purpose: { tab: "fields", use: "field", pageKind: "" } }),
      h("button", { type: "button", onclick: () => openTab("responses") }, words.addFromResponse),
    ),
    fields.length === 0
      ? h("p", { class: "empty" }, words.noFields)
      : h("ol", { class: "fields" }, fields.map((field, index) => h("li", { key: field.name, class: field.problem === null ? undefined : "has-problem" }, editing?.name === field.name ? editForm(field) : fieldCard(field, index, fields.length)))),
  ];
};

/** @param {import("./api.js").Field} field @param {number} index @param {number} count */
const fieldCard = (field, index, count) => {
  const source = { page: words.fromPage, request: words.fromRequest, response: words.fromResponse }[field.source] ?? field.source;
  const type = field.type in words.types ? words.types[/** @type {keyof typeof words.types} */ (field.type)] : field.type;
  return [
    h("div", { class: "step" }, h("h3", null, field.label || field.name), h("code", null, field.name)),
    h(
      "p",
      { class: "tags" },
      [type, field.required && words.required, field.pii && words.pii, field.attested && words.attested].map((text) => text && h("span", { class: "tag quiet" }, text)),
    ),
    h(
      "dl",
      { class: "facts" },
      h("dt", null, source),
      h("dd", null, field.place ? h("code", null, field.place) : words.whole),
      field.members && field.members.length > 0 && [h("dt", { key: "columns" }, field.type === "object" ? words.members : words.columns), h("dd", { key: "columns-of" }, field.members.map((member, at) => [at > 0 && ", ", h("code", null, member)]))],
      field.problem === null
        ? [h("dt", { key: "value" }, words.value), h("dd", { key: "value-of", class: "sample" }, field.value === null ? h("span", { class: "none" }, words.noValue) : shownValue(field.value))]
        : [h("dt", { key: "problem" }, words.problem), h("dd", { key: "problem-of", class: "bad" }, rich(field.problem))],
    ),
    h(
      "div",
      { class: "row small" },
      h("button", { id: `edit-${field.name}`, type: "button", "aria-label": say(words.editNamed, { name: field.label }), onclick: () => startEditing(field) }, words.edit),
      move(field, -1, index > 0),
      move(field, 1, index < count - 1),
      action({
        key: `remove-${field.name}`,
        label: words.remove,
        name: say(words.removeNamed, { name: field.label }),
        class: "danger-text",
        work: async () => {
          if (!(await confirmed({ title: say(words.removeFieldTitle, { name: field.label }), text: words.removeFieldText, confirm: words.remove, danger: true }))) return;
          await post("edit", { op: "removeField", name: field.name });
          announce(say(words.fieldRemoved, { name: field.label }));
          focusLater("add-from-page");
        },
      }),
    ),
  ];
};

/** @param {import("./api.js").Field} field @param {-1 | 1} by @param {boolean} possible */
const move = (field, by, possible) =>
  action({
    key: `move${by}-${field.name}`,
    label: by < 0 ? words.up : words.down,
    name: say(by < 0 ? words.upNamed : words.downNamed, { name: field.label }),
    unavailable: !possible,
    work: async () => {
      await post("edit", { op: "moveField", name: field.name, by });
      announce(say(words.fieldMoved, { name: field.label }));
    },
  });

/** @param {import("./api.js").Field} field */
const startEditing = ({ name, label, required, pii }) => {
  editing = { name, newName: name, label, required, pii };
  ui.errors.delete("edit-field");
  focusLater("edit-label");
};

const stopEditing = () => {
  const name = editing?.name;
  editing = null;
  if (name !== undefined) focusLater(`edit-${name}`);
};

/** @param {import("./api.js").Field} field */
const editForm = (field) => {
  if (!editing) return null;
  const current = editing;
  const set = (/** @type {Partial<typeof current>} */ change) => {
    Object.assign(current, change);
    update();
  };
  const save = async () => {
    if (!current.label.trim()) throw new ApiError(words.labelMissing, 0);
    if (!current.newName.trim()) throw new ApiError(words.nameMissing, 0);
    await post("edit", { op: "editField", name: current.name, newName: current.newName.trim(), label: current.label.trim(), required: current.required, pii: current.pii });
    announce(say(words.fieldSaved, { name: current.label.trim() }));
    stopEditing();
  };
  return form(
    words.editField,
    () => void act("edit-field", save),
    h("h3", null, words.editField, " ", h("code", null, field.name)),
    textField({ id: "edit-label", label: words.label, hint: words.labelHint, value: current.label, required: true, oninput: (label) => set({ label }) }),
    textField({ id: "edit-name", label: words.name, hint: words.nameHint, value: current.newName, code: true, required: true, oninput: (newName) => set({ newName }) }),
    checkbox({ id: "edit-required", label: words.required, hint: words.requiredHint, checked: current.required, onchange: (required) => set({ required }) }),
    checkbox({ id: "edit-pii", label: words.pii, hint: words.piiHint, checked: current.pii, onchange: (pii) => set({ pii }) }),
    h("div", { class: "row actions" }, action({ key: "edit-field", label: words.saveField, class: "primary", work: async () => {}, submit: true }), h("button", { type: "button", class: "plain", onclick: stopEditing }, words.cancel)),
  );
};
