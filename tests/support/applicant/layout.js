// Finds faults of layout in the page that is shown: what is cut off, covers something else, is outside
// of the window, too small to hit, or not a text for people. The value is a promise of a list of texts.

(async () => {
  const MAX_ROUNDING_PIXELS = 1;
  // WCAG 2.2, success criterion 2.5.8.
  const MIN_TARGET_PIXELS = 24;
  // Below this height a sheet scrolls as a whole, with its buttons.
  const MIN_SHEET_PIXELS = 480;
  // The name of a partner may be long.
  const MAX_BUTTON_LINES = 3;
  const CONTROLS = 'a[href], button, input, select, textarea, [tabindex="0"]';
  const NOT_FOR_PEOPLE = /\{\w+\}|\b[A-Z]{2,}_[A-Z_]+\b|\bundefined\b|\bnull\b|\bNaN\b|\[object/;

  const root = document.documentElement;
  const found = new Set();
  const report = (what, element, text = element.textContent) => {
    const name = element.id ? `#${element.id}` : element.className ? `.${String(element.className)}` : '';
    found.add(`${what}: ${element.localName}${name} ${JSON.stringify(text.trim().slice(0, 60))}`);
  };

  const style = (element) => getComputedStyle(element);
  const box = ({ left, top, right, bottom }) => ({ left, top, right, bottom });
  const meet = (one, other) => ({
    left: Math.max(one.left, other.left),
    top: Math.max(one.top, other.top),
    right: Math.min(one.right, other.right),
    bottom: Math.min(one.bottom, other.bottom),
  });
  const isEmpty = (area) => area.right - area.left <= MAX_ROUNDING_PIXELS || area.bottom - area.top <= MAX_ROUNDING_PIXELS;

  /** Whether an element is drawn. Texts for screen readers alone are in boxes of one pixel. */
  function isShown(element) {
    if (!element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) return false;
    for (let at = element; at && at !== document.body; at = at.parentElement) {
      const { width, height } = at.getBoundingClientRect();
      if (width <= 1 && height <= 1 || Number(style(at).opacity) < 0.1) return false;
    }
    return true;
  }

  /** The part of an element in which its content is drawn. */
  function inside(element) {
    if (element === root || element === document.body) return { left: 0, top: 0, right: root.clientWidth, bottom: innerHeight };
    const { left, top } = element.getBoundingClientRect();
    const [x, y] = [left + element.clientLeft, top + element.clientTop];
    return { left: x, top: y, right: x + element.clientWidth, bottom: y + element.clientHeight };
  }

  /** Whether a text that is cut can be read in full: from its title, or by a control for it. */
  function isReadable(element) {
    if (style(element).textOverflow === 'ellipsis' && element.closest('[title]')) return true;
    const control = element.id && document.querySelector(`[aria-controls="${element.id}"]`);
    return Boolean(control) && isShown(control);
  }

  /** Returns what is drawn of an area of an element, and reports what cannot be seen by scrolling. */
  function drawn(element, area, what) {
    let rest = area;
    // What is around an open dialog does not cut it.
    // A field cuts its text, not itself.
    const first = element.matches('input, select, textarea') ? element.parentElement : element;
    for (let at = first; at; at = at.localName === 'dialog' ? root : at.parentElement) {
      const { overflowX, overflowY } = style(at);
      if (overflowX === 'visible' && overflowY === 'visible' && at !== root) continue;
      const within = inside(at);
      const scrolls = (overflow) => overflow === 'auto' || overflow === 'scroll';
      const [across, down] = at === root ? [false, root.scrollHeight > root.clientHeight + 1] : [scrolls(overflowX), scrolls(overflowY)];
      const [left, right] = [within.left - rest.left, rest.right - within.right];
      const [above, below] = [within.top - rest.top, rest.bottom - within.bottom];
      const isCut = !across && Math.max(left, right) > MAX_ROUNDING_PIXELS || !down && Math.max(above, below) > MAX_ROUNDING_PIXELS;
      if (isCut && !isReadable(at)) report(`${what} is cut off by ${at.localName}${at.id && `#${at.id}`}`, element);
      rest = meet(rest, within);
      if (isEmpty(rest)) return null;
    }
    return rest;
  }

  /** Elements of different layers cover each other on purpose. */
  const layer = (element) => element.closest('dialog, .step.open .prompt') ?? document.body;

  const parts = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const { currentNode: node } = texts;
    const element = node.parentElement;
    const text = node.data.trim();
    if (!text || ['SCRIPT', 'STYLE', 'NOSCRIPT'].includes(element.tagName) || !isShown(element)) continue;
    if (NOT_FOR_PEOPLE.test(text)) report('no text for people', element);
    const range = document.createRange();
    range.selectNodeContents(node);
    const lines = [...range.getClientRects()].filter((line) => line.width > 0 && line.height > 0);
    const rows = new Set(lines.map((line) => Math.round(line.top))).size;
    if (rows > 2 && text.length / rows < 5) report(`squeezed into ${rows} lines`, element, text);
    if (rows > MAX_BUTTON_LINES && element.closest('button, .button')) report(`a button of ${rows} lines`, element, text);
    for (const line of lines) {
      const area = drawn(element, box(line), 'text');
      if (area) parts.push({ element, area, text });
    }
  }
  for (const control of document.querySelectorAll(CONTROLS)) {
    // What the page says is over the remote page.
    if (control.matches('canvas, .stage') || !isShown(control)) continue;
    const { width, height } = control.getBoundingClientRect();
    if (Math.min(width, height) < MIN_TARGET_PIXELS - 0.5) report(`a control of ${Math.round(width)} × ${Math.round(height)} pixels`, control);
    const area = drawn(control, box(control.getBoundingClientRect()), 'a control');
    if (area) parts.push({ element: control, area, text: '' });
  }
  parts.forEach((one, at) => parts.slice(at + 1).forEach((other) => {
    if (one.element.contains(other.element) || other.element.contains(one.element) || layer(one.element) !== layer(other.element)) return;
    const common = meet(one.area, other.area);
    // The boxes of lines are a little higher than the distance of lines.
    if (common.right - common.left <= MAX_ROUNDING_PIXELS || common.bottom - common.top <= 2 * MAX_ROUNDING_PIXELS) return;
    report(`overlaps ${other.element.localName}${other.element.id && `#${other.element.id}`} ${JSON.stringify(other.text)}`, one.element);
  }));

  for (const element of [root, document.body, ...document.body.querySelectorAll('*')]) {
    const { overflowX } = style(element);
    if (overflowX === 'visible' && element !== root || !isShown(element) || isReadable(element)) continue;
    if (element.scrollWidth > element.clientWidth + MAX_ROUNDING_PIXELS && element.matches('html, body, main, .card, .list, dialog')) report('wider than its room', element, '');
  }
  for (const element of document.body.querySelectorAll('p, h1, h2, h3, li, dt, dd, button, a, small, .host, .brand')) {
    const hasContent = element.textContent.trim() || element.querySelector('svg, img, input');
    if (!hasContent && isShown(element) && !isEmpty(element.getBoundingClientRect())) report('an empty box', element);
  }
  for (const sheet of document.querySelectorAll('.sheet')) {
    if (!isShown(sheet) || innerHeight < MIN_SHEET_PIXELS) continue;
    const room = inside(sheet);
    for (const button of sheet.querySelectorAll('button')) {
      const { top, bottom } = button.getBoundingClientRect();
      if (top < room.top || bottom > room.bottom) report('a button that has to be scrolled to', button);
    }
  }
  await reportEnglish();
  return [...found];

  /** Reports texts of the page in English where it is in another language. */
  async function reportEnglish() {
    if (root.lang === 'en') return;
    const folder = document.querySelector('link[rel=stylesheet]').href.replace(/style\.css$/, 'words/');
    const [english, own] = await Promise.all(['en', root.lang].map(async (language) => (await import(`${folder}${language}.js`)).default));
    const all = (words) => Object.entries(words).flatMap(([name, value]) => typeof value === 'string' ? [[name, value]] : all(value).map(([rest, text]) => [`${name}.${rest}`, text]));
    const ours = new Map(all(own));
    const escaped = (text) => text.replace(/[.*+?^$()|[\]\\]/g, '\\$&').replace(/\{\w+\}/g, '.+');
    const others = all(english).filter(([name, text]) => ours.get(name) !== text && /[a-z]{2}/i.test(text.replace(/\{\w+\}/g, '')));
    const isEnglish = (text) => others.some(([, words]) => new RegExp(`^${escaped(words)}$`).test(text));
    const plain = (text) => text.replace(/[\u2066-\u2069]/g, '').trim();
    for (const { element } of parts) {
      for (const text of [plain(element.textContent), element.ariaLabel, element.title]) if (text && isEnglish(text)) report('in English', element, text);
    }
  }
})()
