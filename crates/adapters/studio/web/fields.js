// The tab with the fields that applicants share, and the columns of lists.

import { addressFacts, addressHints, addressParts, canChangeAddress, currentChoices, firstPartId, isDecided, sentChoices } from "./address.js";
import { ApiError, post } from "./api.js";
import { DEFAULT_MAX_PAGES } from "./card.js";
import { h } from "./dom.js";
import { inspectButton } from "./inspection.js";
import { MAX_ROWS, draftOf, hasMembers, newReading, readingForm, readingOf, typeName } from "./reading.js";
import { act, announce, focusLater, ui, update } from "./store.js";
import { action, checkbox, confirmed, form, pagingNotice, rich, shownValue, textField } from "./widgets.js";
import { say, sentence, words } from "./words.js";

/**
 * What is edited: a field, or a column of the list `within`; without a name, a new column.
 * @type {{within: string | null, name: string | null, newName: string, label: string, required: boolean, pii: boolean, draft: import("./reading.js").Draft | null,
 *   address: import("./address.js").Choices | null, next: NextPage | null, opener: string} | null}
 */
let editing = null;

/** @typedef {{selector: string, max: string}} NextPage What is clicked for the next page of a list, and the pages that are read at most. */
/**
 * What is edited of a value for addresses: only the address at which it is read, where there is no draft.
 * @typedef {{name: string, newName: string, draft: import("./reading.js").Draft | null, address: import("./address.js").Choices | null, opener: string}} VariableEdit
 */
/** @type {VariableEdit | null} */
let variableEdit = null;

/** @param {import("./api.js").State} state @param {(tab: import("./store.js").Tab) => void} openTab */
export const fieldsTab = (state, openTab) => {
  const fields = state.outline?.fields ?? [];
  const variables = state.outline?.variables ?? [];
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
      : h("ol", { class: "fields" }, fields.map((field, index) => h("li", { key: field.name, class: field.problem === null ? undefined : "has-problem" }, isEditing(null, field.name) ? editForm(field, null) : fieldCard(field, index, fields.length)))),
    variables.length > 0 && [
      h("h3", { key: "variables-title" }, words.variables),
      h("p", { class: "hint", key: "variables-lead" }, words.variablesLead),
      h("ol", { class: "fields", key: "variables" }, variables.map((variable) => h("li", { key: variable.name, class: variable.problem === null ? undefined : "has-problem" }, variableEdit?.name === variable.name ? variableForm(variable, variableEdit) : variableCard(variable)))),
    ],
  ];
};

/** @param {import("./api.js").Variable} variable */
const variableCard = (variable) => [
  h("h4", null, h("code", null, variable.name)),
  h(
    "dl",
    { class: "facts" },
    variable.address && addressFacts(variable.address),
    h("dt", null, sourceName(variable.source)),
    h("dd", null, variable.place ? h("code", null, variable.place) : words.whole),
    variable.problem === null
      ? [h("dt", { key: "value" }, words.value), h("dd", { key: "value-of", class: "sample" }, variable.value === null ? h("span", { class: "none" }, words.noValue) : shownValue(variable.value))]
      : [h("dt", { key: "problem" }, words.problem), h("dd", { key: "problem-of", class: "bad" }, rich(sentence(variable.problem)))],
  ),
  variable.address && addressHints(variable.address),
  variable.positional && h("p", { class: "notice", key: "positional" }, sentence(words.positionalSelector)),
  h(
    "div",
    { class: "row small" },
    h("button", { id: variableEditor(variable.name), type: "button", "aria-label": say(words.editNamed, { name: variable.name }), onclick: () => startEditingVariable(variable) }, words.edit),
    variable.address && canChangeAddress(variable.address) &&
      h("button", { id: variableOpener(variable.name), type: "button", "aria-label": say(words.changeAddressOf, { name: variable.name }), onclick: () => startChangingAddress(variable) }, words.changeAddress),
    action({
      key: `remove-variable-${variable.name}`,
      label: words.remove,
      name: say(words.removeNamed, { name: variable.name }),
      class: "danger-text",
      work: async () => {
        await post("edit", { op: "removeVariable", name: variable.name });
        announce(say(words.variableRemoved, { name: variable.name }));
        focusLater("add-from-page");
      },
    }),
  ),
];

/** @param {string} name */
const variableOpener = (name) => `variable-address-${name}`;
/** @param {string} name */
const variableEditor = (name) => `edit-variable-${name}`;

/** @param {VariableEdit} edit @param {string} firstId */
const openVariable = (edit, firstId) => {
  // The controls of the two forms have the same names.
  editing = null;
  variableEdit = edit;
  for (const key of ["edit-variable", "edit-try"]) ui.errors.delete(key);
  focusLater(firstId);
};

/** @param {import("./api.js").Variable} variable */
const startChangingAddress = ({ name, address }) => {
  if (!address) return;
  openVariable({ name, newName: name, draft: null, address: currentChoices(address), opener: variableOpener(name) }, firstPartId("edit", address));
};

/** @param {import("./api.js").Variable} variable */
const startEditingVariable = ({ name, reading }) => openVariable({ name, newName: name, draft: draftOf(reading), address: null, opener: variableEditor(name) }, "edit-name");

const stopEditingVariable = () => {
  if (variableEdit) focusLater(variableEdit.opener);
  variableEdit = null;
};

/** @param {import("./api.js").Variable} variable @param {VariableEdit} current */
const variableForm = (variable, current) => {
  const { draft } = current;
  const set = (/** @type {Partial<VariableEdit>} */ change) => {
    Object.assign(current, change);
    update();
  };
  const save = async () => {
    const name = current.newName.trim();
    if (!name) throw new ApiError(words.nameMissing, 0);
    if (current.address) {
      if (!isDecided(current.address)) throw new ApiError(words.choosePartsFirst, 0);
      await post("edit", { op: "setAddress", node: variable.node, address: sentChoices(current.address) });
      // It is the address of the definition now, also if what follows is refused.
      if (draft) current.address = null;
    }
    if (draft) {
      await post("edit", { op: "editVariable", name: variable.name, newName: name, reading: readingOf(draft) });
      current.opener = variableEditor(name);
    }
    announce(say(draft ? words.variableSaved : words.addressSaved, { name }));
    stopEditingVariable();
  };
  const title = draft ? words.editVariable : words.changeAddress;
  return form(
    title,
    () => void act("edit-variable", save),
    h("h4", null, title, " ", h("code", null, variable.name)),
    draft && [
      textField({ id: "edit-name", label: words.name, hint: words.variableNameHint, value: current.newName, code: true, required: true, oninput: (newName) => set({ newName }) }),
      readingForm({ id: "edit", draft, isPage: variable.source === "page", node: variable.node, within: null, positionalAt: variable.positional ? variable.reading.at : null, forAddresses: true }),
    ],
    addressView(variable, current.address, (address) => set({ address })),
    h(
      "div",
      { class: "row actions" },
      action({ key: "edit-variable", label: draft ? words.saveVariable : words.saveAddress, class: "primary", work: async () => {}, submit: true }),
      h("button", { type: "button", class: "plain", onclick: stopEditingVariable }, words.cancel),
    ),
  );
};

/** @param {import("./api.js").Field["source"]} source */
const sourceName = (source) => ({ page: words.fromPage, request: words.fromRequest, response: words.fromResponse })[source] ?? source;

/** @param {import("./api.js").Field} field @param {number} index @param {number} count */
const fieldCard = (field, index, count) => {
  const type = field.reading ? typeName(field.reading) : field.type in words.types ? words.types[/** @type {keyof typeof words.types} */ (field.type)] : field.type;
  const each = field.reading?.each;
  const emptyWhen = field.reading?.emptyWhen;
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
      field.address && addressFacts(field.address),
      h("dt", null, sourceName(field.source)),
      h("dd", null, field.place ? h("code", null, field.place) : words.whole),
      each && [h("dt", { key: "each" }, words.rowSelector), h("dd", { key: "each-of" }, h("code", null, each))],
      emptyWhen && [h("dt", { key: "empty-when" }, words.shownInstead), h("dd", { key: "empty-when-of" }, h("code", null, emptyWhen))],
      field.nextPage && [h("dt", { key: "next" }, words.nextPages), h("dd", { key: "next-of" }, rich(say(words.nextPageBy, { text: field.nextPage.text, max: field.nextPage.max })))],
      field.problem === null
        ? [h("dt", { key: "value" }, words.value), h("dd", { key: "value-of", class: "sample" }, field.value === null ? h("span", { class: "none" }, words.noValue) : shownValue(field.value))]
        : [h("dt", { key: "problem" }, words.problem), h("dd", { key: "problem-of", class: "bad" }, rich(sentence(field.problem)))],
    ),
    field.address && addressHints(field.address, true),
    field.positional && h("p", { class: "notice", key: "positional" }, sentence(words.positionalSelector)),
    field.paging && pagingNotice(field.paging, field.source === "request" ? say(words.restByRequest, { node: `\`${field.node}\`` }) : words.restByResponse),
    field.furtherPage !== null && h("p", { class: "notice", key: "further" }, rich(`${say(words.furtherPage, { next: `\`${field.furtherPage}\`` })} ${words.restByLink}`)),
    field.endsAfter !== null && h("p", { class: "notice", key: "ends" }, `${say(words.listEnds, { count: field.endsAfter })} ${field.endsAfter < MAX_ROWS ? words.moreByMaxRows : words.noMoreRows}`),
    field.endsAfterPages !== null && h("p", { class: "notice", key: "pages-end" }, say(words.pagesEnd, { count: field.endsAfterPages })),
    field.hasNoNextPage && h("p", { class: "notice", key: "no-next" }, words.noNextPage),
    field.members.length > 0 && membersView(field),
    h(
      "div",
      { class: "row small" },
      h("button", { id: editorOf(null, field.name), type: "button", "aria-label": say(words.editNamed, { name: field.label }), onclick: () => startEditing(null, field, editorOf(null, field.name)) }, words.edit),
      move(null, field, -1, index > 0),
      move(null, field, 1, index < count - 1),
      field.nextPage && removeNextPage(field),
      removal(null, field, true),
    ),
  ];
};

/** @param {import("./api.js").Field} field */
const removeNextPage = (field) =>
  action({
    key: `remove-next-${field.name}`,
    label: words.removeNextPage,
    name: say(words.removeNextPageNamed, { name: field.label }),
    work: async () => {
      await post("edit", { op: "removeNextPage", list: field.name });
      announce(say(words.nextPageRemoved, { name: field.label }));
      focusLater(editorOf(null, field.name));
    },
  });

/** The columns of a list, or the members of an object. @param {import("./api.js").Field} field */
const membersView = (field) => {
  const isList = field.type === "list";
  const opener = `add-column-${field.name}`;
  return h(
    "div",
    { class: "columns", key: "columns" },
    h("h4", null, isList ? words.columns : words.members),
    h(
      "ol",
      { class: "plain-list" },
      field.members.map((member, index) => h("li", { key: member.name }, isEditing(field.name, member.name) ? editForm(member, field) : memberCard(field, member, index))),
      isEditing(field.name, null) && h("li", { key: "+" }, editForm(null, field)),
    ),
    field.reading && !isEditing(field.name, null) &&
      h("div", { class: "row small" }, h("button", { id: opener, type: "button", "aria-label": say(isList ? words.addColumnTo : words.addMemberTo, { name: field.label }), onclick: () => startEditing(field, null, opener) }, isList ? words.addColumn : words.addMember)),
  );
};

/** @param {import("./api.js").Field} field @param {import("./api.js").Member} member @param {number} index */
const memberCard = (field, member, index) => {
  const samples = sampleOf(field, member.name);
  const id = editorOf(field, member.name);
  return h(
    "div",
    { class: "known" },
    h("div", { class: "step" }, h("strong", null, member.label || member.name), h("code", null, member.name)),
    h(
      "p",
      { class: "tags" },
      [member.reading && typeName(member.reading), member.required && words.required, member.pii && words.pii].map((text) => text && h("span", { class: "tag quiet" }, text)),
    ),
    h(
      "dl",
      { class: "facts" },
      h("dt", null, words.place),
      h("dd", null, member.reading === null ? words.notRead : member.reading.at ? h("code", null, member.reading.at) : words.wholeRow),
      samples !== null && [h("dt", { key: "value" }, words.value), h("dd", { key: "value-of", class: "sample" }, samples)],
    ),
    member.positional && h("p", { class: "notice", key: "positional" }, sentence(field.type === "list" ? words.positionalColumn : words.positionalSelector)),
    h(
      "div",
      { class: "row small" },
      h("button", { id, type: "button", "aria-label": say(words.editNamed, { name: member.label }), onclick: () => startEditing(field, member, id) }, words.edit),
      move(field, member, -1, index > 0),
      move(field, member, 1, index < field.members.length - 1),
      removal(field, member, field.members.length > 1),
    ),
  );
};

/** The first value of a column. @param {import("./api.js").Field} field @param {string} name */
const sampleOf = (field, name) => {
  const rows = Array.isArray(field.value) ? field.value : [field.value];
  const row = rows.find((candidate) => candidate && candidate[name] !== undefined);
  return row ? shownValue(row[name]) : null;
};

/** @typedef {import("./api.js").Field | import("./api.js").Member} Part */

/** @param {import("./api.js").Field | null} within @param {Part} part */
const keyOf = (within, part) => (within ? `${within.name}-${part.name}` : part.name);

/** The button that edits a field, or a column of the list `within`. @param {import("./api.js").Field | null} within @param {string} name */
const editorOf = (within, name) => `edit-${within ? `${within.name}-${name}` : name}`;

/** @param {import("./api.js").Field | null} within @param {Part} part @param {-1 | 1} by @param {boolean} possible */
const move = (within, part, by, possible) =>
  action({
    key: `move${by}-${keyOf(within, part)}`,
    label: by < 0 ? words.up : words.down,
    name: say(by < 0 ? words.upNamed : words.downNamed, { name: part.label }),
    unavailable: !possible,
    work: async () => {
      await post("edit", { op: "moveField", within: within?.name ?? null, name: part.name, by });
      announce(told("moved", part.label, within));
    },
  });

/** @param {import("./api.js").Field | null} within @param {Part} part @param {boolean} possible */
const removal = (within, part, possible) =>
  action({
    key: `remove-${keyOf(within, part)}`,
    label: words.remove,
    name: say(words.removeNamed, { name: part.label }),
    class: "danger-text",
    unavailable: !possible,
    work: async () => {
      const question = within
        ? { title: say(words.removeColumnTitle, { name: part.label, list: within.label }), text: words.removeColumnText }
        : { title: say(words.removeFieldTitle, { name: part.label }), text: words.removeFieldText };
      if (!(await confirmed({ ...question, confirm: words.remove, danger: true }))) return;
      await post("edit", { op: "removeField", within: within?.name ?? null, name: part.name });
      announce(told("removed", part.label, within));
      focusLater(within ? `add-column-${within.name}` : "add-from-page");
    },
  });

const TOLD = {
  field: { added: words.fieldAdded, moved: words.fieldMoved, removed: words.fieldRemoved, saved: words.fieldSaved },
  column: { added: words.columnAdded, moved: words.columnMoved, removed: words.columnRemoved, saved: words.columnSaved },
  member: { added: words.memberAdded, moved: words.memberMoved, removed: words.memberRemoved, saved: words.memberSaved },
};

/**
 * Says what was done to a field, to a column of the list `within`, or to a member of the object `within`.
 * @param {keyof typeof TOLD.field} done @param {string} name @param {import("./api.js").Field | null} within
 */
const told = (done, name, within) => say(TOLD[!within ? "field" : within.type === "list" ? "column" : "member"][done], { name, list: within?.label ?? "" });

/** @param {string | null} within @param {string | null} name */
const isEditing = (within, name) => editing !== null && editing.within === within && editing.name === name;

/** @param {import("./api.js").Field | null} within @param {Part | null} part @param {string} opener */
const startEditing = (within, part, opener) => {
  const reading = part ? part.reading : newReading();
  variableEdit = null;
  editing = {
    within: within?.name ?? null, name: part?.name ?? null, newName: part?.name ?? "", label: part?.label ?? "", required: part?.required ?? false,
    // As for a field that is chosen on the page.
    pii: part?.pii ?? true,
    // A column that is not read yet gets a place.
    draft: reading ? draftOf(reading) : within ? draftOf(newReading()) : null,
    address: null,
    next: within || !part ? null : nextPageOf(/** @type {import("./api.js").Field} */ (part)),
    opener,
  };
  for (const key of ["edit-field", "edit-try"]) ui.errors.delete(key);
  focusLater("edit-label");
};

/** What leads to the next page of a list in the page; null where it cannot be edited here. @param {import("./api.js").Field} field @returns {NextPage | null} */
const nextPageOf = ({ type, source, nextPage }) => {
  if (type !== "list" || source !== "page") return null;
  if (nextPage === null) return { selector: "", max: DEFAULT_MAX_PAGES };
  return nextPage.selector === null ? null : { selector: nextPage.selector, max: String(nextPage.max) };
};

/** Saves what leads to the next page of a list, if it has changed. @param {import("./api.js").Field} field @param {NextPage} next */
const saveNextPage = async (field, next) => {
  const before = nextPageOf(field);
  const selector = next.selector.trim();
  const max = next.max.trim();
  if (selector === before?.selector && (!selector || max === before?.max)) return;
  if (!selector) {
    await post("edit", { op: "removeNextPage", list: field.name });
    return;
  }
  const count = Number(max);
  if (!Number.isInteger(count) || count < 2 || count > 50) throw new ApiError(words.maxPagesHint, 0);
  await post("edit", { op: "setNextPage", list: field.name, selector, max: count });
};

const stopEditing = () => {
  const opener = editing?.opener;
  editing = null;
  if (opener !== undefined) focusLater(opener);
};

/** Leaves what is edited as it was. Returns whether anything was edited. */
export const cancelEditing = () => {
  if (variableEdit !== null) stopEditingVariable();
  else if (editing !== null) stopEditing();
  else return false;
  return true;
};

/** @param {Part | null} part @param {import("./api.js").Field | null} within */
const editForm = (part, within) => {
  if (!editing) return null;
  const current = editing;
  const { draft } = current;
  const whole = within ?? /** @type {import("./api.js").Field} */ (part);
  const set = (/** @type {Partial<typeof current>} */ change) => {
    Object.assign(current, change);
    update();
  };
  const save = async () => {
    const label = current.label.trim();
    const name = current.newName.trim();
    if (!label) throw new ApiError(words.labelMissing, 0);
    if (!name) throw new ApiError(words.nameMissing, 0);
    // `null` stands for a value that is no amount.
    if (draft?.reading.currency?.trim() === "") throw new ApiError(words.currencyMissing, 0);
    if (current.address) {
      if (!isDecided(current.address)) throw new ApiError(words.choosePartsFirst, 0);
      await post("edit", { op: "setAddress", node: whole.node, address: sentChoices(current.address) });
      // It is the address of the definition now, also if what follows is refused.
      current.address = null;
    }
    // As with the address, it stays if what follows is refused.
    if (current.next) await saveNextPage(whole, current.next);
    const marks = { within: current.within, label, required: current.required, pii: current.pii, reading: draft && readingOf(draft) };
    await post("edit", current.name === null ? { op: "addMember", name, ...marks } : { op: "editField", name: current.name, newName: name, ...marks });
    // The button has the new name.
    if (current.name !== null) current.opener = editorOf(within, name);
    announce(told(current.name === null ? "added" : "saved", label, within));
    stopEditing();
  };
  const isColumn = within?.type === "list";
  const title = current.name === null ? (isColumn ? words.newColumn : words.newMember) : !within ? words.editField : isColumn ? words.editColumn : words.editMember;
  const submit = current.name === null ? (isColumn ? words.addColumn : words.addMember) : !within ? words.saveField : isColumn ? words.saveColumn : words.saveMember;
  return form(
    title,
    () => void act("edit-field", save),
    h("h3", null, title, part && [" ", h("code", null, part.name)]),
    textField({ id: "edit-label", label: words.label, hint: words.labelHint, value: current.label, required: true, oninput: (label) => set({ label }) }),
    textField({ id: "edit-name", label: words.name, hint: words.nameHint, value: current.newName, code: true, required: true, oninput: (newName) => set({ newName }) }),
    checkbox({ id: "edit-required", label: words.required, hint: isColumn ? words.requiredInRowHint : words.requiredHint, checked: current.required, onchange: (required) => set({ required }) }),
    checkbox({ id: "edit-pii", label: words.pii, hint: words.piiHint, checked: current.pii, onchange: (pii) => set({ pii }) }),
    draft
      ? readingForm({ id: "edit", draft, isPage: whole.source === "page", node: whole.node, within: within?.reading ?? null, positionalAt: part?.positional ? (part.reading?.at ?? null) : null })
      : h("p", { class: "hint" }, words.notRead),
    current.next && nextPageForm(current.next, (next) => set({ next })),
    addressView(whole, current.address, (address) => set({ address })),
    h("div", { class: "row actions" }, action({ key: "edit-field", label: submit, class: "primary", work: async () => {}, submit: true }), h("button", { type: "button", class: "plain", onclick: stopEditing }, words.cancel)),
    draft && hasMembers(draft.reading) ? h("p", { class: "hint" }, words.columnsBelow) : null,
  );
};

/** @param {NextPage} next @param {(next: NextPage) => void} set */
const nextPageForm = (next, set) => [
  textField({ id: "edit-next", label: words.nextSelector, hint: words.nextSelectorEditHint, value: next.selector, code: true, oninput: (selector) => set({ ...next, selector }) }),
  next.selector.trim() && textField({ id: "edit-next-max", label: words.maxPages, hint: words.maxPagesHint, value: next.max, required: true, oninput: (max) => set({ ...next, max }) }),
];

/**
 * The address at which a field or a value for addresses is read, which it shares with others.
 * @param {{name: string, address: import("./api.js").Address | null}} field
 * @param {import("./address.js").Choices | null} chosen What is changed of it.
 * @param {(chosen: import("./address.js").Choices) => void} set
 */
const addressView = ({ name, address }, chosen, set) => {
  if (!address) return null;
  const others = address.names.filter((other) => other !== name);
  if (chosen) {
    return [
      addressParts({ id: "edit", chosen, onchange: (choices) => set({ ...chosen, choices }) }),
      others.length > 0 && h("p", { class: "hint", key: "edit-also" }, say(words.alsoChanges, { names: others.join(", ") })),
    ];
  }
  const change = () => {
    set(currentChoices(address));
    focusLater(firstPartId("edit", address));
  };
  return [
    h("dl", { class: "facts", key: "edit-address-facts" }, addressFacts(address)),
    addressHints(address),
    canChangeAddress(address) && h("div", { class: "row small", key: "edit-address-row" }, h("button", { type: "button", onclick: change }, words.changeAddress)),
  ];
};
