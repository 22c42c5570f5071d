// A small virtual DOM: views describe the page, and render() changes what differs. Focus, scroll positions and what is being typed survive a change of
// the state, which may arrive at any time. Texts become text nodes; there is no way to pass markup.

/**
 * @typedef {{tag: string, props: Record<string, any>, children: Child[]}} Description
 * @typedef {Description | Node | string | number} Child
 * @typedef {Child | null | undefined | boolean | any[]} Children
 */

/** @type {WeakMap<Node, Description>} */
const described = new WeakMap();

/** @param {Children} children @returns {Child[]} */
const flatten = (children) =>
  /** @type {Child[]} */ ([children].flat(Infinity).filter((child) => child !== null && child !== undefined && child !== "" && typeof child !== "boolean"));

/**
 * Describes an element. Props are attributes, `onclick` and other handlers, `style` as an object of CSS properties, and `key`, which identifies an
 * element among its siblings (`id` does so too).
 * @param {string} tag
 * @param {Record<string, any> | null} [props]
 * @param {...Children} children
 * @returns {Description}
 */
export const h = (tag, props, ...children) => ({ tag, props: props ?? {}, children: flatten(children) });

/** Makes the content of `root` that of `children`. @param {Element} root @param {Children} children */
export const render = (root, children) => {
  const active = document.activeElement;
  renderChildren(root, flatten(children));
  // An element that was moved among its siblings has lost the focus.
  if (active instanceof HTMLElement && active !== document.activeElement && active !== document.body && active.isConnected) {
    active.focus({ preventScroll: true });
  }
};

/** Creates an element outside of render(), for views that change it themselves. @param {Description} description @returns {HTMLElement} */
export const create = (description) => {
  const element = document.createElement(description.tag);
  apply(element, { tag: description.tag, props: {}, children: [] }, description);
  return element;
};

/** @param {Description} description */
const keyOf = (description) => description.props.key ?? description.props.id;

/** @param {Element} element @param {Child[]} children */
const renderChildren = (element, children) => {
  /** @type {Map<unknown, Node>} */
  const keyed = new Map();
  /** @type {Node[]} */
  const loose = [];
  for (const node of element.childNodes) {
    const description = described.get(node);
    const key = description && keyOf(description);
    if (key === undefined) loose.push(node);
    else keyed.set(key, node);
  }
  /** @type {Set<Node>} */
  const used = new Set(children.filter((child) => child instanceof Node));
  /** @param {(node: Node) => boolean} fits */
  const take = (fits) => loose.find((node) => !used.has(node) && fits(node));

  const nodes = children.map((child) => {
    if (child instanceof Node) return child;
    if (typeof child !== "object") {
      const text = String(child);
      const node = /** @type {Text | undefined} */ (take((old) => old.nodeType === Node.TEXT_NODE)) ?? document.createTextNode(text);
      if (node.data !== text) node.data = text;
      used.add(node);
      return node;
    }
    const key = keyOf(child);
    const old = key === undefined ? take((node) => described.get(node)?.tag === child.tag) : keyed.get(key);
    if (old instanceof HTMLElement && !(key !== undefined && used.has(old)) && described.get(old)?.tag === child.tag) {
      used.add(old);
      apply(old, /** @type {Description} */ (described.get(old)), child);
      return old;
    }
    const node = create(child);
    used.add(node);
    return node;
  });

  for (const node of [...element.childNodes]) if (!used.has(node)) node.remove();
  let at = element.firstChild;
  for (const node of nodes) {
    if (node === at) at = at.nextSibling;
    else element.insertBefore(node, at);
  }
};

/** @param {HTMLElement} element @param {Description} before @param {Description} after */
const apply = (element, before, after) => {
  described.set(element, after);
  for (const name of Object.keys(before.props)) if (!(name in after.props)) set(element, name, undefined);
  for (const [name, value] of Object.entries(after.props)) {
    if (name !== "value" && name !== "checked" && before.props[name] !== value) set(element, name, value);
  }
  renderChildren(element, after.children);
  // After the children, since a select takes its value from its options. Compared with the element, since an author may have changed it.
  for (const name of ["value", "checked"]) {
    const value = after.props[name];
    if (value !== undefined && /** @type {any} */ (element)[name] !== value) /** @type {any} */ (element)[name] = value;
  }
};

/** @param {HTMLElement} element @param {string} name @param {any} value */
const set = (element, name, value) => {
  if (name === "key" || name === "value" || name === "checked") return;
  if (name === "style") {
    for (const [property, setting] of Object.entries(value ?? {})) element.style.setProperty(property, String(setting));
  } else if (name.startsWith("on")) {
    /** @type {any} */ (element)[name] = value ?? null;
  } else if (value === undefined || value === null || (value === false && !name.startsWith("aria-"))) {
    element.removeAttribute(name);
  } else {
    element.setAttribute(name, value === true && !name.startsWith("aria-") ? "" : String(value));
  }
};
