// Tests a running server through the published YASGUI, in a real browser, from a page of another origin.
//
// Usage: node yasgui.mjs http://127.0.0.1:7878, on the data of `people` in tests/server/common.rs.
//
// Runs both packages: the original YASGUI and its maintained fork. A small web server on a port of its own serves
// the page and the package's files; all other requests of the page are refused. Text is typed into the editor, and
// the checks read what the page displays.
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { delimiter, join } from 'node:path';
import { createRequire } from 'node:module';
import assert from 'node:assert/strict';
import process from 'node:process';
import { chromium } from 'playwright-core';

const PACKAGES = ['@zazuko/yasgui', '@triply/yasgui'];
const BROWSERS = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome'];
const NAMES = 'SELECT ?person ?name { ?person <http://example.org/name> ?name } ORDER BY ?name';
const address = process.argv[2];

function findBrowser() {
  if (process.env.CHROME !== undefined) return existsSync(process.env.CHROME) ? process.env.CHROME : undefined;
  const folders = (process.env.PATH ?? '').split(delimiter);
  return folders.flatMap((folder) => BROWSERS.map((name) => join(folder, name))).find((file) => existsSync(file));
}

/** Serves the page of the package on a port of its own. */
async function serve(name) {
  const build = new URL('./build/', `file://${createRequire(import.meta.url).resolve(`${name}/package.json`)}`);
  const page = `<!doctype html><meta charset="utf-8"><title>YASGUI</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="/yasgui.min.css"><div id="yasgui"></div>
<script src="/yasgui.min.js"></script>
<script>
  const asked = new URLSearchParams(location.search);
  const method = asked.get('method');
  // Credentials cause a preflight request.
  const headers = asked.has('token') ? { Authorization: 'Bearer ' + asked.get('token') } : {};
  window.yasgui = new Yasgui(document.getElementById('yasgui'), {
    requestConfig: { endpoint: '${address}/sparql', method, headers }, copyEndpointOnNewTab: true, persistenceId: null,
  });
</script>`;
  const server = createServer((request, response) => {
    const path = new URL(request.url, 'http://x').pathname;
    if (path === '/') return response.setHeader('content-type', 'text/html').end(page);
    const type = { '/yasgui.min.js': 'text/javascript', '/yasgui.min.css': 'text/css' }[path];
    if (type === undefined) return response.writeHead(404).end();
    return response.setHeader('content-type', type).end(readFileSync(new URL(`.${path}`, build)));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, origin: `http://127.0.0.1:${server.address().port}` };
}

/** Tests one package with one HTTP method, with or without credentials. */
async function drive(browser, name, method, token) {
  const { server, origin } = await serve(name);
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const problems = [];
  page.on('pageerror', (error) => problems.push(error.message));
  await page.route((url) => url.origin !== origin && url.origin !== address, (route) => route.abort());
  await page.goto(`${origin}/?method=${method}${token ? `&token=${token}` : ''}`);

  const run = async (text) => {
    await page.locator('.yasqe .CodeMirror').first().click();
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.insertText(text);
    const answered = page.waitForResponse((response) => response.url().startsWith(address) && response.request().method() !== 'OPTIONS');
    await page.locator('.yasqe_queryButton').first().click();
    return answered;
  };
  const cells = async (...texts) => {
    for (const text of texts) await page.locator('.yasr table tbody td', { hasText: text }).first().waitFor();
  };

  // Rows as a table.
  const response = await run(NAMES);
  assert.equal(response.status(), 200);
  assert.equal(response.request().method(), method);
  assert.notEqual(origin, new URL(response.url()).origin);
  assert.equal((await response.allHeaders())['access-control-allow-origin'], '*');
  assert.equal((await response.request().allHeaders()).authorization, token && `Bearer ${token}`);
  await cells('ann', 'Ann', 'bob', 'Bob');
  const rows = page.locator('.yasr table.dataTable tbody tr');
  assert.equal(await rows.count(), 2, `${name}: ${await rows.allTextContents()}`);
  assert.match((await rows.allTextContents()).join('|'), /ann.*Ann.*\|.*bob.*Bob/s);
  // A boolean.
  await run('ASK { ?s a <http://example.org/Person> }');
  await page.locator('.yasr .yasr_results', { hasText: /true/i }).waitFor();
  // A graph, which this client shows as rows or as text.
  const graph = await run('CONSTRUCT { ?s <urn:called> ?n } WHERE { ?s <http://example.org/name> ?n }');
  assert.equal(graph.status(), 200);
  await page.locator('.yasr .yasr_results', { hasText: 'Ann' }).waitFor();
  // The page shows the server's error message.
  const wrong = await run('SELECT * { ?x fof:name ?n }');
  assert.equal(wrong.status(), 400);
  await page.locator('.yasr', { hasText: 'foaf' }).waitFor();
  // An update from a page of another site is refused with an error.
  const update = await run('INSERT DATA { <urn:a> <urn:b> 1 }');
  assert.equal(update.status(), 403);
  await page.locator('.yasr', { hasText: 'may not change the database' }).waitFor();

  assert.deepEqual(problems, [], name);
  await context.close();
  await new Promise((resolve) => server.close(resolve));
  console.log(`${name} by ${method}${token ? ' with credentials' : ''}: ok`);
}

const executablePath = findBrowser();
if (executablePath === undefined) {
  console.log('skipped: no Chromium or Chrome here (install one, or name it in CHROME)');
  process.exit(0);
}
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
try {
  for (const name of PACKAGES) {
    for (const [method, token] of [['GET'], ['POST'], ['POST', 'abc']]) await drive(browser, name, method, token);
  }
} finally {
  await browser.close();
}
console.log('YASGUI: ok');
