// The tab in which an author runs the definition.

import { post } from "./api.js";
import { isEdited } from "./definition.js";
import { create, h, render } from "./dom.js";
import { stopInspection } from "./inspection.js";
import { startMarking } from "./marking.js";
import { announce } from "./store.js";
import { action, rich, shownValue } from "./widgets.js";
import { say, words } from "./words.js";

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

/** @param {import("./api.js").State} state */
export const runTab = (state) => {
  const { run, fixture } = state;
  const start = (/** @type {"here" | "start"} */ from) => async () => {
    await post("run", { from });
    // The author agrees in the browser, which must be in view.
    stopInspection();
    announce(words.runStarted);
  };
  const style = { completed: "good", failed: "bad", declined: "warn", running: "shown" }[run.state] ?? "quiet";
  const name = run.state in words.states ? words.states[/** @type {keyof typeof words.states} */ (run.state)] : run.state;
  return [
    h("p", { class: "lead" }, words.runLead),
    isEdited() && h("p", { class: "notice", key: "edited" }, words.runWithoutEdits),
    h(
      "div",
      { class: "choices" },
      h("div", null, action({ key: "run-here", label: words.runHere, class: "primary", work: start("here"), describedBy: "run-here-help" }), h("p", { class: "hint", id: "run-here-help" }, words.runHereHelp)),
      h("div", null, action({ key: "run-start", label: words.runStart, work: start("start"), describedBy: "run-start-help" }), h("p", { class: "hint", id: "run-start-help" }, words.runStartHelp)),
    ),
    h("h3", null, words.result),
    h(
      "dl",
      { class: "facts", "aria-live": "polite" },
      h("dt", null, words.state),
      h("dd", null, h("span", { class: `tag ${style}` }, name)),
      run.node !== null && [h("dt", { key: "node" }, words.node), h("dd", { key: "node-of" }, h("code", null, run.node))],
      run.error !== null && [h("dt", { key: "error" }, words.errorCode), h("dd", { key: "error-of", class: "bad" }, h("code", null, run.error))],
    ),
    run.unrecognized !== null &&
      h(
        "div",
        { class: "notice", role: "status", key: "unrecognized" },
        h("p", null, rich(say(words.unrecognized, { path: `\`${run.unrecognized}\`` }))),
        h("div", { class: "row" }, h("button", { id: "mark-unrecognized", type: "button", onclick: () => startMarking("", "tab-run") }, words.markShownAs)),
      ),
    run.unconfirmed !== null && h("div", { class: "notice", role: "status", key: "unconfirmed" }, h("p", null, rich(unconfirmedText(run.unconfirmed)))),
    missingView(run.missing),
    run.state === "completed" && (state.outline?.fields ?? []).filter((field) => field.furtherPage !== null || field.paging !== null).map(({ name }) =>
      h("p", { class: "notice", key: `goes-on-${name}` }, rich(say(words.mayHaveMore, { list: `\`${name}\`` })))),
    run.data !== null && [h("h4", null, words.sharedData), h("div", { class: "data" }, shownValue(run.data))],
    h("h3", null, words.fixture),
    fixture === null
      ? h("p", { class: "none" }, words.noFixture)
      : [
          h("p", null, say(words.fixtureHas, { events: say(words.events, { count: fixture.events }), pages: say(words.pageCount, { count: fixture.pages }) })),
          h("p", null, h("span", { class: `tag ${fixture.matches === null ? "quiet" : fixture.matches ? "good" : "bad"}` }, fixture.matches === null ? words.fixtureUnchecked : fixture.matches ? words.fixtureMatches : words.fixtureDiffers)),
          fixture.maskedTokens > 0 && h("p", { class: "hint", key: "masked-tokens" }, say(words.maskedTokens, { count: fixture.maskedTokens })),
          fixture.keptTokens > 0 && h("p", { class: "notice", key: "kept-tokens" }, say(words.keptTokens, { count: fixture.keptTokens })),
          fixture.differences.length > 0 && [h("h4", null, words.differences), h("ul", { class: "differences" }, fixture.differences.map((text) => h("li", null, rich(text))))],
        ],
    h("h3", { id: "timeline-heading" }, words.timeline),
    state.events.length === 0 ? h("p", { class: "none" }, words.noEvents) : timeline(state.events),
  ];
};

/** What happened after *Share*, and what an author can do. @param {{signal: string, url: string | null}} unconfirmed */
const unconfirmedText = ({ signal, url }) => {
  const happened = url === null ? say(words.unconfirmedLoading, { signal }) : say(words.unconfirmed, { signal, url });
  return `${happened} ${signal === "signedIn" ? words.unconfirmedSignedIn : words.unconfirmedOther}`;
};

/** What the run has not read. @param {import("./api.js").Missing} all */
const missingView = ({ fields, columns }) => {
  if (fields.length === 0 && columns.length === 0) return null;
  return h(
    "div",
    { class: "notice", role: "status", key: "missing" },
    fields.length > 0 && h("p", { key: "fields" }, rich(say(words.missingFields, { names: fields.map((name) => `\`${name}\``).join(", ") }))),
    columns.map(({ list, column, missing, rows }) =>
      h("p", { key: `${list}.${column}` }, rich(say(words.missingColumn, { list: `\`${list}\``, column: `\`${column}\``, missing, count: rows }))),
    ),
  );
};

const log = create(h("div", { class: "log", role: "log", tabindex: "0", "aria-labelledby": "timeline-heading" }));
let lastEvent = 0;

/** @param {import("./api.js").State["events"]} events */
const timeline = (events) => {
  // Follows new events, unless the author has scrolled up to read. Its height is not known while it is not shown.
  const follows = lastEvent === 0 || log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  render(
    log,
    events.map(({ number, time, text }) => h("p", { key: number }, h("time", { datetime: time }, shownTime(time)), h("span", null, rich(text)))),
  );
  const newest = events.at(-1)?.number ?? 0;
  if (follows || newest < lastEvent) requestAnimationFrame(() => (log.scrollTop = log.scrollHeight));
  lastEvent = newest;
  return log;
};

/** @param {string} time */
const shownTime = (time) => {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? time : clock.format(date);
};
