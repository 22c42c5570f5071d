// Access to the elements of the page.

/** @template {HTMLElement} [T=HTMLElement] @param {string} id @returns {T} */
export function element(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`no element ${id}`);
  return /** @type {T} */ (found);
}

/** Creates an element with a text. @param {string} name @param {string} text */
export function made(name, text) {
  const created = document.createElement(name);
  // Labels and values may have another direction than the page.
  const isolated = document.createElement('bdi');
  isolated.textContent = text;
  created.append(isolated);
  return created;
}

/**
 * Sets the text of an element, and hides it if there is none.
 * @param {string} id
 * @param {string} text
 */
export function write(id, text) {
  const target = element(id);
  target.textContent = text;
  target.hidden = text === '';
}
