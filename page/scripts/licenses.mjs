// Writes dist/licenses.txt: the licences of the packages that are in the built page, as they ask for.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';

const root = new URL('../', import.meta.url);
const { packages } = JSON.parse(readFileSync(new URL('package-lock.json', root), 'utf8'));
const parts = Object.entries(packages)
  .filter(([path, { dev }]) => path !== '' && !dev)
  .map(([path, { version, license }]) => {
    const folder = new URL(`${path}/`, root);
    const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
    if (file === undefined) throw new Error(`${path} has no licence file`);
    const name = path.replace(/^.*node_modules\//, '');
    return `${name} ${version} (${license})\n\n${readFileSync(new URL(file, folder), 'utf8').trim()}\n`;
  });
writeFileSync(new URL('dist/licenses.txt', root), parts.join(`\n${'-'.repeat(80)}\n\n`));
