// The address of the page or the request that a value is read from: its parts, and what stands in place of each.

import { h } from "./dom.js";
import { choice } from "./widgets.js";
import { say, words } from "./words.js";

/**
 * @typedef {import("./api.js").Address} Address
 * @typedef {import("./api.js").AddressPart} AddressPart
 * @typedef {{address: Address, choices: string[]}} Choices For each part the name of a value, `AS_IT_IS` or `UNDECIDED`.
 */

/** No name of a value has this character. */
const AS_IT_IS = "=";
const UNDECIDED = "";
/** The characters of a text that an option shows. */
const MAX_TEXT = 36;

/**
 * What an author has chosen before for the parts of an address, so that it is asked once for all fields of a page. A choice holds for what was offered then: once
 * another value is offered, the studio proposes or asks anew.
 * @type {Map<string, {offer: string, chosen: string}[]>}
 */
const chosenBefore = new Map();

/** @param {AddressPart} part */
const offerOf = ({ text, place, values, choice: proposed }) => JSON.stringify([text, place, values, proposed]);

/** @param {AddressPart} part */
const initial = ({ choice: chosen }) => (chosen === null ? UNDECIDED : chosen === "asItIs" ? AS_IT_IS : chosen.value);

/** @param {AddressPart} part */
const optionsOf = ({ text, before, after, values }) => [
  ...(text === null ? [] : [{ value: AS_IT_IS, label: say(words.partAsItIs, { text: `${before}${shortened(text)}${after}` }) }]),
  ...values.map((name) => ({ value: name, label: say(words.partValue, { text: `${before}{${name}}${after}` }) })),
];

/** @param {string} text */
const shortened = (text) => {
  const characters = [...text];
  return characters.length > MAX_TEXT ? `${characters.slice(0, MAX_TEXT).join("")}…` : text;
};

/** The place of a part, with its text in bold. @param {AddressPart} part */
const placeOf = ({ place, before, after }) => h("code", null, before, h("strong", null, place.slice(before.length, place.length - after.length)), after);

/** What the author is warned of at a part. @param {AddressPart} part @param {string} selected */
const warningOf = (part, selected) => {
  if (selected === UNDECIDED) return words.partUndecided;
  if (part.mayBeOwn && selected === AS_IT_IS) return canChange(part) ? words.partMayBeOwnChoose : words.partMayBeOwn;
  return part.restMayBeOwn ? words.partRestMayBeOwn : undefined;
};

/** @param {AddressPart} part */
const canChange = (part) => part.values.length > 0 && optionsOf(part).length > 1;

/** What stands in an address of the definition. @param {Address} address @returns {Choices} */
export const currentChoices = (address) => ({ address, choices: address.parts.map(initial) });

/** What stands in an address that is new, or what was chosen for it before. @param {Address} address @returns {Choices} */
export const newChoices = (address) => {
  const before = chosenBefore.get(address.url);
  const choices = address.parts.map((part, index) => {
    const known = before?.[index];
    return known?.offer === offerOf(part) ? known.chosen : initial(part);
  });
  return { address, choices };
};

/** @param {Choices} chosen */
export const rememberChoices = ({ address, choices }) =>
  void chosenBefore.set(address.url, address.parts.map((part, index) => ({ offer: offerOf(part), chosen: choices[index] ?? UNDECIDED })));

/** @param {Choices} chosen */
export const isDecided = ({ choices }) => !choices.includes(UNDECIDED);

/** The choices as the studio reads them. @param {Choices} chosen */
export const sentChoices = ({ address, choices }) => ({
  url: address.url,
  parts: choices.map((chosen) => (chosen === UNDECIDED ? null : chosen === AS_IT_IS ? "asItIs" : { value: chosen })),
});

/** Whether anything in an address can be changed. @param {Address} address */
export const canChangeAddress = (address) => address.parts.some(canChange);

/** @param {string} id @param {number} index */
const partId = (id, index) => `${id}-part-${index}`;

/** The control of the first part that can be changed. @param {string} id @param {Address} address */
export const firstPartId = (id, address) => partId(id, address.parts.findIndex(canChange));

/** The address as terms and their descriptions. @param {Address} address */
export const addressFacts = (address) => [
  h("dt", { key: "address" }, words.addressOf),
  h("dd", { key: "address-of" }, address.source === "request" && [address.method, " "], h("code", null, address.url)),
  address.watched && [h("dt", { key: "watched" }, words.watchedPath), h("dd", { key: "watched-of" }, h("code", null, address.watched.pattern))],
];

/** Whether the author can choose a value for what may be of the account at a place. What is beside a value is no part, and has no choice. @param {Address} address @param {string} place */
const canChoose = (address, place) => address.parts.some((part) => part.place === place && canChange(part) && !part.restMayBeOwn);

/**
 * What may be of the author's account in an address.
 * @param {Address} address
 * @param {boolean} [inEdit] Whether the address is changed in a form that *Edit* opens.
 */
export const addressHints = (address, inEdit = false) => [
  address.own.map((place, index) => {
    const advice = !canChoose(address, place) ? words.partStaysOwn : inEdit ? words.partStaysOwnEdit : words.partStaysOwnChange;
    return h("p", { class: "hint warn", key: `own-${index}` }, h("code", null, place), " ", advice);
  }),
  watchedHint(address),
];

/** @param {Address} address */
const watchedHint = ({ watched }) => watched && watched.own.map((place, index) => h("p", { class: "hint warn", key: `watched-${index}` }, h("code", null, place), " ", words.watchedOwn));

/**
 * The parts of an address, with a control for each that can be chosen.
 * @param {{id: string, chosen: Choices, onchange: (choices: string[]) => void}} options
 */
export const addressParts = ({ id, chosen: { address, choices }, onchange }) =>
  h(
    "fieldset",
    { key: `${id}-address`, class: "address-parts", "aria-describedby": `${id}-address-hint` },
    h("legend", null, words.addressParts),
    h("p", { class: "hint", id: `${id}-address-hint` }, words.addressPartsHint),
    h("dl", { class: "facts" }, addressFacts(address)),
    h(
      "ul",
      { class: "plain-list" },
      address.parts.map((part, index) => {
        const selected = choices[index] ?? UNDECIDED;
        const warning = warningOf(part, selected);
        if (!canChange(part)) return h("li", { key: index, class: warning ? "whole-line" : undefined }, placeOf(part), warning && h("span", { class: "hint warn" }, warning));
        return h(
          "li",
          { key: index, class: "whole-line" },
          choice({
            id: partId(id, index),
            label: [`${words.addressPart} `, placeOf(part)],
            selected,
            options: [...(selected === UNDECIDED ? [{ value: UNDECIDED, label: words.choosePart }] : []), ...optionsOf(part)],
            warning,
            onchange: (value) => onchange(choices.map((other, at) => (at === index ? value : other))),
          }),
        );
      }),
    ),
    watchedHint(address),
  );
