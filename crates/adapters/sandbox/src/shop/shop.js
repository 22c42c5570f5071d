// The application: one document, whose view follows the path.

const view = document.getElementById('view');
const titles = { '/orders': 'Your orders', '/profile': 'Your profile', '/sign-in': 'Sign in' };
const errors = {
  access_denied: 'You did not allow Acme Shop to use your Acme ID.',
  state: 'The sign-in is not the one that was begun here. Try again.',
};

/** Returns an element with properties, attributes of `data-`, and children. */
function element(name, { data = {}, ...properties } = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  Object.assign(made.dataset, data);
  made.append(...children);
  return made;
}

function token() {
  const cookie = document.cookie.split('; ').find((one) => one.startsWith('shop_csrf='));
  return cookie?.slice('shop_csrf='.length) ?? '';
}

/** Calls the API; an answer that is no success is thrown. */
async function call(path, method = 'GET', body = undefined) {
  const headers = { accept: 'application/json', 'x-csrf-token': token() };
  if (body) headers['content-type'] = 'application/json';
  const response = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}

/** Shows the view of a path without loading another document. */
function go(path, replace = false) {
  if (replace) history.replaceState(null, '', path);
  else history.pushState(null, '', path);
  return show();
}

function link(path, text) {
  const onclick = (event) => {
    event.preventDefault();
    go(path);
  };
  return element('a', { href: path, onclick }, text);
}

/** Goes on with the answer of the provider, as the query of the address that it led to. */
async function finish(query) {
  const answer = Object.fromEntries(new URLSearchParams(query));
  history.replaceState(null, '', '/sign-in');
  view.replaceChildren(element('p', { className: 'busy' }, 'Signing in…'));
  try {
    if (answer.error) throw new Error(answer.error);
    await call('/api/session', 'POST', { code: answer.code, state: answer.state });
    await go('/orders', true);
  } catch (error) {
    signIn(error.message);
  }
}

function signIn(error) {
  const button = element('button', { id: 'acme-id', type: 'button' }, 'Continue with Acme ID');
  button.onclick = () => {
    const popup = window.open('/sign-in/start', 'acme-id', 'popup,width=480,height=640');
    // A browser that opens no window for the shop signs in in this one.
    if (!popup) location.assign('/sign-in/start');
  };
  const main = element('main', { id: 'sign-in' }, element('h1', {}, titles['/sign-in']));
  if (error) {
    const text = errors[error] ?? 'That did not work. Try again.';
    main.append(element('p', { className: 'error', role: 'alert', data: { code: error } }, text));
  }
  main.append(element('p', {}, 'Acme Shop knows you by your Acme ID.'), button);
  view.replaceChildren(main);
}

function account(path, ...children) {
  const leave = element('button', { type: 'button', id: 'leave' }, 'Sign out');
  leave.onclick = async () => {
    await call('/api/session', 'DELETE');
    await go('/sign-in', true);
  };
  const links = element('nav', {}, link('/orders', 'Orders'), ' ', link('/profile', 'Profile'), ' ', leave);
  view.replaceChildren(element('main', { id: 'account' }, links, element('h1', {}, titles[path]), ...children));
}

function row({ number, placedOn, items, total, status }) {
  const price = new Intl.NumberFormat('en', { style: 'currency', currency: total.currency });
  const cells = [number, placedOn, items, price.format(total.amount), status];
  return element('tr', {}, ...cells.map((cell) => element('td', {}, String(cell))));
}

async function orders() {
  const rows = element('tbody');
  const heads = ['Order', 'Date', 'Items', 'Total', 'Status'].map((head) => element('th', {}, head));
  const table = element('table', { id: 'orders' }, element('thead', {}, element('tr', {}, ...heads)), rows);
  const more = element('button', { type: 'button', id: 'more' }, 'Show more');
  let cursor = '';
  const add = async () => {
    const page = await call(`/api/orders?cursor=${encodeURIComponent(cursor)}`);
    rows.append(...page.orders.map(row));
    cursor = page.next;
    if (!cursor) more.remove();
  };
  more.onclick = add;
  await add();
  if (rows.children.length) account('/orders', table, ...(cursor ? [more] : []));
  else account('/orders', element('p', { id: 'no-orders' }, 'You have not ordered anything yet.'));
}

async function profile() {
  const { customer, points } = await call('/api/profile');
  const terms = { Name: customer.name, 'Customer number': customer.id, Points: points };
  const items = Object.entries(terms).flatMap(([term, value]) => [
    element('dt', {}, term),
    element('dd', {}, String(value)),
  ]);
  account('/profile', element('dl', { id: 'profile' }, ...items));
}

async function show() {
  const { signedIn } = await call('/api/session');
  const path = location.pathname;
  if (!signedIn && path === '/sign-in' && location.search) return finish(location.search);
  if (!signedIn) {
    history.replaceState(null, '', '/sign-in');
    return signIn();
  }
  if (path === '/profile') return profile();
  if (path !== '/orders') history.replaceState(null, '', '/orders');
  return orders();
}

addEventListener('popstate', show);
addEventListener('message', (event) => {
  if (event.origin === location.origin && event.data?.type === 'acme-id') finish(event.data.answer);
});
show();
