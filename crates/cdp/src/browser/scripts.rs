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
