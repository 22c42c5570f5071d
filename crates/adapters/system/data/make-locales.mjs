// Makes locales.txt: a country, the language most people there would expect of a site, and the time
// zone most of them live in. `npm ci && pip download tzdata && unzip tzdata-*.whl`, then
// `node make-locales.mjs`. Neither building nor running the service needs it.

import fs from 'node:fs';

const read = (path) => fs.readFileSync(new URL(path, import.meta.url), 'utf8');
const likely = JSON.parse(read('node_modules/cldr-core/supplemental/likelySubtags.json')).supplemental.likelySubtags;
const countries = read('places.txt').matchAll(/^=([A-Z]{2})\t/gm);

// Where a country has several zones: what CLDR calls its primary one, or the one of its largest city.
const primary = JSON.parse(read('node_modules/cldr-core/supplemental/primaryZones.json')).supplemental.primaryZones;
const BY_HAND = {
  AR: 'America/Argentina/Buenos_Aires', AU: 'Australia/Sydney', BR: 'America/Sao_Paulo', CA: 'America/Toronto',
  CD: 'Africa/Kinshasa', CY: 'Asia/Nicosia', FM: 'Pacific/Chuuk', GL: 'America/Nuuk', ID: 'Asia/Jakarta',
  KI: 'Pacific/Tarawa', KZ: 'Asia/Almaty', MN: 'Asia/Ulaanbaatar', MX: 'America/Mexico_City',
  MY: 'Asia/Kuala_Lumpur', PF: 'Pacific/Tahiti', PG: 'Pacific/Port_Moresby', PS: 'Asia/Gaza', RU: 'Europe/Moscow',
  US: 'America/New_York',
};

const zones = new Map();
for (const line of read('tzdata/zoneinfo/zone.tab').split('\n')) {
  const [country, , zone] = line.split('\t');
  if (!zone) continue;
  if (zones.has(country) && !BY_HAND[country] && !primary[country]) console.error(`${country}: ${zone} or ${zones.get(country)}?`);
  if (!zones.has(country)) zones.set(country, BY_HAND[country] ?? primary[country] ?? zone);
}

const lines = [];
for (const [, country] of countries) {
  const [language] = (likely[`und-${country}`] ?? 'en').split('-');
  lines.push([country, `${language}-${country}`, zones.get(country) ?? ''].join('\t'));
}
fs.writeFileSync(new URL('locales.txt', import.meta.url), `${lines.join('\n')}\n`);
