// The controls for where a value is read and what becomes of it: the place, the type and the converters.

import { ApiError, post, read } from "./api.js";
import { h } from "./dom.js";
import { act, update } from "./store.js";
import { action, choice, rich, shownValue, textField } from "./widgets.js";
import { say, sentence, words } from "./words.js";

/**
 * @typedef {import("./api.js").Reading} Reading
 * @typedef {{id: number, kind: string, text: string, other: string, language: string}} Step A converter while it is edited.
 * @typedef {{reading: Reading, steps: Step[], maxRows: string, tried: import("./api.js").Tried | null}} Draft
 * @typedef {{id: string, draft: Draft, isPage: boolean, node: string, within: Reading | null, positionalAt: string | null, forAddresses?: boolean}} Place `positionalAt` is the selector before it is edited, if it counts elements. A value for addresses has no type.
 */

/** The rows that a list has at most. */
export const MAX_ROWS = 1000;
const CONVERTERS = /** @type {(keyof typeof words.converters)[]} */ (["trim", "match", "except", "number", "date", "boolean", "map"]);
/** What an author calls a type, with its members in a definition. @type {Record<keyof typeof words.valueTypes, {type: string, format: string | null, money?: boolean}>} */
const TYPES = {
  text: { type: "string", format: null },
  integer: { type: "integer", format: null },
  number: { type: "number", format: null },
  money: { type: "number", format: null, money: true },
  identifier: { type: "integer", format: "plain" },
  date: { type: "string", format: "date" },
  dateTime: { type: "string", format: "dateTime" },
  boolean: { type: "boolean", format: null },
};

/** @param {Reading} reading @returns {keyof typeof TYPES} */
const typeOf = ({ type, format, currency }) => {
  if (type === "boolean") return "boolean";
  if (type === "string") return format === "date" || format === "dateTime" ? format : "text";
  if (currency !== null) return "money";
  if (format === "plain") return "identifier";
  return type === "integer" ? "integer" : "number";
};

/** The name of a type for an author. @param {Reading} reading */
export const typeName = (reading) => (hasMembers(reading) ? words.types[/** @type {"list" | "object"} */ (reading.type)] : words.valueTypes[typeOf(reading)]);

/** @param {Reading} reading */
export const hasMembers = ({ type }) => type === "list" || type === "object";

/** @returns {Reading} */
export const newReading = () => ({ type: "string", format: null, currency: null, at: "", read: "text", element: "first", convert: [], each: null, emptyWhen: null, maxRows: null });

let nextStep = 1;

/** @param {any} converter @returns {Step} */
const stepOf = (converter) => {
  const [kind, value] = typeof converter === "string" ? [converter, null] : (Object.entries(converter)[0] ?? ["trim", null]);
  const step = { id: nextStep++, kind, text: "", other: "", language: "" };
  const lines = (/** @type {string[]} */ texts) => texts.join("\n");
  if (kind === "match") step.text = value;
  if (kind === "except") step.text = lines(value);
  if (kind === "number") step.text = value.decimalMark;
  if (kind === "date") Object.assign(step, { text: value.pattern, language: value.language ?? "" });
  if (kind === "boolean") Object.assign(step, { text: lines(value.true), other: lines(value.false) });
  if (kind === "map") step.text = lines(Object.entries(value).map(([from, to]) => `${from} = ${to}`));
  return step;
};

/** @param {Step} step @returns {any} */
const converterOf = ({ kind, text, other, language }) => {
  const lines = (/** @type {string} */ texts) => texts.split("\n").map((line) => line.trim()).filter(Boolean);
  const pair = (/** @type {string} */ line) => {
    const at = line.indexOf("=");
    return at < 0 ? [line, line] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  };
  switch (kind) {
    case "match": return { match: text };
    case "except": return { except: lines(text) };
    case "number": return { number: { decimalMark: text || "." } };
    case "date": return { date: { pattern: text, ...(language && { language }) } };
    case "boolean": return { boolean: { true: lines(text), false: lines(other) } };
    case "map": return { map: Object.fromEntries(lines(text).map(pair)) };
    default: return kind;
  }
};

/** The steps of a conversion, to be read only. @param {string} id @param {any[]} convert */
export const stepsText = (id, convert) =>
  h(
    "p",
    { id, class: "hint" },
    convert.length === 0
      ? words.noConverters
      : [
          `${words.steps} `,
          convert.map(stepOf).map(({ kind, text }, index) => [
            index > 0 && ", ",
            words.converters[/** @type {keyof typeof words.converters} */ (kind)],
            text !== "" && [" ", h("code", null, text)],
          ]),
        ],
  );

/** @param {Reading} reading @returns {Draft} */
export const draftOf = (reading) => ({ reading: { ...reading }, steps: reading.convert.map(stepOf), maxRows: String(reading.maxRows ?? ""), tried: null });

/** The number of rows after which a list ends; null stands for the usual one. @param {string} entered */
const rowLimit = (entered) => {
  if (entered.trim() === "") return null;
  const rows = Number(entered);
  if (!Number.isInteger(rows) || rows < 1 || rows > MAX_ROWS) throw new ApiError(words.maxRowsHint, 0);
  return rows;
};

/** What an author has entered, as the studio reads it. @param {Draft} draft @returns {Reading} */
export const readingOf = ({ reading, steps, maxRows }) => ({
  ...reading,
  at: reading.at.trim(),
  each: reading.each === null ? null : reading.each.trim(),
  emptyWhen: (reading.emptyWhen ?? "").trim() || null,
  currency: typeOf(reading) === "money" ? (reading.currency ?? "").trim().toUpperCase() : null,
  convert: hasMembers(reading) ? [] : steps.map(converterOf),
  maxRows: reading.type === "list" ? rowLimit(maxRows) : null,
});

/** The values that a part of the JSON Schema of definitions allows, once it is there. @type {Record<string, string[]> | null} */
let allowed = null;

const readSchema = async () => {
  allowed = {};
  const { $defs } = await read("schema");
  for (const name of ["DateLanguage", "DecimalMark"]) {
    const part = $defs?.[name] ?? {};
    allowed[name] = part.enum ?? (part.oneOf ?? []).map((/** @type {any} */ one) => one.const);
  }
  update();
};

/** @param {string} name @param {string} current */
const valuesOf = (name, current) => {
  const known = allowed?.[name] ?? [];
  return current === "" || known.includes(current) ? known : [current, ...known];
};

/** @param {Place} place */
export const readingForm = (place) => {
  const { id, draft, isPage } = place;
  const { reading } = draft;
  if (allowed === null) void readSchema().catch(() => {});
  const set = (/** @type {Partial<Reading>} */ change) => {
    Object.assign(reading, change);
    draft.tried = null;
    update();
  };
  const isGroup = hasMembers(reading);
  const inRow = place.within !== null;
  const attribute = typeof reading.read === "object";
  const isPositional = draft.tried === null ? reading.at === place.positionalAt : draft.tried.positional;
  return [
    textField({ id: `${id}-at`, label: isPage ? words.selector : words.pointer, hint: inRow ? words.placeInRowHint : isPage ? undefined : words.pointerHint, value: reading.at, code: true, oninput: (at) => set({ at }) }),
    isPositional && h("p", { class: "hint warn", key: `${id}-positional` }, sentence(place.within?.type === "list" ? words.positionalColumn : words.positionalSelector)),
    isGroup && reading.each !== null && textField({ id: `${id}-each`, label: words.rowSelector, hint: words.rowSelectorHint, value: reading.each, code: true, required: true, oninput: (each) => set({ each }) }),
    isPage && reading.type === "list" && textField({ id: `${id}-empty-when`, label: words.emptyWhen, hint: words.emptyWhenHint, value: reading.emptyWhen ?? "", code: true, oninput: (emptyWhen) => set({ emptyWhen }) }),
    reading.type === "list" && textField({
      id: `${id}-max-rows`, label: words.maxRows, hint: words.maxRowsHint, value: draft.maxRows,
      oninput: (maxRows) => {
        draft.maxRows = maxRows;
        update();
      },
    }),
    isPage && !isGroup && [
      h(
        "div",
        { class: "pair", key: `${id}-content` },
        choice({
          id: `${id}-read`, label: words.whatIsRead, selected: attribute ? "attribute" : String(reading.read),
          options: [{ value: "text", label: words.readText }, { value: "value", label: words.readValue }, { value: "attribute", label: words.readAttributeOf }],
          onchange: (value) => set({ read: value === "attribute" ? { attribute: "" } : /** @type {"text" | "value"} */ (value) }),
        }),
        choice({
          id: `${id}-element`, label: words.whichElement, selected: reading.element,
          options: [{ value: "first", label: words.elementFirst }, { value: "last", label: words.elementLast }],
          onchange: (element) => set({ element: /** @type {"first" | "last"} */ (element) }),
        }),
      ),
      typeof reading.read === "object" && textField({ id: `${id}-attribute`, label: words.attributeName, value: reading.read.attribute, code: true, required: true, oninput: (name) => set({ read: { attribute: name.trim() } }) }),
    ],
    !isGroup && [!place.forAddresses && typeControls(id, reading, set), converterControls(id, draft)],
    trial(place),
  ];
};

/** @param {string} id @param {Reading} reading @param {(change: Partial<Reading>) => void} set */
const typeControls = (id, reading, set) => {
  const current = typeOf(reading);
  return [
    choice({
      id: `${id}-type`, label: words.typeOfValue, selected: current,
      options: Object.entries(words.valueTypes).map(([value, label]) => ({ value, label })),
      onchange: (value) => {
        const { type, format, money } = TYPES[/** @type {keyof typeof TYPES} */ (value)];
        set({ type, format, currency: money ? (reading.currency ?? "") : null });
      },
    }),
    current === "money" && textField({ id: `${id}-currency`, label: words.currency, hint: words.currencyHint, value: reading.currency ?? "", code: true, required: true, oninput: (currency) => set({ currency }) }),
  ];
};

/** @param {string} id @param {Draft} draft */
const converterControls = (id, draft) => {
  const change = (/** @type {() => void} */ work) => {
    work();
    draft.tried = null;
    update();
  };
  const swap = (/** @type {number} */ at, /** @type {number} */ to) =>
    change(() => {
      const [step] = draft.steps.splice(at, 1);
      if (step) draft.steps.splice(to, 0, step);
    });
  return h(
    "fieldset",
    { key: `${id}-steps`, class: "converters" },
    h("legend", null, words.convert),
    h("p", { class: "hint" }, draft.steps.length === 0 ? words.noConverters : words.convertHint),
    draft.steps.map((step, index) => {
      const own = `${id}-step-${step.id}`;
      const number = index + 1;
      const set = (/** @type {Partial<Step>} */ values) => change(() => Object.assign(step, values));
      return h(
        "div",
        { class: "converter", key: own, role: "group", "aria-label": say(words.converterNumber, { number }) },
        choice({
          id: `${own}-kind`, label: say(words.converterNumber, { number }), selected: step.kind,
          options: CONVERTERS.map((value) => ({ value, label: words.converters[value] })),
          onchange: (kind) => set({ kind, text: kind === "number" ? "." : "", other: "", language: "" }),
        }),
        stepControls(own, step, set),
        h(
          "div",
          { class: "row small" },
          h("button", { type: "button", "aria-label": say(words.upNamed, { name: say(words.converterNumber, { number }) }), "aria-disabled": index === 0 ? "true" : undefined, onclick: () => index > 0 && swap(index, index - 1) }, words.up),
          h("button", { type: "button", class: "danger-text", "aria-label": say(words.removeNamed, { name: say(words.converterNumber, { number }) }), onclick: () => change(() => draft.steps.splice(index, 1)) }, words.remove),
        ),
      );
    }),
    h("div", { class: "row small" }, h("button", { id: `${id}-add-step`, type: "button", onclick: () => change(() => draft.steps.push(stepOf("trim"))) }, words.addConverter)),
  );
};

/** @param {string} id @param {Step} step @param {(values: Partial<Step>) => void} set */
const stepControls = (id, step, set) => {
  const text = (/** @type {string} */ label, /** @type {string | undefined} */ hint, /** @type {object} */ more = {}) =>
    textField({ id: `${id}-text`, label, hint, value: step.text, oninput: (value) => set({ text: value }), ...more });
  switch (step.kind) {
    case "match": return text(words.pattern, words.patternHint, { code: true });
    case "except": return text(words.exceptTexts, words.onePerLine, { rows: 2 });
    case "number":
      return choice({ id: `${id}-text`, label: words.decimalMark, selected: step.text, options: valuesOf("DecimalMark", step.text).map((value) => ({ value, label: say(words.decimalMarkOf, { mark: value }) })), onchange: (value) => set({ text: value }) });
    case "date":
      return [
        text(words.datePattern, words.datePatternHint, { code: true }),
        choice({
          id: `${id}-language`, label: words.dateLanguage, selected: step.language,
          options: [{ value: "", label: words.dateLanguageDefault }, ...valuesOf("DateLanguage", step.language).map((value) => ({ value, label: value }))],
          onchange: (language) => set({ language }),
        }),
      ];
    case "boolean":
      return [
        text(words.trueTexts, words.onePerLine, { rows: 2 }),
        textField({ id: `${id}-other`, label: words.falseTexts, hint: words.onePerLine, value: step.other, rows: 2, oninput: (other) => set({ other }) }),
      ];
    case "map": return text(words.mapTexts, words.mapTextsHint, { rows: 3 });
    default: return null;
  }
};

/** What a column has in all rows of its list. @param {NonNullable<import("./api.js").Tried["column"]>} column @param {number} rows */
const columnFacts = ({ found, unread, values }, rows) => [
  h("dt", { key: "column" }, words.list),
  h("dd", { key: "column-of", class: found < rows ? "bad" : undefined }, say(words.columnFound, { found, rows })),
  unread > 0 && [h("dt", { key: "unread" }, words.problem), h("dd", { key: "unread-of", class: "bad" }, say(words.columnUnread, { count: unread }))],
  values.length > 0 && [
    h("dt", { key: "values" }, words.firstRows),
    h("dd", { key: "values-of", class: "sample" }, h("ol", null, values.map((value, index) => h("li", { key: index }, shownValue(value))))),
  ],
];

/** Tries on the page what an author has entered. @param {Place} place */
const trial = ({ id, draft, isPage, node, within, forAddresses = false }) => {
  const key = `${id}-try`;
  const { tried } = draft;
  const work = async () => {
    // What was found before may be of another page.
    draft.tried = null;
    const found = await post("reading", { node, within, forAddresses, reading: readingOf(draft) });
    draft.tried = found;
  };
  const use = (/** @type {import("./api.js").TypedValue} */ { type, format, currency, convert }) => {
    Object.assign(draft.reading, { type, format: format ?? null, currency: currency ?? null });
    draft.steps = convert.map(stepOf);
    draft.tried = null;
    void act(key, work);
  };
  return h(
    "div",
    { class: "trial", key },
    h("div", { class: "row" }, action({ key, label: isPage ? words.tryOnPage : words.tryOnResponse, work })),
    h(
      "div",
      { "aria-live": "polite" },
      tried && [
        tried.otherPage !== null && h("p", { class: "notice", key: "other-page" }, rich(say(words.triedOnOtherPage, { url: `\`${tried.otherPage}\`` }))),
        h(
          "dl",
          { class: "facts" },
          isPage && !hasMembers(draft.reading) && tried.column === null && [h("dt", { key: "matches" }, words.found), h("dd", { key: "matches-of" }, tried.matches === 0 ? words.nothing : say(draft.reading.element === "last" ? words.matchesLast : words.matches, { count: tried.matches }))],
          tried.column !== null && columnFacts(tried.column, tried.rows ?? 0),
          tried.rows !== null && tried.column === null && [h("dt", { key: "rows" }, words.list), h("dd", { key: "rows-of" }, say(words.rows, { count: tried.rows }))],
          tried.instead !== null && [h("dt", { key: "instead" }, words.shownInstead), h("dd", { key: "instead-of" }, say(words.visibleElements, { count: tried.instead }))],
          tried.found !== null && [h("dt", { key: "found" }, words.contents), h("dd", { key: "found-of", class: "sample" }, tried.found)],
          tried.problem !== null ? [h("dt", { key: "problem" }, words.problem), h("dd", { key: "problem-of", class: "bad" }, sentence(tried.problem))] : tried.value !== null && tried.column === null && [h("dt", { key: "value" }, words.readsAs), h("dd", { key: "value-of", class: "sample" }, shownValue(tried.value))],
        ),
        tried.values.length > 0 && [
          h("p", { class: "hint", key: "others" }, words.otherReadings),
          h(
            "ul",
            { class: "plain-list", key: "proposals" },
            tried.values.map((value, index) =>
              h(
                "li",
                { key: index, class: "row small" },
                h("button", { type: "button", "aria-label": say(words.useNamed, { name: value.description }), onclick: () => use(value) }, words.use),
                h("span", null, value.description, ": ", h("span", { class: "sample" }, shownValue(value.value))),
              ),
            ),
          ),
        ],
      ],
    ),
  );
};
