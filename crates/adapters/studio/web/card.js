// The card of a selected element or member: what it is used as, how it is found, what is read, and which field it becomes.

import { addressParts, isDecided, newChoices, rememberChoices, sentChoices } from "./address.js";
import { ApiError, messageOf, post } from "./api.js";
import { h } from "./dom.js";
import { kindOptions, markedText, markingRadios, startMarking, suggestionRadios, usualMarking } from "./marking.js";
import { stepsText } from "./reading.js";
import { act, announce, focusLater, ui, update } from "./store.js";
import { action, checkbox, choice as select, failure, form, pagingNotice, radios, rich, shownValue, textField } from "./widgets.js";
import { say, words } from "./words.js";

/**
 * @typedef {"field" | "column" | "next" | "variable" | "mark" | "dismiss"} Use
 * @typedef {{page: {inspection: number, node: number}} | {response: {number: number, pointer: string}}} Origin
 * @typedef {{origin: Origin, title: string, text: string, url: string | null, answer: import("./api.js").Choice | null, error: string | null, use: Use,
 *   selector: number, column: number, nextSelector: number, ownSelector: string, content: number, value: number, list: string, listName: string, listLabel: string, paged: string, maxPages: string, name: string, label: string,
 *   required: boolean, pii: boolean, address: import("./address.js").Choices | null, addressError: string | null, recognizedBy: string | null, pageKind: string, suggestions: import("./api.js").Suggestion[] | null, comparedWith: string[], otherScreen: "phone" | "desktop" | null, suggestion: number | null,
 *   marking: "also" | "instead" | null}} Selection
 */

const NEW_LIST = "";
/** Stands for no list whose next page is led to. */
const NO_LIST = "";
/** The pages that are read at most unless an author says otherwise. */
export const DEFAULT_MAX_PAGES = "10";
/** The place of the author's own selector among the proposals. */
const OWN_SELECTOR = -1;

/**
 * Reads what can be done with an element or a member.
 * @param {Origin} origin
 * @param {{title: string, text: string, use: Use, pageKind?: string, url?: string}} shown `url` is that of the page: of the picture, or shown when the response was opened
 * @returns {Selection}
 */
export const selectionOf = (origin, { title, text, use, pageKind = "", url }) => {
  /** @type {Selection} */
  const selection = {
    origin, title, text, use, pageKind, url: url ?? null,
    answer: null, error: null, selector: 0, column: 0, nextSelector: 0, ownSelector: "", content: 0, value: 0, list: NEW_LIST, listName: "", listLabel: "", paged: NO_LIST, maxPages: DEFAULT_MAX_PAGES, name: "", label: "",
    required: false,
    // What an account has is about a person more often than not, and a mark too many does no harm.
    pii: true,
    address: null, addressError: null, recognizedBy: null,
    suggestions: null, comparedWith: [], otherScreen: null, suggestion: null, marking: null,
  };
  for (const key of ["card", "card-kind", "card-recognize"]) ui.errors.delete(key);
  void (async () => {
    try {
      const answer = "page" in origin ? await post("element", origin.page) : await post("member", { response: origin.response.number, pointer: origin.response.pointer });
      selection.answer = answer;
      selection.name = answer.name ?? "";
      selection.label = answer.label ?? "";
      if (!answer.list && selection.use === "column") selection.use = "field";
      if ("response" in origin) selection.use = answer.proposedUse;
      selection.list = answer.lists[0] ?? NEW_LIST;
      // A list of another part of the page is chosen by the author alone.
      selection.paged = answer.paged.find((/** @type {{isHere: boolean}} */ { isHere }) => isHere)?.name ?? NO_LIST;
    } catch (error) {
      selection.error = messageOf(error);
    }
    update();
  })();
  void readAddress(selection);
  if (use === "mark" && pageKind) void suggest(selection);
  return selection;
};

/** Reads the address at which a value would be read. @param {Selection} selection */
const readAddress = async (selection) => {
  const { origin } = selection;
  try {
    // The address of a page is the same for all its elements.
    const from = "page" in origin ? { page: { inspection: origin.page.inspection, at: "", read: "text" } } : { response: origin.response };
    selection.address = newChoices(await post("address", from));
    selection.addressError = null;
  } catch (error) {
    selection.address = null;
    selection.addressError = messageOf(error);
  }
  update();
};

/** Whether what is added has an address of its own: a column of a list is read where the list is. @param {Selection} selection */
const hasAddress = ({ use, list }) => use === "field" || use === "variable" || (use === "column" && !listFields().some((field) => field.name === list));

const listFields = () => ui.state?.outline?.fields.filter((field) => field.type === "list") ?? [];

/** The lists that a click can lead to the next page of. */
const pagedLists = () => listFields().filter((field) => field.source === "page");

/** @param {string} name */
const listLabel = (name) => listFields().find((field) => field.name === name)?.label || name;

/** @param {Selection} selection */
const suggest = async (selection) => {
  if (!("page" in selection.origin)) return;
  const kind = selection.pageKind;
  selection.suggestions = null;
  selection.suggestion = null;
  ui.errors.delete("card-kind");
  update();
  try {
    /** @type {import("./api.js").Suggestions} */
    const { conditions, comparedWith, otherScreen, preferred } = await post("suggest", { kind, ...selection.origin.page });
    // The author may have chosen another kind in the meantime.
    if (selection.pageKind !== kind) return;
    selection.suggestions = conditions;
    selection.comparedWith = comparedWith;
    selection.otherScreen = otherScreen;
    selection.suggestion = preferred;
  } catch (error) {
    if (selection.pageKind === kind) ui.errors.set("card-kind", messageOf(error));
  }
  update();
};

/**
 * @param {Selection} selection
 * @param {{headingId: string, buttons: import("./dom.js").Children, onDone: (message: string, use: Use) => void, onCancel: () => void}} options
 */
export const selectionCard = (selection, { headingId, buttons, onDone, onCancel }) => {
  const { answer } = selection;
  const isPage = "page" in selection.origin;
  return h(
    "div",
    { class: "card", key: `selection-${JSON.stringify(selection.origin)}` },
    h("h3", { id: headingId, tabindex: "-1" }, isPage ? words.selectedElement : words.selectedMember),
    h("p", { class: "selected" }, h("code", null, selection.title), selection.text && h("span", { class: "sample" }, selection.text)),
    h("div", { class: "row" }, buttons),
    selection.error !== null && h("p", { class: "trouble", role: "alert" }, selection.error),
    !answer && selection.error === null && h("p", { class: "none", role: "status" }, words.reading),
    answer && content(selection, answer, isPage, { onDone, onCancel }),
  );
};

/** @param {Selection} selection @param {import("./api.js").Choice} answer @param {boolean} isPage @param {{onDone: (message: string, use: Use) => void, onCancel: () => void}} then */
const content = (selection, answer, isPage, { onDone, onCancel }) => {
  const set = (/** @type {Partial<Selection>} */ change) => {
    Object.assign(selection, change);
    update();
  };
  const submit = () => void act("card", () => send(selection, answer, onDone));
  const uses = radios({
    name: "use",
    legend: words.useAs,
    selected: selection.use,
    onchange: (use) => set({ use }),
    options: [
      { value: "field", label: words.useField, detail: words.useFieldHelp },
      ...(answer.list ? [{ value: "column", label: words.useColumn, detail: say(words.useColumnHelp, { count: answer.list.rows }) }] : []),
      ...(isPage && pagedLists().length > 0 ? [{ value: "next", label: words.useNext, detail: words.useNextHelp }] : []),
      { value: "variable", label: words.useVariable, detail: words.useVariableHelp },
      ...(isPage
        ? [
            { value: "mark", label: words.useMark, detail: words.useMarkHelp },
            { value: "dismiss", label: words.useDismiss, detail: words.useDismissHelp },
          ]
        : []),
    ],
  });
  const body = {
    mark: () => markForm(selection, set),
    dismiss: () => selectorRadios(selection, answer, words.matchesClick, set),
    next: () => nextForm(selection, answer, set),
    field: () => valueForm(selection, answer, isPage, set),
    column: () => valueForm(selection, answer, isPage, set),
    variable: () => valueForm(selection, answer, isPage, set),
  }[selection.use]();
  const label = { field: words.addField, column: words.addColumn, next: words.setNextPage, variable: words.addVariable, mark: words.markPage, dismiss: words.clickWhenever }[selection.use];
  const isValue = selection.use === "field" || selection.use === "column" || selection.use === "variable";
  const isReading = hasAddress(selection) && selection.address === null && selection.addressError === null;
  const unavailable = isValue && (isReading || !answer.contents[selection.content]?.values[selection.value]);
  return form(
    isPage ? words.selectedElement : words.selectedMember,
    () => unavailable || submit(),
    uses,
    body,
    h("div", { class: "row actions" }, action({ key: "card", label, class: "primary", work: async () => {}, submit: true, unavailable }), h("button", { type: "button", class: "plain", onclick: onCancel }, words.cancel)),
  );
};

/** @param {Selection} selection @param {import("./api.js").Choice} answer @param {import("./words.js").Text} matches @param {(change: Partial<Selection>) => void} set */
const selectorRadios = (selection, answer, matches, set) =>
  radios({
    name: "selector",
    legend: words.selector,
    hint: words.selectorHint,
    selected: selection.selector,
    onchange: (selector) => set({ selector }),
    options: (answer.selectors ?? []).map(({ selector, matches: count, hashed, positional, mayBeOwn }, index) => {
      const found = say(matches, { count });
      const warnings = [count !== 1 && found, mayBeOwn && words.selectorMayBeOwn, positional && (selection.use === "dismiss" ? words.positionalClick : words.positionalSelector), hashed && words.hashedSelector].filter(Boolean);
      return { value: index, label: h("code", null, selector), detail: count === 1 && found, warning: warnings.length > 0 && warnings.join(". ") };
    }),
  });

/** @param {Selection} selection @param {import("./api.js").Choice} answer @param {import("./api.js").ListPlace} list @param {(change: Partial<Selection>) => void} set */
const columnRadios = (selection, answer, list, set) =>
  radios({
    name: "column",
    legend: words.selector,
    hint: words.columnSelectorHint,
    selected: selection.column,
    onchange: (column) => set({ column }),
    options: answer.columns.map(({ selector, found: count, elsewhere, hashed, positional, mayBeOwn }, index) => {
      const found = say(words.columnFound, { found: count, rows: list.rows });
      const isAll = count === list.rows;
      const warnings = [
        !isAll && found,
        elsewhere > 0 && say(words.columnElsewhere, { count: elsewhere }),
        mayBeOwn && words.selectorMayBeOwn,
        positional && words.positionalColumn,
        hashed && words.hashedSelector,
      ].filter(Boolean);
      return { value: index, label: selector ? h("code", null, selector) : words.wholeRow, detail: isAll && found, warning: warnings.length > 0 && warnings.join(". ") };
    }),
  });

/** @param {Selection} selection @param {import("./api.js").Choice} answer @param {(change: Partial<Selection>) => void} set */
const nextForm = (selection, answer, set) => [
  answer.paged.length === 0
    ? h("p", { class: "notice", key: "card-no-list" }, words.noListHere)
    : select({
        id: "card-paged",
        label: words.list,
        selected: selection.paged,
        options: [
          ...(selection.paged === NO_LIST ? [{ value: NO_LIST, label: words.chooseList }] : []),
          ...answer.paged.map(({ name }) => ({ value: name, label: listLabel(name) })),
        ],
        warning: answer.paged.some(({ name, isHere }) => name === selection.paged && !isHere) ? words.listOfOtherPart : undefined,
        onchange: (paged) => set({ paged }),
      }),
  answer.laterPage !== null && h("p", { class: "notice", key: "card-later-page" }, rich(say(words.laterPage, { address: `\`${answer.laterPage}\`` }))),
  radios({
    name: "next-selector",
    legend: words.selector,
    hint: words.nextSelectorHint,
    selected: selection.nextSelector,
    onchange: (nextSelector) => set({ nextSelector }),
    options: [
      ...answer.nextSelectors.map(({ selector, matches: count, hashed, positional, mayBeOwn, hasWords }, index) => {
        const found = say(words.matchesClick, { count });
        const warnings = [count !== 1 && found, mayBeOwn && words.selectorMayBeOwn, positional && words.positionalNext, hasWords && words.nextInLanguage, hashed && words.hashedSelector].filter(Boolean);
        return { value: index, label: h("code", null, selector), detail: count === 1 && found, warning: warnings.length > 0 && warnings.join(". ") };
      }),
      { value: OWN_SELECTOR, label: words.ownSelector },
    ],
  }),
  selection.nextSelector === OWN_SELECTOR &&
    textField({ id: "card-own-selector", label: words.selector, hint: words.ownSelectorHint, value: selection.ownSelector, code: true, required: true, oninput: (ownSelector) => set({ ownSelector }) }),
  textField({ id: "card-max-pages", label: words.maxPages, hint: words.maxPagesHint, value: selection.maxPages, required: true, oninput: (maxPages) => set({ maxPages }) }),
];

/** @param {Selection} selection @param {(change: Partial<Selection>) => void} set */
const markForm = (selection, set) => [
  select({
    id: "card-kind",
    label: words.kind,
    selected: selection.pageKind,
    options: kindOptions(),
    onchange: (pageKind) => {
      set({ pageKind, marking: null });
      if (pageKind) void suggest(selection);
    },
  }),
  failure("card-kind"),
  selection.pageKind && !ui.errors.has("card-kind") && suggestionRadios("card-condition", selection, (suggestion) => set({ suggestion })),
  markingRadios("card-marking", selection.pageKind, selection.marking, (marking) => set({ marking })),
];

/** @param {Selection} selection @param {import("./api.js").Choice} answer @param {boolean} isPage @param {(change: Partial<Selection>) => void} set */
const valueForm = (selection, answer, isPage, set) => {
  if (answer.contents.length === 0) return h("p", { class: "none" }, isPage ? words.noContents : words.noContentsMember);
  const chosen = answer.contents[selection.content];
  const typed = chosen?.values[selection.value];
  const isColumn = selection.use === "column";
  const isShared = selection.use !== "variable";
  return [
    isPage && !isColumn && selectorRadios(selection, answer, words.matches, set),
    (isColumn ? answer.positionalColumn : answer.positional) && h("p", { class: "hint warn", key: "card-positional" }, words.positionalMember),
    isColumn && answer.list && listForm(selection, answer, answer.list, set),
    // The places of a column are relative to its row. A member of a response has a single one.
    isColumn && answer.list && answer.columns.length > 0 && columnRadios(selection, answer, answer.list, set),
    answer.contents.length > 1 || isPage
      ? radios({
          name: "content",
          legend: words.whatIsRead,
          selected: selection.content,
          onchange: (content) => set({ content, value: 0 }),
          options: answer.contents.map((content, index) => ({ value: index, label: readLabel(content), detail: h("span", { class: "sample" }, content.sample) })),
        })
      : null,
    chosen && chosen.values.length === 0
      ? h("p", { class: "none" }, words.noValues)
      : radios({
          name: "value",
          legend: words.typeOfValue,
          selected: selection.value,
          onchange: (value) => set({ value }),
          options: (chosen?.values ?? []).map((value, index) => ({
            value: index,
            label: rich(value.description),
            detail: [`${words.readsAs} `, h("span", { class: "sample" }, typeof value.value === "object" ? JSON.stringify(value.value) : shownValue(value.value))],
          })),
        }),
    chosen?.unreadDate && h("p", { class: "hint warn", key: "card-unread-date" }, words.unreadDate),
    // A step may cut off a part of the text, which the value alone does not show.
    typed && stepsText("card-steps", typed.convert),
    typed && [
      textField({ id: "card-name", label: words.name, hint: isShared ? words.nameHint : words.variableNameHint, value: selection.name, code: true, required: true, oninput: (name) => set({ name }) }),
      isShared && [
        textField({ id: "card-label", label: words.label, hint: words.labelHint, value: selection.label, required: true, oninput: (label) => set({ label }) }),
        checkbox({ id: "card-required", label: words.required, hint: isColumn ? words.requiredInRowHint : words.requiredHint, checked: selection.required, onchange: (required) => set({ required }) }),
        checkbox({ id: "card-pii", label: words.pii, hint: words.piiHint, checked: selection.pii, onchange: (pii) => set({ pii }) }),
      ],
      hasAddress(selection) && addressForm(selection, set),
      isUnrecognized(selection) &&
        h(
          "div",
          { class: "notice", role: "status", key: "card-unrecognized" },
          h("p", null, words.notAfterSignIn),
          h("div", { class: "row" }, action({ key: "card-recognize", label: words.markAfterSignIn, work: () => recognize(selection) })),
        ),
      selection.recognizedBy !== null && h("p", { class: "hint", key: "card-recognized" }, rich(say(words.recognizedNow, { condition: selection.recognizedBy }))),
    ],
  ];
};

/**
 * Whether the value is read on the page shown now, and that is not recognized as a page after sign-in. A request of the definition is made on any page.
 * @param {Selection} selection
 */
const isUnrecognized = (selection) => {
  const page = ui.state?.page;
  const source = "page" in selection.origin ? "page" : selection.address?.address.source;
  if (!hasAddress(selection) || !page?.settled || source === undefined || source === "request") return false;
  // Which signals hold is known of the page shown now only, which may have gone elsewhere since.
  if (selection.url !== null && selection.url !== page.url) return false;
  return ui.state?.outline?.pages.some(({ kind, holds }) => kind === "signedIn" && holds === false) === true;
};

/**
 * Marks the page as one after sign-in beside those that are marked, by a condition that nothing warns of. If there is none, the author chooses.
 * @param {Selection} selection
 */
const recognize = async (selection) => {
  const { origin } = selection;
  const kind = "signedIn";
  /** @type {import("./marking.js").MarkedPage} */
  const page = "page" in origin ? { inspection: origin.page.inspection, url: selection.url ?? "" } : await post("inspect");
  const { inspection } = page;
  /** @type {import("./api.js").Suggestions} */
  const { conditions, preferred, comparedWith } = await post("suggest", { kind, inspection, node: null });
  const suggestion = preferred === null ? undefined : conditions[preferred];
  // A condition that also holds on the sign-in page would have each run go past it.
  const isComparable = comparedWith.includes("signIn");
  if (!isComparable || !suggestion) {
    startMarking(kind, "card-name", { inspection: page, reason: isComparable ? words.noConditionHere : words.nothingToCompareHere });
    return;
  }
  await post("edit", { op: "markPage", kind, condition: suggestion.condition, marking: "also", inspection });
  selection.recognizedBy = suggestion.text;
  announce(markedText(kind, suggestion));
  // The button is gone as soon as the page is recognized.
  focusLater("card-name");
};

/** @param {Selection} selection @param {(change: Partial<Selection>) => void} set */
const addressForm = ({ address: chosen, addressError }, set) => {
  if (addressError !== null) return h("p", { class: "trouble", role: "alert", key: "card-address-error" }, addressError);
  if (chosen === null) return h("p", { class: "none", role: "status", key: "card-address-pending" }, words.addressPending);
  return addressParts({
    id: "card",
    chosen,
    onchange: (choices) => {
      const address = { ...chosen, choices };
      rememberChoices(address);
      set({ address });
    },
  });
};

/** @param {import("./api.js").Content} content */
const readLabel = ({ read }) => {
  if (read === "value") return words.readValue;
  if (read === null || read === "text") return words.readText;
  return rich(say(words.readAttribute, { name: `\`${read.attribute}\`` }));
};

/** @param {Selection} selection @param {import("./api.js").Choice} answer @param {import("./api.js").ListPlace} place @param {(change: Partial<Selection>) => void} set */
const listForm = (selection, answer, place, set) => {
  const lists = listFields().filter((field) => answer.lists.includes(field.name));
  return [
    h("p", { class: "hint" }, rich(place.each === null ? say(words.listPlaceResponse, { at: `\`${place.at || "/"}\`` }) : say(words.listPlace, { each: `\`${place.each}\``, at: `\`${place.at}\`` }))),
    answer.listMayBeOwn && h("p", { class: "hint warn", key: "card-list-own" }, words.listMayBeOwn),
    answer.paging && pagingNotice(answer.paging, words.restWhenAdded),
    answer.furtherPage !== null && !lists.some((field) => field.name === selection.list && field.nextPage !== null) &&
      h("p", { class: "notice", key: "card-further" }, rich(`${say(words.furtherPage, { next: `\`${answer.furtherPage}\`` })} ${words.restByLinkWhenAdded}`)),
    lists.length > 0 &&
      select({
        id: "card-list",
        label: words.list,
        selected: selection.list,
        options: [...lists.map((field) => ({ value: field.name, label: field.label || field.name })), { value: NEW_LIST, label: words.newList }],
        onchange: (list) => set({ list }),
      }),
    selection.list === NEW_LIST && [
      place.each !== null && h("p", { class: "hint", key: "card-list-empty" }, rich(say(words.listMayBeMissing, { at: `\`${place.at}\`` }))),
      textField({ id: "card-list-name", label: words.listName, value: selection.listName, code: true, required: true, oninput: (listName) => set({ listName }) }),
      textField({ id: "card-list-label", label: words.listLabel, value: selection.listLabel, required: true, oninput: (listLabel) => set({ listLabel }) }),
    ],
  ];
};

/** @param {Selection} selection @param {import("./api.js").Choice} answer @param {(message: string, use: Use) => void} onDone */
const send = async (selection, answer, onDone) => {
  const message = await edit(selection, answer);
  announce(message);
  onDone(message, selection.use);
};

/** @param {Selection} selection @param {import("./api.js").Choice} answer */
const edit = async (selection, answer) => {
  const { origin, use } = selection;
  const selector = answer.selectors?.[selection.selector]?.selector;
  if (use === "mark") {
    const suggestion = selection.suggestion === null ? undefined : selection.suggestions?.[selection.suggestion];
    if (!selection.pageKind) throw refusal(words.chooseKindFirst);
    if (!suggestion) throw refusal(words.chooseConditionFirst);
    await post("edit", { op: "markPage", kind: selection.pageKind, condition: suggestion.condition, marking: selection.marking ?? usualMarking(selection.pageKind), inspection: "page" in origin ? origin.page.inspection : undefined });
    return markedText(selection.pageKind, suggestion);
  }
  if (use === "dismiss") {
    if (!("page" in origin)) throw refusal(words.requestFailed);
    await post("edit", { op: "dismiss", inspection: origin.page.inspection, selector });
    return words.dismissAdded;
  }
  if (use === "next") {
    if (!("page" in origin)) throw refusal(words.requestFailed);
    if (selection.paged === NO_LIST) throw refusal(answer.paged.length === 0 ? words.noListHere : words.listNotChosen);
    const max = Number(selection.maxPages);
    if (!Number.isInteger(max) || max < 2 || max > 50) throw refusal(words.maxPagesHint);
    const next = selection.nextSelector === OWN_SELECTOR ? selection.ownSelector.trim() : answer.nextSelectors[selection.nextSelector]?.selector;
    if (!next) throw refusal(words.selectorMissing);
    await post("edit", { op: "setNextPage", list: selection.paged, selector: next, max, inspection: origin.page.inspection });
    return say(words.nextPageSet, { list: listLabel(selection.paged) });
  }
  const content = answer.contents[selection.content];
  const typed = content?.values[selection.value];
  if (!content || !typed) throw refusal(words.noValues);
  const from = "page" in origin ? { page: { inspection: origin.page.inspection, at: selector, read: content.read } } : { response: origin.response };
  const name = selection.name.trim();
  if (!name) throw refusal(words.nameMissing);
  const chosen = hasAddress(selection) ? selection.address : null;
  if (chosen && !isDecided(chosen)) throw refusal(words.choosePartsFirst);
  const address = chosen && sentChoices(chosen);
  if (use === "variable") {
    await add(selection, { op: "addVariable", name, from, convert: typed.convert, address });
    return say(words.variableAdded, { name });
  }
  const label = selection.label.trim();
  if (!label) throw refusal(words.labelMissing);
  const list = use === "column" ? listOf(selection, answer) : null;
  await add(selection, { op: "addField", name, label, type: typed.type, format: typed.format ?? null, currency: typed.currency ?? null, required: selection.required, pii: selection.pii, from, convert: typed.convert, list, address });
  return list ? say(words.columnAdded, { name: label, list: list.label }) : say(words.fieldAdded, { name: label });
};

/** @param {Selection} selection @param {any} change */
const add = async (selection, change) => {
  try {
    await post("edit", change);
  } catch (error) {
    // What was refused may be the address, which has changed since.
    if (hasAddress(selection)) void readAddress(selection);
    throw error;
  }
};

/** @param {Selection} selection @param {import("./api.js").Choice} answer */
const listOf = (selection, answer) => {
  if (!answer.list) throw refusal(words.listMissing);
  const { at, each, member } = answer.list;
  const known = listFields().find((field) => field.name === selection.list);
  const name = known?.name ?? selection.listName.trim();
  const label = known?.label ?? selection.listLabel.trim();
  if (!name || !label) throw refusal(words.listMissing);
  return { at, each, member: answer.columns[selection.column]?.selector ?? member, name, label };
};

/** Names what the author still has to enter. The studio was not asked, so there is no status. @param {string} message */
const refusal = (message) => new ApiError(message, 0);
