// The tab with the pages that the definition recognizes.

import { post } from "./api.js";
import { h } from "./dom.js";
import { inspectButton, inspection, startInspection } from "./inspection.js";
import { KINDS, kindName, marking, markingView, startMarking } from "./marking.js";
import { announce, focusLater } from "./store.js";
import { action, confirmed, rich } from "./widgets.js";
import { say, words } from "./words.js";

/** @param {import("./api.js").State} state @param {(tab: import("./store.js").Tab) => void} openTab */
export const pagesTab = (state, openTab) => {
  if (marking.current) {
    return markingView(marking.current, (kind) => {
      const opener = marking.current?.opener ?? "tab-pages";
      void startInspection("mark-choose", { tab: "pages", use: "mark", pageKind: kind, opener }).then((started) => {
        // It may have been cancelled.
        if (started && inspection.active) marking.current = null;
      });
    });
  }
  const pages = state.outline?.pages ?? [];
  const of = (/** @type {string} */ kind) => pages.filter((page) => page.kind === kind);
  const others = pages.filter((page) => !KINDS.some((kind) => kind === page.kind));
  const fields = state.outline?.fields.length ?? 0;
  const saved = state.saved.definition && (state.fixture === null || state.saved.fixture);
  const steps = [
    pageStep("signIn", words.stepSignIn, words.stepSignInHelp, of("signIn")),
    pageStep("signedIn", words.stepSignedIn, words.stepSignedInHelp, of("signedIn")),
    step("fields", words.stepFields, words.stepFieldsHelp, fields > 0, h("button", { type: "button", onclick: () => openTab("fields") }, words.goToFields)),
    step("record", words.stepRecord, words.stepRecordHelp, state.fixture !== null && state.fixture.matches !== false, h("button", { type: "button", onclick: () => openTab("run") }, words.goToRun)),
    step("save", words.stepSave, words.stepSaveHelp, saved, null),
  ];
  return [
    h("p", { class: "lead" }, words.pagesLead),
    h("div", { class: "row" }, h("button", { id: "mark-open", type: "button", class: "primary", onclick: () => startMarking("", "mark-open") }, words.markShownAs)),
    h("ol", { class: "steps" }, steps),
    h("h3", null, words.optionalPages),
    h("p", { class: "hint" }, words.optionalLead),
    h(
      "ul",
      { class: "steps" },
      KINDS.slice(2).map((kind) => {
        const known = of(kind);
        return h(
          "li",
          { key: kind },
          h("div", { class: "optional" }, h("div", null, h("h4", null, kindName(kind)), kind in words.kindHelp && h("p", { class: "hint" }, words.kindHelp[/** @type {keyof typeof words.kindHelp} */ (kind)])), known.length === 0 && markButton(kind)),
          known.map(pageCard),
        );
      }),
    ),
    others.length > 0 && [h("h3", null, words.otherPages), others.map(pageCard)],
    h("h3", null, words.dismissed),
    h("p", { class: "hint" }, words.dismissedLead),
    dismissed(state.outline?.dismissed ?? []),
    h("div", { class: "row" }, inspectButton({ id: "add-dismissed", label: words.addDismissed, purpose: { tab: "pages", use: "dismiss", pageKind: "" } })),
  ];
};

/** @param {string} key @param {string} title @param {string} help @param {boolean} done @param {...import("./dom.js").Children} rest */
const step = (key, title, help, done, ...rest) =>
  h(
    "li",
    { key, class: done ? "is-done" : undefined },
    h("div", { class: "step" }, h("h3", null, title), h("span", { class: done ? "tag good" : "tag quiet" }, done ? words.done : words.toDo)),
    h("p", { class: "hint" }, help),
    rest,
  );

/** @param {string} kind @param {string} title @param {string} help @param {import("./api.js").KnownPage[]} known */
const pageStep = (kind, title, help, known) => step(kind, title, help, known.length > 0, known.map(pageCard), known.length === 0 && markButton(kind));

/** @param {string} kind */
const markButton = (kind) => {
  const id = `mark-${kind}`;
  return h("div", { class: "row" }, h("button", { id, type: "button", onclick: () => startMarking(kind, id), "aria-label": say(words.markAs, { kind: kindName(kind) }) }, words.markShown));
};

/** @param {import("./api.js").KnownPage} page */
const pageCard = (page) => {
  const key = `remove-page-${page.name}`;
  const mark = page.holds === null ? ["quiet", words.shownUnknown] : page.holds ? ["shown", words.shownNow] : ["quiet", words.notShown];
  return h(
    "div",
    { class: page.holds ? "known is-shown" : "known", key: `page-${page.name}` },
    h("div", { class: "step" }, h("code", null, page.name), h("span", { class: `tag ${mark[0]}` }, mark[1])),
    h("p", { class: "hint" }, page.conditions.length > 1 ? words.recognizedByAny : words.recognizedBy),
    h("ul", { class: "conditions" }, page.conditions.map((condition) => h("li", null, rich(condition)))),
    h(
      "div",
      { class: "row" },
      action({
        key,
        label: words.removePage,
        name: say(words.removePageNamed, { name: page.name }),
        class: "plain danger-text",
        work: async () => {
          if (!(await confirmed({ title: say(words.removePageTitle, { name: kindName(page.kind) }), text: words.removePageText, confirm: words.removePage, danger: true }))) return;
          await post("edit", { op: "removePage", name: page.name });
          announce(say(words.pageRemoved, { name: kindName(page.kind) }));
          focusLater("tab-pages");
        },
      }),
    ),
  );
};

/** @param {string[]} selectors */
const dismissed = (selectors) =>
  selectors.length === 0
    ? h("p", { class: "none" }, words.noDismissed)
    : h(
        "ul",
        { class: "plain-list" },
        selectors.map((selector) =>
          h(
            "li",
            { key: selector, class: "row" },
            h("code", null, selector),
            action({
              key: `remove-dismissed-${selector}`,
              label: words.removeDismissed,
              name: say(words.removeDismissedNamed, { selector }),
              class: "plain danger-text",
              work: async () => {
                await post("edit", { op: "removeDismissed", selector });
                announce(say(words.dismissedRemoved, { selector }));
                focusLater("add-dismissed");
              },
            }),
          ),
        ),
      );
