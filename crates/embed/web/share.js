// The fields that an applicant shares, as they read them.

import { made } from './dom.js';
import { readable, whole } from './values.js';
import { words } from './words.js';

/**
 * @typedef {import('./link.js').ShareItem} ShareItem
 * @typedef {import('./link.js').Table} Table
 */

/** Lists with more rows are closed at first. */
const MAX_OPEN_ROWS = 3;

/** Returns the element with the value of a field. @param {ShareItem} item */
export function shown(item) {
  if ('rows' in item) return item.kind === 'list' ? list(item) : holder(members(item, item.rows[0] ?? []));
  return made('dd', readable(item));
}

/** Returns a value in one line. @param {ShareItem} item */
export function inOneLine(item) {
  if (!('rows' in item)) return readable(item);
  return item.kind === 'list' ? count(item) : cells(item, item.rows[0] ?? []).map(([, value]) => value).join(', ');
}

/** @param {Table} table */
function list(table) {
  if (table.rows.length === 0) return made('dd', count(table));
  const details = document.createElement('details');
  details.open = table.rows.length <= MAX_OPEN_ROWS;
  const rows = document.createElement('ol');
  rows.append(...table.rows.map((row) => {
    const item = document.createElement('li');
    item.append(members(table, row));
    return item;
  }));
  details.append(made('summary', count(table)), rows);
  return holder(details);
}

/** @param {Table} table */
function count({ rows }) {
  return words.entries.replace('{count}', whole(rows.length));
}

/** @param {Table} table @param {Table['rows'][number]} row */
function members(table, row) {
  const fields = document.createElement('dl');
  fields.append(...cells(table, row).flatMap(([label, value]) => [made('dt', label), made('dd', value)]));
  return fields;
}

/** Returns the labels and values of a row. @param {Table} table @param {Table['rows'][number]} row */
function cells({ columns }, row) {
  return columns.flatMap(({ label, ...style }, at) => {
    const cell = row[at];
    return cell ? [/** @type {const} */ ([label, readable({ ...cell, ...style })])] : [];
  });
}

/** @param {Node} content */
function holder(content) {
  const value = document.createElement('dd');
  value.append(content);
  return value;
}
