// The requests of the studio. Everything that they return was made from pages of foreign sites, and is shown as text only.

import { words, say, sentence } from "./words.js";

/**
 * @typedef {{severity: "error" | "warning", path: string, line: number | null, column: number | null, message: string}} Finding
 * @typedef {{name: string, kind: string, conditions: string[], holds: boolean | null}} KnownPage
 * @typedef {{name: string, label: string, type: string, required: boolean, pii: boolean, attested: boolean, source: "page" | "request" | "response",
 *   place: string, node: string, address: Address | null, reading: Reading | null, positional: boolean, members: Member[], nextPage: {text: string, selector: string | null, max: number} | null, paging: Paging | null, furtherPage: string | null, endsAfter: number | null, hasNoNextPage: boolean, endsAfterPages: number | null, value: any, problem: string | null}} Field
 * @typedef {{rows: number | null, total: number | null, sign: string | null, parameters: string[]}} Paging What tells that a list goes on after the rows of its response.
 * @typedef {{name: string, label: string, required: boolean, pii: boolean, reading: Reading | null, positional: boolean}} Member
 * @typedef {{type: string, format: string | null, currency: string | null, at: string, read: "text" | "value" | {attribute: string}, element: "first" | "last",
 *   convert: any[], each: string | null, emptyWhen: string | null, maxRows: number | null}} Reading
 * @typedef {{positional: boolean, matches: number, rows: number | null, column: {found: number, unread: number, values: any[]} | null, instead: number | null, found: string | null, value: any, problem: string | null, values: TypedValue[], otherPage: string | null}} Tried
 * @typedef {{displayName: string, platform: string, version: string, environment: string, loginUrl: string, hasOwnIcon: boolean, hosts: string[], ssoHosts: string[],
 *   pages: KnownPage[], fields: Field[], variables: Variable[], dismissed: string[]}} Outline
 * @typedef {{name: string, source: "page" | "request" | "response", place: string, node: string, address: Address | null, reading: Reading, positional: boolean, value: any, problem: string | null}} Variable
 * @typedef {"asItIs" | {value: string}} PartChoice
 * @typedef {{text: string | null, place: string, before: string, after: string, values: string[], choice: PartChoice | null, mayBeOwn: boolean, restMayBeOwn: boolean}} AddressPart A segment or a parameter, or a word within one that equals a value.
 * @typedef {{source: "page" | "request" | "response", method: string, url: string, watched: {pattern: string, own: string[]} | null, parts: AddressPart[], own: string[], names: string[]}} Address
 * @typedef {{number: number, embedUrl: string | null, document: string, documentNumber: number, findings: Finding[], outline: Outline | null,
 *   page: {url: string, settled: boolean} | null, events: {number: number, time: string, text: string}[],
 *   responses: {number: number, url: string, status: number, noBody: NoBody | null}[],
 *   run: {state: string, error: string | null, node: string | null, data: any, missing: Missing, unrecognized: string | null, unconfirmed: {signal: string, url: string | null} | null},
 *   fixture: {events: number, pages: number, matches: boolean | null, differences: string[], maskedTokens: number, keptTokens: number} | null,
 *   saved: {definition: boolean, fixture: boolean, file: string | null, canPublish: boolean, obstacle: string | null, published: string | null},
 *   home: string | null, timeZone: string | null, canProbe: boolean}} State
 * @typedef {{fields: string[], columns: {list: string, column: string, missing: number, rows: number}[]}} Missing What the data of a run lacks.
 * @typedef {{reason: "tooLong" | "notJson" | "empty" | "interrupted" | "unavailable", maxKib?: number, contentType?: string}} NoBody Why a response has no body.
 * @typedef {{node: number, parent: number | null, label: string, text: string, box: [number, number, number, number]}} PageNode
 * @typedef {{inspection: number, url: string, width: number, height: number, image: string | null, nodes: PageNode[]}} Inspection
 * @typedef {{type: string, format?: string | null, currency?: string | null, convert: any[], value: any, description: string}} TypedValue
 * @typedef {{read: "text" | "value" | {attribute: string} | null, sample: string, values: TypedValue[], unreadDate: boolean}} Content
 * @typedef {{at: string, each: string | null, member: string, rows: number}} ListPlace
 * @typedef {{selector: string, found: number, elsewhere: number, hashed: boolean, positional: boolean, mayBeOwn: boolean}} ColumnPlace A selector of a value in the rows of a list, with the rows in which it finds something, and something in another cell.
 * @typedef {{selectors?: {selector: string, matches: number, hashed: boolean, positional: boolean, mayBeOwn: boolean}[], nextSelectors: {selector: string, matches: number, hashed: boolean, positional: boolean, mayBeOwn: boolean, hasWords: boolean}[],
 *   paged: {name: string, isHere: boolean}[], laterPage: string | null, positional: boolean, positionalColumn: boolean, contents: Content[], list: ListPlace | null, listMayBeOwn: boolean, columns: ColumnPlace[], lists: string[], proposedUse: "field" | "column",
 *   paging: Paging | null, furtherPage: string | null, name: string, label: string}} Choice
 * @typedef {{condition: any, text: string, alsoOn: string[], inRow: boolean, positional: boolean, mayBeOwn: boolean, hiddenOn: "phone" | "desktop" | null, counts: "eachAttempt" | "afterVanishing" | null}} Suggestion
 * @typedef {{conditions: Suggestion[], preferred: number | null, comparedWith: string[], otherScreen: "phone" | "desktop" | null}} Suggestions `preferred` is the place of the condition that is chosen unless the author says otherwise, and `otherScreen` the other kind of screen on which the page was looked at.
 */

/** A request that the studio refused, with the message for the author, and the path of the page on which the author has to re-authenticate first. */
export class ApiError extends Error {
  /** @param {string} message @param {number} status @param {string | null} confirm */
  constructor(message, status, confirm = null) {
    super(message);
    this.status = status;
    this.confirm = confirm;
  }
}

/** @param {string} path @param {RequestInit} options */
const request = async (path, options) => {
  const response = await fetch(`api/${path}`, { redirect: "error", cache: "no-store", ...options });
  /** @type {any} */
  let body = null;
  try {
    body = await response.json();
  } catch (error) {
    if (response.ok) throw error;
  }
  if (response.ok) return body ?? {};
  const message = typeof body?.message === "string" ? body.message : say(words.requestFailedStatus, { status: response.status });
  throw new ApiError(message, response.status, typeof body?.confirm === "string" ? body.confirm : null);
};

/** @param {string} path @param {any} [body] @returns {Promise<any>} */
export const post = (path, body = {}) =>
  request(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });

/** @param {string} path @returns {Promise<any>} */
export const read = (path) => request(path, {});

/** The message of an error for an author. @param {unknown} error */
export const messageOf = (error) => (error instanceof ApiError ? sentence(error.message) : words.requestFailed);

const POLL_TIMEOUT = 40_000;
const MIN_RETRY_INTERVAL = 500;
const MAX_RETRY_INTERVAL = 10_000;
const GONE_INTERVAL = 5_000;
/** @param {number} milliseconds */
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/**
 * Reads the state again and again, until the studio has ended.
 * @param {(state: State) => void} onState
 * @param {(connection: "connected" | "lost" | "ended") => void} onConnection
 */
export const follow = async (onState, onConnection) => {
  let number = 0;
  let known = false;
  let interval = MIN_RETRY_INTERVAL;
  let isGone = false;
  for (;;) {
    const began = performance.now();
    try {
      /** @type {State} */
      const state = await request(`state?after=${number}`, { signal: AbortSignal.timeout(POLL_TIMEOUT) });
      onConnection("connected");
      const changed = !known || state.number !== number;
      known = true;
      number = state.number;
      interval = MIN_RETRY_INTERVAL;
      isGone = false;
      if (changed) onState(state);
      // A server that answers at once without news must not be asked without a pause.
      else if (performance.now() - began < MIN_RETRY_INTERVAL) await pause(MIN_RETRY_INTERVAL);
    } catch (error) {
      const status = error instanceof ApiError ? error.status : 0;
      if ([401, 403, 404].includes(status) || (status === 410 && isGone)) {
        onConnection("ended");
        return;
      }
      onConnection("lost");
      if (status === 410) {
        // An instance that has just started is not known to all others yet: only the second answer is final.
        isGone = true;
        await pause(GONE_INTERVAL);
        continue;
      }
      await pause(interval);
      interval = Math.min(interval * 2, MAX_RETRY_INTERVAL);
    }
  }
};
