//! The scripts that run in pages, in an isolated world.

use std::sync::LazyLock;

/// Defines `find`, which returns the elements in a root that a selector matches, and `isVisible`. `a >>> b`
/// matches `b` in the open shadow root of `a`, or in its document if `a` is a frame. The documents of
/// `frames`, which are of other origins, cannot be reached: `inFrames` has for each of them that the last
/// selector led to its index and what of the selector is left for it.
macro_rules! find {
    () => {
        "const isVisible = (e) => e.getClientRects().length > 0; let inFrames = []; \
         const find = (selector, root = document) => { const parts = selector.split('>>>'); const last = parts.pop(); \
         inFrames = []; let roots = [root]; for (const [at, part] of parts.entries()) { \
         const owners = roots.flatMap((root) => [...root.querySelectorAll(part)]); \
         const rest = [...parts.slice(at + 1), last].join('>>>'); \
         for (const owner of owners) if (frames.includes(owner)) inFrames.push([frames.indexOf(owner), rest]); \
         roots = owners.map((e) => e.shadowRoot ?? e.contentDocument).filter(Boolean).slice(0, 50); } \
         return roots.flatMap((root) => [...root.querySelectorAll(last)].slice(0, 1000)); }; "
    };
}

/// Defines `OPAQUE`, the names of the elements whose texts are no texts of the page, and `isOpaque`.
macro_rules! is_opaque {
    () => {
        "const OPAQUE = ['script', 'style', 'template', 'noscript']; \
         const isOpaque = (e) => OPAQUE.includes(e.localName); "
    };
}

/// Defines `textOf`, which returns the text of an element as the captured tree has it: its `textContent`
/// without the texts in opaque elements within it. Where there is such an element, it may end after
/// `maxUnits`, not counting spaces, and after as many nodes as a tree has at most. Methods are those of
/// prototypes, since a field in a form may have the name of a method, and replaces it there.
macro_rules! text_of {
    () => {
        r"
  const MAX_WALKED = 20_000;
  const textOf = (e, maxUnits) => {
    if (!Element.prototype.querySelector.call(e, OPAQUE.join())) return e.textContent;
    const accept = (n) => isOpaque(n) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT;
    const shown = NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT;
    const walker = Document.prototype.createTreeWalker.call(document, e, shown, accept);
    let [text, left] = ['', maxUnits];
    for (let walked = 0; left > 0 && walked < MAX_WALKED; walked += 1) {
      const n = walker.nextNode();
      if (!n) break;
      if (n.nodeType !== Node.TEXT_NODE) continue;
      text += n.data;
      left -= n.data.trim().length;
    }
    return text;
  };
"
    };
}

/// Returns the state of the document, the selectors that match a visible element, and the texts of
/// visible elements by selector. A selector that the browser does not accept matches nothing. `elsewhere`
/// has the selectors that lead into frames of other origins.
pub(super) const OBSERVE: &str = concat!(
    "(selectors, textSelectors, ...frames) => { ",
    find!(),
    is_opaque!(),
    text_of!(),
    "const MAX_UNITS = 2000; const elsewhere = []; const visible = (s) => { try { const e = find(s).find(isVisible); \
     if (!e) for (const [frame, rest] of inFrames) elsewhere.push([frame, rest, s]); \
     return e; } catch { return undefined; } }; \
     const texts = {}; for (const s of textSelectors) { const e = visible(s); if (e) texts[s] = textOf(e, MAX_UNITS).slice(0, MAX_UNITS); } \
     const present = selectors.filter(visible); \
     return { ready: document.readyState, present, texts, elsewhere: elsewhere.slice(0, 2000) }; }"
);
/// Sends a request with the page's cookies, with bounds on the size and the time of the response; it is
/// aborted beyond them. The page cannot replace the `fetch` of an isolated world.
pub(super) const FETCH: &str = concat!(
    "async ({ url, method, headers, csrf, body }, maxBytes, timeoutMs, ...frames) => { ",
    find!(),
    "const init = { method, headers: new Headers(headers), credentials: 'include', redirect: 'error', cache: 'no-store', \
     signal: AbortSignal.timeout(timeoutMs) }; \
     const decoded = (text) => { try { return decodeURIComponent(text); } catch { return text; } }; \
     if (csrf) { const { cookie, element } = csrf.from; const values = document.cookie.split('; '); \
     const token = element ? find(element.selector)[0]?.getAttribute(element.attribute) \
     : decoded(values.find((value) => value.startsWith(cookie + '='))?.slice(cookie.length + 1) ?? ''); \
     if (!token) throw new Error('no token'); init.headers.set(csrf.header, token); } \
     if (body !== null) { init.body = body; if (!init.headers.has('content-type')) init.headers.set('content-type', 'application/json'); } \
     const r = await fetch(url, init); const reader = r.body.getReader(); const parts = []; \
     let size = 0; for (;;) { const { done, value } = await reader.read(); if (done) break; \
     size += value.length; if (size > maxBytes) { await reader.cancel(); throw new Error('too long'); } \
     parts.push(value); } return { status: r.status, body: await new Blob(parts).text() }; }"
);
/// Defines `isSecret`, which tells whether an applicant types a secret in an element.
macro_rules! is_secret {
    () => {
        "const isSecret = (e) => e.type === 'password' || /one-time-code|passw|passcode|pwd|otp|cvc|cvv|cc-/i.test( \
         ['autocomplete', 'name', 'id'].map((name) => e.getAttribute(name) ?? '').join(' ')); "
    };
}

/// Returns what is read of elements, up to a bound, and in `elsewhere` what is to be read in frames of
/// other origins, with its path in the values. What an applicant types as a secret is never read. If
/// nothing matches the place of a list, it is `noList` where the document has what `emptyWhen` names. Frames
/// are asked for the two selectors separately, since these may lead into different frames.
pub(super) const READ_ELEMENTS: &str = concat!(
    "(reads, ...frames) => { ",
    find!(),
    is_secret!(),
    is_opaque!(),
    text_of!(),
    "const MAX_UNITS = 8194; let left = 1_000_000; const elsewhere = []; \
     const value = (e) => { if (e.localName === 'select') return e.selectedOptions[0]?.textContent.trim() ?? null; \
     return /^(input|textarea)$/.test(e.localName) ? e.value : null; }; \
     const text = (e, content) => { if (content !== 'text' && isSecret(e)) return null; \
     const text = content === 'text' ? textOf(e, MAX_UNITS).trim() : content === 'value' ? value(e) : e.getAttribute(content.attribute); \
     const cut = text?.slice(0, MAX_UNITS) ?? null; left -= cut?.length ?? 0; \
     if (left < 0) throw new Error('too long'); return cut; }; \
     const object = (e, members, path) => Object.fromEntries(Object.entries(members).map(([name, member]) => \
     [name, read(member, e, [...path, name])])); \
     const leave = (path, choice, change) => { for (const [frame, rest] of choice === 'last' ? inFrames.toReversed() : inFrames) \
     if (elsewhere.length < 200) elsewhere.push({ path, frame, read: change(rest) }); }; \
     const inPlaceOf = (one, path) => { const { content, choice } = one; const { rows } = content; \
     const alone = rows ? { rows: { ...rows, emptyWhen: null } } : content; \
     leave(path, choice, (selector) => ({ ...one, selector, content: alone })); \
     if (!rows?.emptyWhen) return null; if (find(rows.emptyWhen).some(isVisible)) return 'noList'; \
     leave(path, choice, (emptyWhen) => ({ ...one, selector: ':not(*)', content: { rows: { ...rows, emptyWhen } } })); \
     return null; }; \
     const read = (one, root, path) => { const { selector, content, choice } = one; \
     const e = selector ? find(selector, root).at(choice === 'last' ? -1 : 0) : root; \
     if (!e) return inPlaceOf(one, path); \
     if (content.members) return object(e, content.members, path); \
     const rows = content.rows; if (!rows) return text(e, content.value); \
     const found = find(rows.each, e).slice(0, rows.max); \
     if (!found.length) leave(path, choice, (each) => ({ ...one, selector: '', content: { rows: { ...rows, each } } })); \
     return found.map((row, at) => object(row, rows.members, [...path, at])); }; \
     return { values: reads.map((one, at) => read(one, document, [at])), elsewhere }; }"
);
/// Defines `written`, which remembers in our isolated world what somebody wrote in a document: the elements,
/// and the values that fields had when they were left, since a page may put another field in the place of
/// one. `observe` begins to do so in a root. A page may write into its fields itself what was typed, so that
/// no `input` event is trusted, or none is fired.
macro_rules! written {
    () => {
        r"
  const [MIN_VALUE, MAX_VALUES, MAX_VALUE_UNITS] = [3, 200, 8194];
  const written = globalThis.avouchWritten ??= {
    elements: new WeakSet(), values: new Set(), isFull: false, last: null, roots: new WeakSet(),
    keep(text) {
      const value = text.slice(0, MAX_VALUE_UNITS);
      if (value.length < MIN_VALUE || this.values.has(value)) return;
      if (this.values.size === MAX_VALUES) this.isFull = true;
      else this.values.add(value);
    },
    has(e) {
      const value = e.value.slice(0, MAX_VALUE_UNITS);
      return this.isFull || this.elements.has(e) || this.values.has(value)
        || value.length >= MIN_VALUE && value === this.last?.value;
    },
  };
  // Elements of other namespaces with these names have no value.
  const isField = (e) => /^(input|textarea)$/.test(e.localName) && typeof e.value === 'string';
  const isText = (e) => isField(e) && !/^(hidden|checkbox|radio|button|submit|reset|image|range|color|file)$/.test(e.type);
  const observe = (root) => {
    if (written.roots.has(root)) return;
    written.roots.add(root);
    const remember = (event) => {
      const e = event.composedPath()[0];
      const hasValue = isText(e);
      if (!event.isTrusted || !hasValue && !e.isContentEditable) return;
      const isShortcut = event.ctrlKey !== event.altKey || event.metaKey;
      const isCharacter = event.key?.length === 1 || /^(Process|Unidentified)$/.test(event.key ?? '');
      if (event.type === 'keydown' && (isShortcut || !isCharacter)) return;
      if (event.type === 'focusout' && !written.elements.has(e)) return;
      written.elements.add(e);
      if (written.last && written.last.e !== e) written.keep(written.last.value);
      written.last = hasValue ? { e, value: e.value.slice(0, MAX_VALUE_UNITS) } : null;
      if (hasValue && /^(change|focusout)$/.test(event.type)) written.keep(e.value);
    };
    const types = ['keydown', 'beforeinput', 'paste', 'drop', 'compositionstart', 'input', 'change', 'focusout'];
    // Before the page's listeners, which may stop an event at its window.
    const target = root === document ? globalThis : root;
    for (const type of types) target.addEventListener(type, remember, { capture: true, passive: true });
  };
"
    };
}

/// Returns the nodes of the page: of the document, of open shadow roots, and of frames of the same
/// origin. Values that were written or are secret are left out; where texts repeat them, too, those that
/// were written only while somebody types, since the account may have the same ones. `boxes` are the
/// rectangles of visible elements, in CSS pixels of the window, if they are asked for, and `elsewhere`
/// the frames of other origins with the index of their element and the corner of their content.
const PAGE_TREE: &str = concat!(
    "(isTyping, maxNodes, hasBoxes, ...frames) => { ",
    is_secret!(),
    is_opaque!(),
    written!(),
    r"
  const MAX_UNITS = 8194;
  let left = 4_000_000;
  const nodes = [];
  const boxes = [];
  const roots = [document];
  for (const root of roots) {
    for (const e of root.querySelectorAll('*')) {
      let inner = e.shadowRoot;
      try { inner ??= e.contentDocument; } catch { inner = null; }
      if (inner && roots.length < 200) roots.push(inner);
    }
  }
  const known = [written];
  for (const root of roots) {
    observe(root);
    // A frame's own world may have remembered what was written before its document was first read here.
    // An element of the page may have the same name.
    const own = root.defaultView?.avouchWritten;
    if (own !== written && typeof own?.has === 'function' && typeof own.elements?.has === 'function') known.push(own);
  }
  const isWritten = (e) => known.some((one) => one.elements.has(e));
  const isTyped = (e) => isText(e) && known.some((one) => one.has(e));
  const isHidden = (e) => isSecret(e) || e.type === 'hidden' || isTyped(e) || isTyping && isText(e);
  const isNew = (e) => isTyped(e) || isText(e) && e.value !== e.defaultValue;
  const fields = roots.flatMap((root) => [...root.querySelectorAll('input,textarea')])
    .filter((e) => isField(e) && e.type !== 'hidden' && e.value.length > 2);
  const values = (of) => fields.filter(of).map((e) => e.value).sort((a, b) => b.length - a.length).slice(0, 100);
  const secrets = values(isSecret);
  // A word may be a class by chance, as `login` is; a user name with other characters is not.
  const distinct = values((e) => isSecret(e) || isTyping && isNew(e) && /[^a-z-]/i.test(e.value) && e.value.length > 5);
  const typed = values((e) => isSecret(e) || isTyping && isNew(e));
  const ownRepeats = values((e) => isSecret(e) || isTyped(e) || isTyping && isNew(e));
  const spend = (units) => { if ((left -= units) < 0) throw new Error('too much text'); };
  const masked = (text, hidden = typed) => {
    let shown = text.slice(0, MAX_UNITS);
    for (const value of hidden) shown = shown.replaceAll(value, '•'.repeat(value.length));
    spend(shown.length);
    return shown;
  };
  const add = (node) => {
    if (nodes.length === maxNodes) throw new Error('too many nodes');
    if (hasBoxes) boxes.push(null);
    return nodes.push(node) - 1;
  };
  const isToken = (e) => e.localName === 'meta' && /csrf|xsrf|token|nonce/i.test(e.getAttribute('name') ?? '');
  const element = (e, parent, [left, top]) => {
    const attributes = {};
    for (const { name, value } of [...e.attributes].slice(0, 100)) {
      const isLeftOut = name === 'value' && isField(e) && isHidden(e) || name === 'content' && isToken(e) || name === 'nonce';
      // What a selector goes by stays, and what a page repeats of a field for itself does not.
      const repeated = /^(class|id|name|type|for|form|role)$/.test(name) ? distinct : /^(data-|aria-|title$)/.test(name) ? ownRepeats : typed;
      if (name.length >= 100) continue;
      // With its quotes and commas: what is read of the page has to fit into the same reply.
      spend(name.length + 4);
      attributes[name] = isLeftOut ? '' : masked(value, repeated);
    }
    const node = { in: parent, tag: e.localName, attributes, visible: e.getClientRects().length > 0 };
    if (isField(e) && !isHidden(e)) node.value = masked(e.value);
    if (e.localName === 'select') node.value = masked(e.selectedOptions[0]?.textContent.trim() ?? '');
    if (e.checked === true || e.selected === true) node.checked = true;
    const index = add(node);
    if (hasBoxes && node.visible) {
      const { x, y, width, height } = e.getBoundingClientRect();
      boxes[index] = [x + left, y + top, width, height];
    }
    return index;
  };
  // The rectangles in a frame begin at its own corner.
  const inside = (e, [left, top]) => {
    const { x, y } = e.getBoundingClientRect();
    return [left + x + e.clientLeft, top + y + e.clientTop];
  };
  const elsewhere = [];
  const waiting = [[document, add({}), [0, 0]]];
  for (let root = waiting.shift(); root; root = waiting.shift()) {
    const [owner, at, offset] = root;
    const open = [...owner.childNodes].reverse().map((child) => [child, at, false]);
    for (let top = open.pop(); top; top = open.pop()) {
      const [node, parent, isInWritten] = top;
      const text = () => isInWritten ? '•'.repeat(Math.min(node.data.length, MAX_UNITS)) : node.data;
      if (node.nodeType === Node.TEXT_NODE) add({ in: parent, text: masked(node.data.trim() === '' ? ' ' : text()) });
      if (node.nodeType !== Node.ELEMENT_NODE) continue;
      const index = element(node, parent, offset);
      // The texts of scripts and styles are no texts of the page.
      if (isOpaque(node)) continue;
      let inner = node.shadowRoot;
      try { inner ??= node.contentDocument; } catch { inner = null; }
      if (inner) waiting.push([inner, add({ in: index }), node.shadowRoot ? offset : inside(node, offset)]);
      else if (frames.includes(node)) elsewhere.push([frames.indexOf(node), index, inside(node, offset)]);
      // What was written in an editable element is its text, and that of a text area its first value.
      const isEdited = isInWritten || node.isContentEditable && (isTyping || isWritten(node))
        || node.localName === 'textarea' && isHidden(node);
      for (const child of [...node.childNodes].reverse()) open.push([child, index, isEdited]);
    }
  }
  return { tree: { nodes }, boxes, width: innerWidth, height: innerHeight, elsewhere };
}"
);
/// Calls [`OBSERVE`], [`READ_ELEMENTS`] and [`PAGE_TREE`], each with its list of arguments and the elements of
/// frames, in one evaluation: no script of the page runs in between. The result of one that fails, or that
/// has no arguments, is `null`.
pub(super) static CAPTURE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "(observed, read, tree, ...frames) => {{ \
         const called = (script, given) => {{ try {{ return given && script(...given, ...frames); }} catch {{ return null; }} }}; \
         return {{ observed: called({OBSERVE}, observed), read: called({READ_ELEMENTS}, read), tree: called({PAGE_TREE}, tree) }}; }}"
    )
});

/// Does something with the first visible element of a selector, and returns whether there was one, or else
/// the frames of other origins that the selector leads to, with the rest of it.
pub(super) const ACT: &str = concat!(
    "({ click, choose, scrollTo }, ...frames) => { ",
    find!(),
    "const e = find(click ?? choose?.selector ?? scrollTo).find(isVisible); if (!e) return { done: false, elsewhere: inFrames }; \
     e.scrollIntoView({ block: 'center' }); \
     if (click) { const { left, top, width, height } = e.getBoundingClientRect(); \
     const [clientX, clientY] = [left + width / 2, top + height / 2]; \
     for (const [Type, name, buttons] of [[PointerEvent, 'pointerdown', 1], [MouseEvent, 'mousedown', 1], \
     [PointerEvent, 'pointerup', 0], [MouseEvent, 'mouseup', 0], [PointerEvent, 'click', 0]]) \
     e.dispatchEvent(new Type(name, { bubbles: true, cancelable: true, composed: true, view: e.ownerDocument.defaultView, \
     clientX, clientY, buttons, detail: name.startsWith('pointer') ? 0 : 1, isPrimary: true, pointerType: 'mouse', pointerId: 1 })); } \
     if (choose) { const option = [...e.options ?? []].find((o) => o.value === choose.option || o.textContent.trim() === choose.option); \
     if (!option) return { done: false, elsewhere: [] }; e.value = option.value; \
     for (const type of ['input', 'change']) e.dispatchEvent(new Event(type, { bubbles: true })); } \
     return { done: true, elsewhere: [] }; }"
);

/// The name of the binding by which our isolated world reports; the page cannot see it.
pub(super) const BINDING_NAME: &str = "avouchTell";

/// Styles lists of options so that Chromium draws them in the page, where frames show them and touches
/// reach them; by default they are windows of their own.
pub(super) const STYLE_SELECTS: &str = "(() => { const sheet = new CSSStyleSheet(); \
     sheet.replaceSync('select:not([multiple]):not([size]),::picker(select){appearance:base-select}'); \
     document.adoptedStyleSheets.push(sheet); })()";

/// Sets the value of the focused field, as a picker of the browser would.
pub(super) const FILL_FIELD: &str = "(value) => { const e = document.activeElement; \
     if (!e || !('value' in e) || e.disabled || e.readOnly) return; e.value = value; \
     globalThis.avouchWritten?.elements.add(e); globalThis.avouchWritten?.keep(value); \
     for (const type of ['input', 'change']) e.dispatchEvent(new Event(type, { bubbles: true })); }";

/// Remembers the element that has the focus.
pub(super) const KEEP_FOCUS: &str = "() => { let e = document.activeElement; \
     while (e?.shadowRoot?.activeElement) e = e.shadowRoot.activeElement; globalThis.avouchFocused = e; }";

/// Gives the focus back to the remembered element if no other one has it: an element that is hidden for a
/// moment loses it. Waits for at most half a second until the element is shown again.
pub(super) const RESTORE_FOCUS: &str = "async () => { const e = globalThis.avouchFocused; \
     globalThis.avouchFocused = undefined; if (!e || e === document.body) return; \
     for (let left = 10; left > 0 && e.isConnected; left -= 1) { \
     if (document.activeElement && document.activeElement !== document.body) return; \
     e.focus({ preventScroll: true }); await new Promise((done) => setTimeout(done, 50)); } }";

/// The elements of a document that accept text, as a CSS selector.
macro_rules! editable {
    () => {
        "input:not([type=hidden],[type=checkbox],[type=radio],[type=button],[type=submit],\
         [type=reset],[type=file],[type=image],[type=range],[type=color]),textarea,\
         [contenteditable=\"\"],[contenteditable=true i],[contenteditable=plaintext-only i]"
    };
}

/// Returns whether a document is small enough for its accessibility tree to be read: its nodes, and the
/// characters of what the tree repeats.
pub(super) const IS_OUTLINE_SIZED: &str = r"(maxNodes, maxChars) => {
  const TEXTS = ['aria-label', 'aria-description', 'aria-placeholder', 'aria-roledescription', 'aria-valuetext',
    'alt', 'label', 'placeholder', 'title'];
  let [nodes, chars] = [0, 0];
  const walker = document.createTreeWalker(document);
  for (let n = walker.nextNode(); n && nodes <= maxNodes && chars <= maxChars; n = walker.nextNode()) {
    nodes += 1;
    if (n instanceof Text) chars += /^(script|style)$/.test(n.parentNode?.localName) ? 0 : n.data.length;
    if (!(n instanceof Element)) continue;
    const attribute = (name) => Element.prototype.getAttribute.call(n, name) ?? '';
    for (const name of TEXTS) chars += attribute(name).length;
    if (n instanceof HTMLInputElement || n instanceof HTMLTextAreaElement) chars += n.value.length;
    for (const name of ['aria-labelledby', 'aria-describedby']) {
      for (const id of attribute(name).slice(0, 1000).split(/\s+/).slice(0, 20)) {
        chars += id && n.getRootNode().getElementById?.(id)?.textContent.length || 0;
      }
    }
  }
  return nodes <= maxNodes && chars <= maxChars;
}";

/// Returns for each entry, a name and a value and whether one of them was cut, whether it repeats the
/// content of a field, also of one behind an open shadow root. Short contents count as whole words, and
/// single letters not at all.
pub(super) const REPEATS_FIELDS: &str = concat!(
    "(entries) => { const EDITABLE = '",
    editable!(),
    "';",
    r"
  const [MAX_FIELDS, MAX_ROOTS] = [500, 50];
  const line = (text) => text.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '').replace(/[\s\p{Cc}]+/gu, ' ').trim();
  const roots = [document];
  for (const root of roots) {
    for (const e of root.querySelectorAll('*')) if (e.shadowRoot && roots.length < MAX_ROOTS) roots.push(e.shadowRoot);
  }
  const fields = roots.flatMap((root) => [...root.querySelectorAll(EDITABLE)]).slice(0, MAX_FIELDS);
  const contents = [...new Set(fields.map((e) => line('value' in e ? e.value : e.textContent)))].filter((content) => content.length > 1 || /\d/.test(content));
  // A cut text may end with the start of a content.
  const begins = (text, content) => {
    for (let n = Math.min(content.length, 200); n > 3; n -= 1) if (text.endsWith(content.slice(0, n))) return true;
    return false;
  };
  const repeats = (text, content, isCut) => content.length > 3
    ? text.includes(content) || isCut && begins(text, content)
    : text.split(' ').includes(content);
  return entries.map(([name, value, isCut]) => [name, value ?? ''].some((text) => contents.some((content) => repeats(text, content, isCut))));
}"
);

/// Reports the positions, kinds and labels of fields and which one has the focus; never their values: a
/// label or an error message that repeats the value is left out. A frame
/// within a page does not know its position: it reports only its focused field, without a position.
/// `covers` are the elements that may show something that was written, so that they can be redacted:
/// also locked fields, fields behind open shadow roots, and whole frames; if there are too many, or
/// the whole document is editable, a single one that covers everything. Editable elements are those
/// of the HTML standard, sections 6.8.1 (`contenteditable`) and 6.8.2 (`designMode`).
pub(super) const REPORT_FIELDS: &str = concat!(
    "(() => { const EDITABLE = '",
    editable!(),
    "';",
    written!(),
    r#"
  observe(document);
  const REDACTED = EDITABLE + ',iframe,frame,fencedframe,object,embed';
  const [MAX_FIELDS, MAX_COVERS, MAX_ROOTS] = [24, 100, 50];
  let last = '';
  let timer = 0;
  // A move of the focus within a shadow root does not leave it (DOM, section 2.9).
  const observed = new WeakSet();
  const reportFocusOf = (root) => {
    if (observed.has(root)) return;
    observed.add(root);
    observe(root);
    for (const type of ['focusin', 'focusout']) root.addEventListener(type, () => reportAfter(0), true);
  };
  const focusedField = () => {
    let e = document.activeElement;
    while (e?.shadowRoot?.activeElement) {
      reportFocusOf(e.shadowRoot);
      e = e.shadowRoot.activeElement;
    }
    return e?.matches?.(EDITABLE) ? e : null;
  };
  const kind = (e) => e.localName === 'input' ? e.type : e.localName === 'textarea' ? 'textarea' : 'editable';
  // The accessible name and the error message (Accessible Name and Description Computation 1.2, in short).
  const line = (text) => (text ?? '').replace(/\s+/g, ' ').trim().slice(0, 120);
  const texts = (e, ids) => (ids ?? '').split(/\s+/).slice(0, 4).map((id) => id && e.getRootNode().getElementById?.(id)?.textContent).filter(Boolean).join(' ');
  const without = (e, text) => {
    const value = (e.value ?? e.textContent ?? '').trim();
    const repeats = value.length > 3 ? text.includes(value) : text.split(' ').includes(value);
    return value && repeats ? '' : text;
  };
  const label = (e) => {
    const labels = [...e.labels ?? []].slice(0, 4).map((l) => [...l.childNodes].filter((n) => n !== e).map((n) => n.textContent).join(' ')).join(' ');
    const names = [texts(e, e.getAttribute('aria-labelledby')), e.getAttribute('aria-label'), labels, e.title, e.placeholder, e.getAttribute('aria-placeholder')];
    return without(e, names.map(line).find(Boolean) ?? '');
  };
  const error = (e) => {
    if (!/^(true|grammar|spelling)$/.test(e.getAttribute('aria-invalid') ?? '')) return '';
    return without(e, line(texts(e, e.getAttribute('aria-errormessage')) || texts(e, e.getAttribute('aria-describedby'))));
  };
  const roots = (from, found) => {
    for (const e of from.querySelectorAll('*')) {
      if (!e.shadowRoot || found.length === MAX_ROOTS) continue;
      found.push(e.shadowRoot);
      roots(e.shadowRoot, found);
    }
    return found;
  };
  // Where an element is on the frame, which shows the visual viewport (CSSOM View Module, section 16).
  const onFrame = (e) => {
    const r = e.getBoundingClientRect();
    const { offsetLeft = 0, offsetTop = 0, scale = 1 } = globalThis.visualViewport ?? {};
    return new DOMRect((r.x - offsetLeft) * scale, (r.y - offsetTop) * scale, r.width * scale, r.height * scale);
  };
  const EVERYTHING = [[0, 0, 8192, 8192]];
  const covers = () => {
    if (document.designMode === 'on') return EVERYTHING;
    const places = [];
    for (const root of roots(document, [document])) {
      for (const e of root.querySelectorAll(REDACTED)) {
        const r = onFrame(e);
        if (r.width > 0.5 && r.height > 0.5) places.push([Math.floor(r.x), Math.floor(r.y), Math.ceil(r.width) + 1, Math.ceil(r.height) + 1]);
      }
    }
    return places.length > MAX_COVERS ? EVERYTHING : places;
  };
  const report = () => {
    timer = 0;
    const active = focusedField();
    const view = globalThis.visualViewport ?? { width: innerWidth, height: innerHeight, scale: 1 };
    const frame = { width: view.width * view.scale, height: view.height * view.scale };
    const all = new Set(document.querySelectorAll(EDITABLE));
    if (active) all.add(active);
    const fields = [];
    let focused = null;
    for (const e of all) {
      if (fields.length === MAX_FIELDS) break;
      if (e.disabled || e.readOnly) continue;
      const r = onFrame(e);
      const visible = r.width > 3 && r.height > 3 && r.bottom > 0 && r.right > 0 && r.top < frame.height && r.left < frame.width;
      if (!visible || (window !== top && e !== active)) continue;
      if (e === active) focused = fields.length;
      fields.push({ place: window === top ? [r.x, r.y, r.width, r.height] : [0, 0, 0, 0],
        kind: kind(e), mode: e.inputMode ?? '', complete: e.autocomplete ?? '', label: label(e), error: error(e) });
    }
    const message = JSON.stringify({ fields, focused, isTop: window === top, covers: window === top ? covers() : [] });
    if (message === last || (window !== top && !last && focused === null)) return;
    last = message;
    globalThis.avouchTell(message);
  };
  const reportAfter = (ms) => { timer ||= setTimeout(report, ms); };
  // The compositor may move the page on after the last event.
  let late = 0;
  const moved = () => { reportAfter(50); clearTimeout(late); late = setTimeout(report, 300); };
  for (const type of ['focusin', 'focusout', 'load']) addEventListener(type, () => reportAfter(0), true);
  for (const type of ['scroll', 'scrollend', 'resize', 'transitionend']) addEventListener(type, moved, true);
  for (const type of ['scroll', 'scrollend', 'resize']) globalThis.visualViewport?.addEventListener(type, moved);
  new MutationObserver(() => reportAfter(100)).observe(document, { subtree: true, childList: true, attributes: true,
    attributeFilter: ['class', 'style', 'type', 'hidden', 'disabled', 'readonly', 'inputmode', 'autocomplete', 'contenteditable',
      'aria-label', 'aria-labelledby', 'aria-invalid', 'aria-errormessage', 'placeholder'] });
  reportAfter(0);
})()"#
);
