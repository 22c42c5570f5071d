//! What is run in pages, in a world apart from their own scripts.

/// Whether the document is there, and which of the selectors show something.
pub(super) const LOOK: &str = "(selectors) => ({ ready: document.readyState, present: selectors.filter((s) => { \
     const e = document.querySelector(s); return !!e && e.getClientRects().length > 0; }) })";
/// A GET with the page's cookies, with a bound on the answer. An isolated world has a `fetch` that
/// the page cannot replace.
pub(super) const FETCH: &str = "async (url, most) => { const r = await fetch(url, { credentials: 'include', \
     redirect: 'error', cache: 'no-store' }); const reader = r.body.getReader(); const parts = []; \
     let size = 0; for (;;) { const { done, value } = await reader.read(); if (done) break; \
     size += value.length; if (size > most) { await reader.cancel(); throw new Error('too long'); } \
     parts.push(value); } return { status: r.status, body: await new Blob(parts).text() }; }";
/// The text of the first element of each selector, with a bound.
pub(super) const TEXTS: &str = "(selectors) => selectors.map((s) => { const e = document.querySelector(s); \
     return e ? e.textContent.trim().slice(0, 4096) : null; })";

/// The name of the function that our world in the page tells us by; the page does not see it.
pub(super) const TELL: &str = "avouchTell";

/// Draws lists of options in the page, where pictures show them and a finger reaches them: as a rule
/// they are windows of their own.
pub(super) const PICKERS: &str = "(() => { const sheet = new CSSStyleSheet(); \
     sheet.replaceSync('select:not([multiple]):not([size]),::picker(select){appearance:base-select}'); \
     document.adoptedStyleSheets.push(sheet); })()";

/// Sets the value of the field that has the focus, as a picker of the browser's would.
pub(super) const FILL: &str = "(value) => { const e = document.activeElement; \
     if (!e || !('value' in e) || e.disabled || e.readOnly) return; e.value = value; \
     for (const type of ['input', 'change']) e.dispatchEvent(new Event(type, { bubbles: true })); }";

/// Tells where fields are, of which kind, and which has the focus; never what is in them. A frame
/// within a page cannot know where it is: it tells of its focus alone, with no place. What may show
/// something that was written is told too, so that it can be covered: locked fields, fields behind
/// open shadow roots, and frames as a whole; too many of them are one that is everything.
pub(super) const FIELDS: &str = r#"(() => {
  const EDITABLE = 'input:not([type=hidden],[type=checkbox],[type=radio],[type=button],[type=submit],' +
    '[type=reset],[type=file],[type=image],[type=range],[type=color]),textarea,[contenteditable=""],[contenteditable=true]';
  const WRITTEN = EDITABLE + ',iframe,frame,object,embed';
  const [MOST, MOST_COVERS, MOST_ROOTS] = [24, 100, 50];
  let last = '';
  let due = 0;
  const focus = () => {
    let e = document.activeElement;
    while (e?.shadowRoot?.activeElement) e = e.shadowRoot.activeElement;
    return e?.matches?.(EDITABLE) ? e : null;
  };
  const kind = (e) => e.localName === 'input' ? e.type : e.localName === 'textarea' ? 'textarea' : 'editable';
  const roots = (from, found) => {
    for (const e of from.querySelectorAll('*')) {
      if (!e.shadowRoot || found.length === MOST_ROOTS) continue;
      found.push(e.shadowRoot);
      roots(e.shadowRoot, found);
    }
    return found;
  };
  const covers = () => {
    const places = [];
    for (const root of roots(document, [document])) {
      for (const e of root.querySelectorAll(WRITTEN)) {
        const r = e.getBoundingClientRect();
        if (r.width > 1 && r.height > 1) places.push([r.x, r.y, r.width, r.height].map(Math.round));
      }
    }
    return places.length > MOST_COVERS ? [[0, 0, 8192, 8192]] : places;
  };
  const look = () => {
    due = 0;
    const has = focus();
    const all = new Set(document.querySelectorAll(EDITABLE));
    if (has) all.add(has);
    const fields = [];
    let focused = null;
    for (const e of all) {
      if (fields.length === MOST) break;
      if (e.disabled || e.readOnly) continue;
      const r = e.getBoundingClientRect();
      const seen = r.width > 3 && r.height > 3 && r.bottom > 0 && r.right > 0 && r.top < innerHeight && r.left < innerWidth;
      if (!seen || (window !== top && e !== has)) continue;
      if (e === has) focused = fields.length;
      fields.push({ place: window === top ? [r.x, r.y, r.width, r.height] : [0, 0, 0, 0],
        kind: kind(e), mode: e.inputMode ?? '', complete: e.autocomplete ?? '' });
    }
    const told = JSON.stringify({ fields, focused, covers: window === top ? covers() : [] });
    if (told === last || (window !== top && !last && focused === null)) return;
    last = told;
    globalThis.avouchTell(told);
  };
  const after = (ms) => { due ||= setTimeout(look, ms); };
  for (const type of ['focusin', 'focusout', 'load']) addEventListener(type, () => after(0), true);
  for (const type of ['scroll', 'resize', 'transitionend']) addEventListener(type, () => after(50), true);
  new MutationObserver(() => after(100)).observe(document, { subtree: true, childList: true, attributes: true,
    attributeFilter: ['class', 'style', 'type', 'hidden', 'disabled', 'readonly', 'inputmode', 'autocomplete'] });
  after(0);
})()"#;
