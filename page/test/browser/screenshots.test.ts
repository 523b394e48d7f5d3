// The pictures in docs/page: `npm run screenshots`, into the folder that SCREENSHOTS names.
//
// VERVET_URL names a server with the air routes as RDF, VERVET_GRAPH_URL one with the air routes as a
// property graph. Without them the fake server of the tests responds, whose rows do not depend on the query.
// The picture of the tour is made if VERVET_DEMO_URL names a `vervet demo --serve`, the one of a cluster
// if VERVET_CLUSTER_URL names a server of a `vervet cluster demo`. Each case waits for its expected content,
// so it is a test too.
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startFake, type Fake } from '../fake-server';
import { findBrowser } from './browser';

const DIST = fileURLToPath(new URL('../../dist', import.meta.url));
const folder = process.env['SCREENSHOTS'];
const demoAddress = process.env['VERVET_DEMO_URL'];
const clusterAddress = process.env['VERVET_CLUSTER_URL'];
const browserPath = findBrowser();
if (folder !== undefined && browserPath === null) console.warn('skipped: no Chromium or Chrome here (install one, or name it in CHROME)');

const AIR = 'PREFIX air: <http://example.org/air/ont#>\n';
const BUSY = `${AIR}PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>

# The airports with the most routes, of those with more than three runways
SELECT ?airport ?name ?runways (COUNT(?to) AS ?routes)
WHERE {
  ?airport a air:Airport ; rdfs:label ?name ; air:runways ?runways ; air:route ?to
  FILTER(?runways > 3)
}
GROUP BY ?airport ?name ?runways
ORDER BY DESC(?routes)`;
const CHANGE = `${AIR}
# From Austin to Cape Town with one change, and where that is
CONSTRUCT { ?from air:route ?change . ?change air:route ?to . ?place air:contains ?change }
WHERE {
  ?from air:code "AUS" ; air:route ?change .
  ?change air:route ?to .
  ?to air:code "CPT" .
  ?place air:contains ?change
}`;
const CITIES = `${AIR}
# Cities that Austin reaches with one change, and in how many ways
SELECT ?city (COUNT(*) AS ?ways)
WHERE {
  ?austin air:code "AUS" ; air:route ?change .
  ?change air:route ?airport .
  ?airport air:city ?city
  MINUS { ?airport air:code "AUS" }
}
GROUP BY ?city ORDER BY DESC(?ways) LIMIT 100`;
const CHANGES = `PREFIX key: <urn:vervet:key:>

# Cities that Vienna reaches with one change, and in how many ways
SELECT ?city (COUNT(*) AS ?ways)
WHERE {
  ?vienna key:code "VIE" ; key:route ?change .
  ?change key:route ?airport .
  ?airport key:city ?city
}
GROUP BY ?city ORDER BY DESC(?ways) LIMIT 100`;
const MISTAKE = `SELECT ?airport ?city
WHERE {
  ?airport a air:Airport ;
    air:city ?city
  FILTER(?city = "Vienna")
}`;
const UNFINISHED = `${AIR}
SELECT ?airport ?city
WHERE {
  ?airport a air:Airport ;
    air:city ?city ;
    r
}`;

const WALKS = `// Ways from Austin to London with one change
g.V().has('code', 'AUS')
  .outE('route').inV()
  .outE('route').inV().has('code', 'LHR')
  .path()`;
const AIRPORTS = `// The airports with the most routes, and the longest of them
g.V().hasLabel('airport')
  .project('airport', 'city', 'runways', 'routes', 'longest')
    .by()
    .by('city')
    .by('runways')
    .by(out('route').count())
    .by(outE('route').order().by('dist', desc).limit(1))
  .order().by(select('routes'), desc)
  .limit(20)`;

describe.skipIf(folder === undefined || browserPath === null)('pictures', () => {
  let browser: Browser;
  let fake: Fake | null = null;
  let address = process.env['VERVET_URL'] ?? '';
  let graphAddress = process.env['VERVET_GRAPH_URL'] ?? '';

  beforeAll(async () => {
    fake = await startFake({ page: DIST });
    if (address === '') address = fake.address;
    if (graphAddress === '') graphAddress = fake.address;
    mkdirSync(folder ?? '', { recursive: true });
    browser = await chromium.launch({ executablePath: browserPath ?? '', args: ['--no-sandbox', '--font-render-hinting=none'] });
  });
  afterAll(async () => {
    await browser.close();
    await fake?.close();
  });

  const open = async (options: BrowserContextOptions, at = address): Promise<Page> => {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: 'reduce', ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(10_000);
    await page.goto(at);
    await page.locator('.info', { hasText: 'statements' }).waitFor();
    return page;
  };
  const write = async (page: Page, text: string): Promise<void> => {
    await page.locator('.cm-content').click();
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.insertText(text);
    await page.keyboard.press('Escape');
  };
  const run = async (page: Page, text: string): Promise<void> => {
    await write(page, text);
    await page.keyboard.press('ControlOrMeta+Home');
    await page.keyboard.press('ControlOrMeta+Enter');
    await page.locator('.status', { hasText: ' in ' }).waitFor();
  };
  const take = async (page: Page, name: string): Promise<void> => {
    // While a query runs the old result fades.
    await page.waitForFunction(() => [...document.querySelectorAll('.result > .panel')].every((panel) => getComputedStyle(panel).opacity === '1'));
    await page.screenshot({ path: join(resolve(folder ?? ''), `${name}.png`), caret: 'initial' });
    await page.context().close();
  };

  it('rows, light', async () => {
    const page = await open({ colorScheme: 'light' });
    await run(page, BUSY);
    await page.locator('.grid [data-iri]').first().click();
    await page.locator('.inspector dl').first().waitFor();
    await take(page, 'table-light');
  });

  it('a picture, dark', async () => {
    const page = await open({ colorScheme: 'dark' });
    await run(page, CHANGE);
    await page.locator('.legend li').first().waitFor();
    await take(page, 'picture-dark');
  });

  it('a profile, light', async () => {
    const page = await open({ colorScheme: 'light' });
    await run(page, CITIES);
    await page.getByRole('tab', { name: 'Plan' }).click();
    await page.getByRole('button', { name: 'Run and profile' }).click();
    await page.getByRole('columnheader', { name: 'Actual' }).waitFor();
    await page.mouse.move(0, 0);
    await take(page, 'plan-light');
  });

  it('completion, dark', async () => {
    const page = await open({ colorScheme: 'dark' });
    await run(page, BUSY);
    await write(page, UNFINISHED);
    for (let i = 0; i < 2; i += 1) await page.keyboard.press(i === 0 ? 'ArrowUp' : 'End');
    await page.keyboard.type('o');
    await page.locator('.cm-tooltip-autocomplete li', { hasText: 'air:route' }).waitFor();
    await take(page, 'completion-dark');
  });

  it('an error, light', async () => {
    const page = await open({ colorScheme: 'light' });
    await write(page, MISTAKE);
    await page.keyboard.press('ControlOrMeta+Enter');
    await page.locator('.wrong').waitFor();
    await take(page, 'error-light');
  });

  it('Gremlin: rows, light', async () => {
    const page = await open({ colorScheme: 'light' }, graphAddress);
    await page.getByRole('radio', { name: 'Gremlin' }).click();
    await run(page, AIRPORTS);
    await page.getByRole('gridcell').first().waitFor();
    await take(page, 'gremlin-light');
  });

  it('Gremlin: a picture, dark', async () => {
    const page = await open({ colorScheme: 'dark' }, graphAddress);
    await page.getByRole('radio', { name: 'Gremlin' }).click();
    await run(page, WALKS);
    await page.getByRole('tab', { name: 'Picture' }).click();
    await page.locator('.legend li').first().waitFor();
    await take(page, 'gremlin-picture-dark');
  });

  it.skipIf(demoAddress === undefined)('the tour of the demo, light', async () => {
    const page = await open({ colorScheme: 'light' }, demoAddress);
    await page.getByRole('main').getByRole('button', { name: /^3 / }).click();
    await page.locator('.legend li').first().waitFor();
    await page.locator('.note', { hasText: 'edges' }).waitFor();
    await take(page, 'tour-light');
  });

  it.skipIf(clusterAddress === undefined)('the servers of a cluster, light', async () => {
    const page = await open({ colorScheme: 'light' }, clusterAddress);
    await page.locator('.cluster .square').first().waitFor();
    await run(page, CHANGES);
    await page.locator('.query-traffic table').waitFor();
    await page.mouse.move(0, 0);
    await take(page, 'cluster-light');
  });

  it('a phone', async () => {
    const page = await open({ colorScheme: 'dark', viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true });
    await run(page, CHANGE);
    await page.locator('.legend li').first().waitFor();
    await take(page, 'phone-dark');
    expect(page.isClosed()).toBe(true);
  });
});
