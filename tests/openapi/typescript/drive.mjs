// Drives one session through a client whose types come from the interface description.
import createClient from 'openapi-fetch';

/** @type {any} */
const { process } = globalThis;
/** @type {import('openapi-fetch').Client<import('./node_modules/.generated.d.ts').paths>} */
const api = createClient({
  baseUrl: process.env.AVOUCH_BASE,
  headers: { 'x-api-key': process.env.AVOUCH_KEY },
});

/**
 * @param {boolean} holds
 * @param {string} what
 */
function check(holds, what) {
  if (!holds) throw new Error(what);
}

const platforms = await api.GET('/partner/browser-platforms');
const platformId = platforms.data?.data[0]?.id;
check(platformId !== undefined, 'no platform');
const created = await api.POST('/partner/browser-session', {
  body: { platformId: Number(platformId), location: { country: 'US' }, externalReferenceId: 'ts-1' },
  params: { header: { 'Idempotency-Key': 'ts-1' } },
});
check(created.response.status === 201, `created: ${created.response.status}`);
const path = { id: String(created.data?.data.sessionId) };
const read = await api.GET('/partner/browser-session/{id}', { params: { path } });
check(read.data?.data.status === 'CREATED' && read.data.data.progress === 0, 'not created');
const refused = await api.POST('/partner/browser-session', {
  body: { platformId: 999, location: { country: 'US' } },
});
check(refused.error?.statusCode === 400, 'an unknown platform');
const ended = await api.DELETE('/partner/browser-session/{id}', { params: { path } });
check(ended.data?.data.status === 'TERMINATED', 'not terminated');
const list = await api.GET('/partner/browser-sessions', { params: { query: { status: 'TERMINATED' } } });
check(list.data?.data.total === 1, 'not in the list');
const timeline = await api.GET('/partner/browser-session/{id}/events', { params: { path } });
check(timeline.data?.data.at(-1)?.status === 'TERMINATED', 'not in the timeline');
console.log('a session was driven');
