// Prints what the built page weighs, and fails above the limit: all of it, gzipped.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

const LIMIT_KB = 400;
const dist = new URL('../dist/', import.meta.url).pathname;
const files = readdirSync(dist, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
let total = 0;
for (const { parentPath, path, name } of files) {
  const file = join(parentPath ?? path, name);
  const size = gzipSync(readFileSync(file), { level: 9 }).length;
  total += size;
  console.log(`${(size / 1000).toFixed(1).padStart(7)} kB  ${file.slice(dist.length)}`);
}
console.log(`${(total / 1000).toFixed(1).padStart(7)} kB  in all, gzipped (at most ${LIMIT_KB})`);
if (total > LIMIT_KB * 1000) process.exit(1);
