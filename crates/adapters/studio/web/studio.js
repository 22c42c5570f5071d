// The authoring studio: the live browser on the left, the definition on the right.

import { ApiError, follow, post } from "./api.js";
import { definitionTab, isEdited, receive } from "./definition.js";
import { h, render } from "./dom.js";
import { cancelEditing, fieldsTab } from "./fields.js";
import { cancelInspection, inspection, inspectionPanel, inspectionStage, inspectButton, stopInspection } from "./inspection.js";
import { cancelMarking, kindName } from "./marking.js";
import { pagesTab } from "./pages.js";
import { cancelResponse, responsesTab } from "./responses.js";
import { runTab } from "./run.js";
import { announce, focusLater, onUpdate, ui, update } from "./store.js";
import { action, chosen } from "./widgets.js";
import { say, words } from "./words.js";

const TABS = /** @type {import("./store.js").Tab[]} */ (["pages", "fields", "responses", "run", "definition"]);
const [header, stage, panel] = ["header", "stage", "panel"].map((id) => /** @type {HTMLElement} */ (document.getElementById(id)));

/** @param {import("./store.js").Tab} tab */
const openTab = (tab) => {
  ui.tab = tab;
  focusLater(`tab-${tab}`);
};

// Header

/** @param {import("./api.js").State | null} state */
const headerView = (state) => {
  const outline = state?.outline;
  return [
    h("span", { class: "brand" }, words.product, " ", h("span", { class: "quiet-text" }, words.studio)),
    h("h1", null, outline?.displayName || (state ? words.unnamed : words.loading)),
    outline && h("span", { class: "tag quiet", key: "version" }, say(words.version, { version: outline.version })),
    outline && h("span", { class: `tag ${outline.environment === "production" ? "good" : "warn"}`, key: "environment" }, outline.environment),
    state && findingsSummary(state),
    state && h("div", { class: "saving", key: "saving" }, savingView(state)),
  ];
};

/** @param {import("./api.js").State} state */
const findingsSummary = ({ findings }) => {
  const errors = findings.filter(({ severity }) => severity === "error").length;
  const warnings = findings.length - errors;
  if (findings.length === 0) return null;
  const text = [errors > 0 && say(words.errorCount, { count: errors }), warnings > 0 && say(words.warningCount, { count: warnings })].filter(Boolean).join(", ");
  return h("button", { key: "findings", type: "button", class: `tag ${errors > 0 ? "bad" : "warn"}`, onclick: showFindings }, text);
};

const showFindings = () => {
  ui.tab = "definition";
  focusLater("findings-heading");
};

/** The shares of new sessions that a version can be published for, in percent. */
const SHARES = [100, 50, 25, 10, 5, 1];

/** @param {import("./api.js").State} state */
const savingView = ({ saved, fixture, outline, home }) => {
  const isSaved = saved.definition && (fixture === null || saved.fixture);
  const status = isSaved ? (saved.file ? say(words.savedTo, { file: saved.file }) : words.saved) : saved.file ? words.unsaved : words.neverSaved;
  const publish = async () => {
    const version = outline?.version ?? "";
    const share = await chosen({
      title: say(words.publishTitle, { version }), text: words.publishText, confirm: words.publish, label: words.share,
      options: SHARES.map((percent) => ({ value: String(percent), text: percent === 100 ? words.shareOfAll : say(words.sharePercent, { percent }) })),
    });
    if (share === null) return;
    const percent = Number(share);
    try {
      const answer = await post("publish", percent === 100 ? {} : { percent });
      announce(say(words.published, { version: answer.version }));
    } catch (error) {
      // The page leads back to this one once the author has confirmed who they are.
      if (error instanceof ApiError && error.confirm !== null) location.assign(error.confirm);
      throw error;
    }
  };
  return [
    h("span", { class: isSaved ? "quiet-text" : "warn", role: "status" }, status),
    action({
      key: "save", label: words.save, class: saved.canPublish ? undefined : "primary",
      work: async () => {
        const { files } = await post("save");
        announce(say(words.savedFiles, { files: (files ?? []).join(", ") }));
      },
    }),
    action({ key: "publish", label: words.publish, class: saved.canPublish ? "primary" : undefined, work: publish, unavailable: !saved.canPublish, describedBy: saved.canPublish ? undefined : "publish-help" }),
    saved.obstacle !== null && h("span", { id: "publish-help", class: "quiet-text", key: "obstacle" }, say(words.publishObstacle, { reason: saved.obstacle })),
    home !== null && h("a", { href: home, key: "home" }, words.portal),
  ];
};

// The browser

/** @type {string | null} */
let frameUrl = null;
/** @type {HTMLIFrameElement | null} */
let frame = null;

/**
 * Returns the live browser. A new browser gets a new frame, since a change of the part after `#` alone would not load the page again; a frame that stays
 * is never moved, which would load it again.
 * @param {string | null} url
 */
const frameFor = (url) => {
  if (url === frameUrl) return frame;
  frameUrl = url;
  frame = null;
  if (url === null) return null;
  const { origin, href } = new URL(url, location.href);
  if (origin !== location.origin) return null;
  frame = document.createElement("iframe");
  frame.title = words.liveBrowser;
  frame.referrerPolicy = "origin";
  frame.allow = "clipboard-read; clipboard-write";
  frame.src = href;
  return frame;
};

/** @param {import("./api.js").State | null} state */
const stageView = (state) => {
  const { active } = inspection;
  const live = frameFor(state?.embedUrl ?? null);
  // It keeps its size while the picture covers it, since the remote browser takes the size of the frame.
  if (live) live.inert = active !== null;
  const page = state?.page ?? null;
  const shown = state?.outline?.pages.filter(({ holds }) => holds) ?? [];
  return [
    h(
      "div",
      { class: "address-bar", key: "address" },
      action({ key: "back", label: words.back, name: words.backHint, work: () => post("back"), unavailable: page === null || active !== null }),
      h("label", { for: "page-address", class: "hidden" }, words.address),
      // A field rather than a text, so that a long address can be read to its end, and copied.
      h("input", { id: "page-address", class: "address", readonly: true, spellcheck: "false", value: page?.url ?? words.noPage }),
      // In a place of its own, so that the browser does not move while the author clicks in it.
      h(
        "div",
        { class: "page-status", key: "page-status" },
        page && !page.settled && h("span", { class: "tag quiet" }, words.pageLoading),
        page && h("span", { class: `tag ${shown.length > 0 ? "shown" : "quiet"}` }, shown.length > 0 ? shown.map(({ kind }) => kindName(kind)).join(", ") : words.pageUnknown),
        page && state?.timeZone && h("span", { class: "tag quiet", key: "time-zone", title: words.timeZoneHint }, say(words.timeZone, { zone: state.timeZone })),
        inspection.opening && [h("span", { class: "none", role: "status", key: "opening" }, words.takingPicture), h("button", { type: "button", key: "cancel-opening", onclick: cancelInspection }, words.cancel)],
      ),
      action({ key: "new-browser", label: words.newBrowser, work: () => post("run", { from: "explore" }).then(() => stopInspection()) }),
      inspectButton({
        id: "choose",
        label: words.chooseElement,
        purpose: ui.tab === "pages" ? { tab: "pages", use: "mark", pageKind: "" } : { tab: "fields", use: "field", pageKind: "" },
        unavailable: page === null || active !== null,
      }),
    ),
    h(
      "div",
      { class: "view", key: "view" },
      h("div", { class: active ? "live is-covered" : "live", key: "live" }, live ?? h("p", { class: "empty", role: "status" }, words.browserStarting)),
      active && inspectionStage(active),
    ),
  ];
};

// The panel

/** @param {KeyboardEvent} event */
const onTabKey = (event) => {
  const place = TABS.indexOf(ui.tab);
  const next = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: TABS.length - 1 }[event.key];
  if (next === undefined) return;
  event.preventDefault();
  openTab(/** @type {import("./store.js").Tab} */ (TABS.at(next % TABS.length)));
};

/** @param {import("./api.js").State} state */
const badges = (state) => ({
  pages: state.outline?.pages.length, fields: state.outline?.fields.length, responses: state.responses.length, run: undefined, definition: state.findings.length || undefined,
});

/** @param {import("./api.js").State | null} state */
const panelView = (state) => [
  ui.connection === "lost" && h("p", { class: "trouble banner", role: "alert", key: "lost" }, words.connectionLost),
  ui.connection === "ended" && h("p", { class: "trouble banner", role: "alert", key: "ended" }, words.ended),
  h("h2", { class: "hidden" }, words[ui.tab]),
  h(
    "div",
    { role: "tablist", "aria-label": words.tabs, class: "tabs", key: "tabs", onkeydown: onTabKey },
    TABS.map((tab) => {
      const count = state ? badges(state)[tab] : undefined;
      return h(
        "button",
        {
          id: `tab-${tab}`, type: "button", role: "tab", "aria-selected": ui.tab === tab, "aria-controls": "tab-panel", tabindex: ui.tab === tab ? "0" : "-1",
          onclick: () => openTab(tab),
        },
        words[tab],
        count !== undefined && count > 0 && h("span", { class: "count" }, count),
      );
    }),
  ),
  h(
    "div",
    { role: "tabpanel", id: "tab-panel", key: `tab-panel-${ui.tab}`, class: "tab-panel", "aria-labelledby": `tab-${ui.tab}`, tabindex: "0" },
    state === null ? h("p", { class: "empty", role: "status" }, ui.connection === "ended" ? words.ended : words.connecting) : tabView(state),
  ),
];

/** @param {import("./api.js").State} state */
const tabView = (state) => {
  const { active } = inspection;
  if (active && active.purpose.tab === ui.tab) return inspectionPanel(active);
  const invalid = state.outline === null && (ui.tab === "pages" || ui.tab === "fields") && h("div", { class: "notice", key: "invalid" }, h("p", null, words.invalid), h("button", { type: "button", onclick: showFindings }, words.showFindings));
  switch (ui.tab) {
    case "pages": return [invalid, pagesTab(state, openTab)];
    case "fields": return [invalid, fieldsTab(state, openTab)];
    case "responses": return responsesTab(state);
    case "run": return runTab(state);
    case "definition": return definitionTab(state);
  }
};

// Cancels what the author has begun in the part that is shown.
document.addEventListener("keydown", (event) => {
  const { target } = event;
  // A list of options and a dialog close by themselves, and a search is cleared.
  const isOwn = target instanceof HTMLSelectElement || (target instanceof HTMLInputElement && target.type === "search" && target.value !== "");
  if (event.key !== "Escape" || event.defaultPrevented || isOwn || document.querySelector("dialog[open]")) return;
  const cancels = { pages: cancelMarking, fields: cancelEditing, responses: cancelResponse, run: () => false, definition: () => false };
  // A page may be marked while an element is selected on another tab, which stays selected.
  const isMarking = ui.tab === "pages" && inspection.active?.purpose.tab !== "pages";
  if ((isMarking && cancelMarking()) || cancelInspection() || cancels[ui.tab]()) event.preventDefault();
});

onUpdate(() => {
  const { state } = ui;
  document.title = [state?.outline?.displayName, words.studio, words.product].filter(Boolean).join(" · ");
  render(header, headerView(state));
  render(stage, stageView(state));
  render(panel, panelView(state));
});

// The texts of index.html, which has them for the moment before this script runs.
/** @type {HTMLElement} */ (document.querySelector(".skip")).textContent = words.skip;
stage.setAttribute("aria-label", words.browser);
panel.setAttribute("aria-label", words.definition);

window.addEventListener("beforeunload", (event) => {
  if (isEdited()) event.preventDefault();
});

update();
void follow(
  (state) => {
    // The elements of a picture are gone with their browser.
    if (ui.state && ui.state.embedUrl !== state.embedUrl) stopInspection();
    ui.state = state;
    receive(state);
    update();
  },
  (connection) => {
    if (ui.connection === connection) return;
    ui.connection = connection;
    update();
  },
);
