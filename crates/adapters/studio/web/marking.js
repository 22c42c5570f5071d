// Marking the page that the browser shows as one of the known kinds.

import { ApiError, messageOf, post } from "./api.js";
import { h } from "./dom.js";
import { act, announce, focusLater, ui, update } from "./store.js";
import { action, choice, failure, form, plain, radios, rich } from "./widgets.js";
import { say, words } from "./words.js";

/** In the order in which an applicant may meet them. */
export const KINDS = /** @type {(keyof typeof words.kinds)[]} */ ([
  "signIn", "signedIn", "code", "push", "securityQuestion", "accountPicker", "captcha", "wrongPassword", "wrongCode", "locked", "down",
]);

/** @param {string} kind */
export const kindName = (kind) => (kind in words.kinds ? words.kinds[/** @type {keyof typeof words.kinds} */ (kind)] : kind);

export const kindOptions = () => [{ value: "", label: words.chooseKind }, ...KINDS.map((kind) => ({ value: /** @type {string} */ (kind), label: kindName(kind) }))];

/**
 * @typedef {{inspection: number, url: string}} MarkedPage
 * @typedef {{kind: string, inspection: MarkedPage | null, suggestions: import("./api.js").Suggestion[] | null, comparedWith: string[], otherScreen: "phone" | "desktop" | null, suggestion: number | null,
 *   marking: "also" | "instead" | null, opener: string, tab: import("./store.js").Tab, reason: string | null}} Marking
 * @type {{current: Marking | null}}
 */
export const marking = { current: null };

/**
 * @param {string} kind
 * @param {string} opener
 * @param {{inspection: MarkedPage, reason: string}} [given] The page to mark, and why its author has to choose.
 */
export const startMarking = (kind, opener, given) => {
  // The author returns to where they were.
  const { tab } = ui;
  marking.current = { kind, inspection: given?.inspection ?? null, suggestions: null, comparedWith: [], otherScreen: null, suggestion: null, marking: null, opener, tab, reason: given?.reason ?? null };
  ui.tab = "pages";
  ui.errors.delete("mark");
  focusLater("mark-heading");
  void suggest(marking.current);
};

export const stopMarking = () => {
  const { current } = marking;
  marking.current = null;
  ui.errors.delete("mark-look");
  if (current) {
    ui.tab = current.tab;
    focusLater(current.opener);
  }
  update();
};

/** Returns whether a page was being marked. */
export const cancelMarking = () => {
  if (!marking.current) return false;
  stopMarking();
  return true;
};

/** @param {Marking} current */
const suggest = async (current) => {
  const { kind } = current;
  current.suggestions = null;
  current.suggestion = null;
  ui.errors.delete("mark-look");
  ui.errors.delete("mark");
  update();
  try {
    current.inspection ??= await post("inspect");
    if (!kind || current.kind !== kind) return;
    /** @type {import("./api.js").Suggestions} */
    const { conditions, comparedWith, otherScreen, preferred } = await post("suggest", { kind, inspection: current.inspection?.inspection, node: null });
    // The author may have chosen another kind in the meantime.
    if (current.kind !== kind) return;
    current.suggestions = conditions;
    current.comparedWith = comparedWith;
    current.otherScreen = otherScreen;
    current.suggestion = preferred;
  } catch (error) {
    if (current.kind === kind) ui.errors.set("mark-look", messageOf(error));
  }
  update();
};

/**
 * @param {string} name
 * @param {{suggestions: import("./api.js").Suggestion[] | null, comparedWith: string[], otherScreen: "phone" | "desktop" | null, suggestion: number | null}} proposed
 * @param {(index: number) => void} onchange
 */
export const suggestionRadios = (name, { suggestions, comparedWith, otherScreen, suggestion: selected }, onchange) => {
  if (suggestions === null) return h("p", { class: "none", role: "status", key: `${name}-wait` }, words.lookingForConditions);
  if (suggestions.length === 0) return h("p", { class: "none", role: "status", key: `${name}-none` }, words.noConditions);
  return radios({
    name,
    legend: words.conditions,
    hint: [comparedWith.length > 0 ? say(words.comparedWith, { pages: comparedWith.map(pageName).join(", ") }) : words.nothingToCompare, words.conditionsHint, otherScreen === null ? words.oneScreenOnly : ""].filter((text) => text !== "").join(" "),
    selected,
    onchange,
    options: suggestions.map((suggestion, index) => {
      const { text, alsoOn, counts } = suggestion;
      return {
        value: index,
        label: rich(text),
        // The label of a response says that each counts.
        detail: counts === "afterVanishing" ? words.countsAfterVanishing : counts === null && comparedWith.length > 0 && alsoOn.length === 0 && words.notElsewhere,
        warning: warningsOf(suggestion).join(". "),
      };
    }),
  });
};

/** @param {import("./api.js").Suggestion} suggestion @returns {string[]} */
const warningsOf = ({ alsoOn, inRow, positional, mayBeOwn, hiddenOn }) =>
  [
    alsoOn.length > 0 ? say(words.alsoOn, { pages: alsoOn.map(pageName).join(", ") }) : "",
    mayBeOwn ? words.conditionMayBeOwn : "",
    inRow ? words.inRow : "",
    hiddenOn ? words.hiddenOn[hiddenOn] : "",
    positional ? words.positionalCondition : "",
  ].filter((warning) => warning !== "");

/** Says as which page one was marked, and by what it is recognized. @param {string} kind @param {import("./api.js").Suggestion} suggestion */
export const markedText = (kind, { text }) => say(words.pageMarked, { kind: kindName(kind), condition: plain(text) });

/** What becomes of the pages of a kind that were marked before, unless the author says it: a site has many pages after sign-in. @param {string} kind */
export const usualMarking = (kind) => (kind === "signedIn" ? "also" : "instead");

/**
 * Asks what becomes of the pages that were marked before, if there are any.
 * @param {string} name
 * @param {string} kind
 * @param {"also" | "instead" | null} selected
 * @param {(marking: "also" | "instead") => void} onchange
 */
export const markingRadios = (name, kind, selected, onchange) =>
  ui.state?.outline?.pages.some((page) => page.kind === kind) &&
  radios({
    name,
    legend: say(words.markedBefore, { kind: kindName(kind) }),
    selected: selected ?? usualMarking(kind),
    onchange,
    options: [
      { value: "also", label: words.markAlso, detail: words.markAlsoHelp },
      { value: "instead", label: words.markInstead, detail: words.markInsteadHelp },
    ],
  });

/** The name of a page for an author: that of its kind, if it is the only one of the kind. @param {string} name */
const pageName = (name) => {
  const page = ui.state?.outline?.pages.find((known) => known.name === name);
  return page ? kindName(page.kind) : kindName(name);
};

/** @param {Marking} current @param {(kind: string) => void} chooseElement */
export const markingView = (current, chooseElement) => {
  const url = ui.state?.page?.url;
  const changed = current.inspection !== null && url !== undefined && url !== current.inspection.url;
  const isLooking = current.kind !== "" && current.suggestions === null && !ui.errors.has("mark-look");
  const again = () => {
    current.inspection = null;
    void suggest(current);
  };
  const save = async () => {
    const suggestion = current.suggestion === null ? undefined : current.suggestions?.[current.suggestion];
    if (!current.kind) throw new ApiError(words.chooseKindFirst, 0);
    if (!suggestion) throw new ApiError(words.chooseConditionFirst, 0);
    await post("edit", { op: "markPage", kind: current.kind, condition: suggestion.condition, marking: current.marking ?? usualMarking(current.kind), inspection: current.inspection?.inspection });
    announce(markedText(current.kind, suggestion));
    stopMarking();
  };
  return h(
    "div",
    { class: "card", key: "marking" },
    h("h3", { id: "mark-heading", tabindex: "-1" }, words.mark),
    h("p", { class: "address" }, current.inspection?.url ?? url ?? words.noPage),
    current.reason !== null && h("p", { class: "notice", role: "status", key: "mark-reason" }, current.reason),
    changed && h("div", { class: "notice", role: "status" }, h("p", null, words.pageChanged), h("button", { type: "button", onclick: again }, words.refresh)),
    form(
      words.mark,
      () => void (isLooking || act("mark", save)),
      choice({
        id: "mark-kind",
        label: words.kind,
        selected: current.kind,
        options: kindOptions(),
        onchange: (kind) => {
          current.kind = kind;
          current.marking = null;
          void suggest(current);
        },
      }),
      current.kind in words.kindHelp && h("p", { class: "hint" }, words.kindHelp[/** @type {keyof typeof words.kindHelp} */ (current.kind)]),
      ui.errors.has("mark-look") ? h("div", { class: "notice" }, failure("mark-look"), h("button", { type: "button", onclick: again }, words.refresh)) : null,
      current.kind && !ui.errors.has("mark-look") && suggestionRadios("condition", current, (suggestion) => {
        current.suggestion = suggestion;
        update();
      }),
      markingRadios("marking", current.kind, current.marking, (marked) => {
        current.marking = marked;
        update();
      }),
      h(
        "div",
        { class: "row actions" },
        action({ key: "mark", label: words.markPage, class: "primary", work: async () => {}, submit: true, unavailable: isLooking }),
        h("button", { type: "button", "aria-busy": ui.busy.has("mark-choose") ? "true" : undefined, onclick: () => chooseElement(current.kind) }, words.chooseElementInstead),
        failure("mark-choose"),
        h("button", { type: "button", class: "plain", onclick: stopMarking }, words.cancel),
      ),
    ),
  );
};
