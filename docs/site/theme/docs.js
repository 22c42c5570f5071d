// Search, copy buttons, colours of code, and the mark of the current page. The pages can be read
// without it.

const here = location.pathname.split('/').pop() || 'index.html';
for (const link of document.querySelectorAll('.contents a')) {
  if (link.getAttribute('href') === here) {
    link.setAttribute('aria-current', 'page');
    // `nearest` does not scroll the page itself where the list is in view.
    link.scrollIntoView({ block: 'nearest' });
  }
}
if (matchMedia('(max-width: 820px)').matches) document.getElementById('contents').open = false;

for (const block of document.querySelectorAll('pre')) {
  const code = block.querySelector('code');
  // A block that scrolls can be reached by keyboard.
  block.tabIndex = 0;
  if (!code) continue;
  if (/language-(?!text)/.test(code.className) && window.hljs) hljs.highlightBlock(code);
  if (!navigator.clipboard) continue;
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'copy';
  button.textContent = 'Copy';
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(code.textContent);
    button.textContent = 'Copied';
    setTimeout(() => { button.textContent = 'Copy'; }, 2000);
  });
  block.append(button);
}

const search = document.getElementById('search');
const query = document.getElementById('query');
const results = document.getElementById('results');
const found = document.getElementById('found');
const MAX_RESULTS = 12;
let index;

// The index is loaded by the first search. Its file adds itself to `window.search`.
window.search = {};
search.hidden = false;

function load(source) {
  return new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = source;
    script.onload = resolve;
    script.onerror = reject;
    document.head.append(script);
  });
}

function ready() {
  index ??= load(search.dataset.engine)
    .then(() => load(search.dataset.index))
    .then(() => elasticlunr.Index.load(window.search.index));
  return index;
}

function close() {
  results.hidden = true;
  results.replaceChildren();
}

async function show() {
  const text = query.value.trim();
  if (text.length < 2) return close();
  let matches;
  try {
    matches = (await ready()).search(text, window.search.search_options).slice(0, MAX_RESULTS);
  } catch {
    // The next search tries again.
    index = undefined;
    found.textContent = 'Search is not available at the moment.';
    return;
  }
  if (text !== query.value.trim()) return;
  results.hidden = false;
  if (!matches.length) {
    const none = document.createElement('p');
    none.textContent = `No results for “${text}”`;
    results.replaceChildren(none);
    found.textContent = none.textContent;
    return;
  }
  results.replaceChildren(...matches.map(({ ref, doc }) => {
    const link = document.createElement('a');
    link.href = search.dataset.root + window.search.doc_urls[ref];
    link.textContent = doc.title;
    const path = document.createElement('span');
    path.textContent = doc.breadcrumbs;
    link.append(path);
    return link;
  }));
  found.textContent = `${matches.length} results`;
}

query.addEventListener('focus', () => ready().catch(() => { index = undefined; }));
query.addEventListener('input', show);
results.addEventListener('click', close);
addEventListener('keydown', (event) => {
  const typing = event.target.closest?.('input, textarea');
  if (event.key === '/' && !typing) {
    event.preventDefault();
    query.focus();
  } else if (event.key === 'Escape' && search.contains(event.target)) {
    query.value = '';
    close();
    query.focus();
  } else if ((event.key === 'ArrowDown' || event.key === 'ArrowUp') && search.contains(event.target)) {
    const stops = [query, ...results.querySelectorAll('a')];
    const at = stops.indexOf(document.activeElement) + (event.key === 'ArrowDown' ? 1 : -1);
    if (stops[at]) {
      event.preventDefault();
      stops[at].focus();
    }
  }
});
addEventListener('click', (event) => {
  if (!search.contains(event.target)) close();
});
