// The page in a real browser, with the server of `fake-server.ts`.
//
// `npm run test:browser`. Without a browser on the machine all tests are skipped with a warning.
import { fileURLToPath } from 'node:url';
import { chromium, type Browser, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startFake, type Fake } from '../fake-server';
import { findBrowser } from './browser';

const DIST = fileURLToPath(new URL('../../dist', import.meta.url));
const browserPath = findBrowser();
if (browserPath === null) console.warn('skipped: no Chromium or Chrome here (install one, or name it in CHROME)');

const SELECT = 'PREFIX air: <http://example.org/air/ont#>\nSELECT * WHERE { ?airport air:code ?code }';
const CONSTRUCT = 'CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }';

describe.skipIf(browserPath === null)('the page', () => {
  let browser: Browser;
  let fake: Fake;
  let page: Page;
  let problems: string[] = [];

  beforeAll(async () => {
    fake = await startFake({ page: DIST });
    browser = await chromium.launch({ executablePath: browserPath ?? '', args: ['--no-sandbox'] });
  });
  afterAll(async () => {
    await browser.close();
    await fake.close();
  });
  beforeEach(async () => {
    // A context of its own: nothing in its storage.
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    page = await context.newPage();
    page.setDefaultTimeout(10_000);
    problems = [];
    page.on('pageerror', (error) => problems.push(error.message));
    page.on('console', (message) => {
      // Answers with an error status are told as console errors too; the tests of errors want those.
      if (message.type() === 'error' && !message.text().includes('status of 4')) problems.push(message.text());
    });
    await page.goto(fake.address);
    await page.locator('.info', { hasText: 'statements' }).waitFor();
  });
  afterEach(async () => {
    await page.context().close();
    expect(problems).toEqual([]);
  });

  const write = async (text: string): Promise<void> => {
    await page.locator('.cm-content').click();
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.insertText(text);
    await page.keyboard.press('Escape');
  };
  const run = async (text: string): Promise<void> => {
    await write(text);
    await page.keyboard.press('ControlOrMeta+Enter');
  };
  const status = (text: string | RegExp): Promise<void> => page.locator('.status', { hasText: text }).waitFor();

  it('greets with examples that run', async () => {
    await page.getByRole('button', { name: 'Ten statements' }).last().click();
    await status('8 rows');
    expect(await page.locator('.cm-content').innerText()).toContain('LIMIT 10');
  });

  it('runs a query and shows its rows', async () => {
    await run(SELECT);
    await status(/8 rows in .*ms/);
    const first = page.getByRole('row').nth(1);
    expect(await first.innerText()).toContain('Austin Bergstrom');
    expect(await first.locator('[data-iri]').getAttribute('title')).toBe('http://example.org/air/airport/AUS');
  });

  it('lists what runs, and stops it', async () => {
    await page.getByRole('button', { name: 'Running requests' }).click();
    const dialog = page.getByRole('dialog', { name: 'Running requests' });
    await dialog.getByText('120,000 rows').waitFor();
    await dialog.getByText('g.V().count()').waitFor();
    await dialog.getByRole('button', { name: 'Stop request 9' }).click();
    await dialog.getByText('g.V().count()').waitFor({ state: 'detached' });
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
  });

  it('types with highlighting', async () => {
    await page.locator('.cm-content').click();
    await page.keyboard.type('SELECT ?x', { delay: 5 });
    const keyword = page.locator('.cm-line span', { hasText: /^SELECT$/ });
    await keyword.waitFor();
    expect(await keyword.evaluate((element) => getComputedStyle(element).fontWeight)).toBe('600');
  });

  it('completes a predicate from the data and adds its prefix', async () => {
    await write('SELECT * WHERE {\n  ?s \n}');
    await page.keyboard.press('ControlOrMeta+Home');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('End');
    await page.keyboard.type('rou', { delay: 20 });
    await page.locator('.cm-tooltip-autocomplete li', { hasText: 'air:route' }).waitFor();
    expect(await page.locator('.cm-tooltip-autocomplete li').first().innerText()).toContain('50,637');
    // A proposal that has only just come is not taken yet: ask until it is.
    await expect.poll(async () => (await page.keyboard.press('Tab'), page.locator('.cm-content').innerText())).toContain('?s air:route');
    expect(await page.locator('.cm-line').first().innerText()).toBe('PREFIX air: <http://example.org/air/ont#>');
  });

  it('shows an error below the editor and marks its place', async () => {
    await run('SELECT * WHERE {\n  ?s air:code ?code\n}');
    const failure = page.getByRole('alert');
    await failure.filter({ hasText: 'the prefix air: is not declared (line 2, column 6)' }).waitFor();
    expect(await failure.locator('pre').innerText()).toContain('^^^^');
    expect(await failure.innerText()).toContain('hint: add PREFIX air:');
    expect(await page.locator('.cm-line .wrong').innerText()).toBe('air:code');
    // The next change takes the mark away.
    await page.keyboard.type('x');
    await page.locator('.wrong').waitFor({ state: 'detached' });
  });

  it('cancels a query, and the server notices', async () => {
    const before = fake.aborted();
    await run('SELECT * {} # slow');
    await page.getByRole('button', { name: /Cancel/ }).waitFor();
    await page.keyboard.press('Escape');
    await status('cancelled after');
    await page.locator('.run', { hasText: 'Run' }).waitFor();
    await expect.poll(() => fake.aborted()).toBe(before + 1);
  });

  // users 32: what an earlier query found is not taken for the answer of one that was cancelled or failed.
  it('takes the earlier result away when a query is cancelled or fails', async () => {
    await run(SELECT);
    await status('8 rows');
    await run('SELECT * {} # slow');
    await page.getByRole('button', { name: /Cancel/ }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('heading', { name: 'Cancelled' }).waitFor();
    expect(await page.getByRole('row').count()).toBe(0);
    expect(await page.locator('.files button').count()).toBe(0);
    await run(SELECT);
    await status('8 rows');
    await run('SELECT * WHERE {\n  ?s air:code ?code\n}');
    await page.getByRole('heading', { name: 'Failed' }).waitFor();
    expect(await page.getByRole('row').count()).toBe(0);
  });

  it('keeps 100,000 rows smooth: few elements, the last row in reach, sorted by value', async () => {
    await run(`${SELECT} # rows 100000`);
    await status('100,000 rows');
    expect(await page.getByRole('grid').getAttribute('aria-rowcount')).toBe('100001');
    expect(await page.getByRole('gridcell').count()).toBeLessThan(300);
    await page.getByRole('grid').focus();
    await page.keyboard.press('End');
    await page.getByRole('gridcell', { name: '99999', exact: true }).waitFor();
    await page.getByRole('button', { name: 'runways' }).click();
    await page.getByRole('button', { name: 'runways' }).click();
    await page.locator('[aria-sort=descending]').waitFor();
    await page.keyboard.press('Shift+Tab');
    await page.getByRole('grid').focus();
    await page.keyboard.press('Home');
    await page.getByRole('gridcell', { name: '99999', exact: true }).waitFor();
    expect(await page.getByRole('gridcell').count()).toBeLessThan(300);
  });

  it('describes a resource by click and by keyboard', async () => {
    await run(SELECT);
    await page.locator('.grid [data-iri]').first().click();
    const inspector = page.getByRole('complementary', { name: 'About a resource' });
    await inspector.getByRole('heading', { name: 'Austin Bergstrom' }).waitFor();
    expect(await inspector.innerText()).toContain('air:runways');
    await inspector.locator('[data-iri$="/DFW"]').first().click();
    await inspector.getByRole('heading', { name: 'Dallas/Fort Worth' }).waitFor();
    await inspector.getByRole('button', { name: 'Back' }).click();
    await inspector.getByRole('heading', { name: 'Austin Bergstrom' }).waitFor();
    await page.keyboard.press('Escape');
    await inspector.waitFor({ state: 'hidden' });
    await page.getByRole('grid').focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await inspector.getByRole('heading', { name: 'Dallas/Fort Worth' }).waitFor();
    // users 36: neighbours have their names, and a new result closes the panel.
    await inspector.locator('[data-iri$="/LHR"] .called', { hasText: 'London Heathrow' }).waitFor();
    await run(`${SELECT} # again`);
    await inspector.waitFor({ state: 'hidden' });
    expect(await page.evaluate(() => document.activeElement?.closest('.cm-editor') !== null)).toBe(true);
  });

  it('draws a graph, and expands a vertex by a click', async () => {
    await run(CONSTRUCT);
    const canvas = page.locator('.picture .canvas');
    await page.locator('.note', { hasText: '7 vertices, 11 edges' }).waitFor();
    expect(await canvas.getAttribute('aria-label')).toContain('7 vertices');
    expect(await page.locator('.legend').innerText()).toContain('Airport');
    // A vertex is where the picture says it is: click each until the panel is about Frankfurt.
    const box = await canvas.boundingBox();
    expect(box).not.toBeNull();
    const place = await page.evaluate(() => {
      const canvas = document.querySelector('.picture .canvas') as HTMLElement & { _cyreg?: { cy: { getElementById(id: string): { renderedPosition(): { x: number; y: number } } } } };
      return canvas._cyreg?.cy.getElementById('http://example.org/air/airport/FRA').renderedPosition() ?? null;
    });
    expect(place).not.toBeNull();
    await page.mouse.click((box?.x ?? 0) + (place?.x ?? 0), (box?.y ?? 0) + (place?.y ?? 0));
    await page.getByRole('heading', { name: 'Frankfurt am Main' }).waitFor();
    await page.locator('.note', { hasText: '8 vertices, 12 edges' }).waitFor();
    // users 33: all vertices stay in view.
    await page.waitForTimeout(500);
    const outside = await page.evaluate(() => {
      const canvas = document.querySelector('.picture .canvas') as HTMLElement & { _cyreg?: { cy: { nodes(): { map<T>(f: (node: { renderedPosition(): { x: number; y: number } }) => T): T[] } } } };
      const { width, height } = canvas.getBoundingClientRect();
      return canvas._cyreg?.cy.nodes().map((node) => node.renderedPosition()).filter(({ x, y }) => x < 0 || y < 0 || x > width || y > height).length;
    });
    expect(outside).toBe(0);
  });

  it('draws rows', async () => {
    await run(SELECT);
    await status('8 rows');
    await page.getByRole('tab', { name: 'Picture' }).click();
    await page.locator('.note', { hasText: '8 vertices, 0 edges' }).waitFor();
  });

  it('shows a plan without running, and a profile with rows and times', async () => {
    await write(SELECT);
    await page.keyboard.press('ControlOrMeta+Shift+Enter');
    const plan = page.locator('.plan');
    await plan.getByText('by ?n ?_4 = count(*)').waitFor();
    expect(await plan.innerText()).not.toContain('Actual');
    await page.getByRole('button', { name: 'Run and profile' }).click();
    await plan.getByRole('columnheader', { name: 'Actual' }).waitFor();
    expect(await plan.innerText()).toContain('8,354');
    expect(await plan.innerText()).toContain('638 µs');
    expect(await plan.locator('.off').first().innerText()).toContain('18×');
  });

  it('shows the text as it came, and saves files', async () => {
    await run(SELECT);
    await status('8 rows');
    await page.getByRole('tab', { name: 'Text' }).click();
    expect(await page.locator('.raw').innerText()).toContain('"head":{"vars":["airport"');
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Save as CSV' }).click()]);
    expect(download.suggestedFilename()).toBe('result.csv');
    const stream = await download.createReadStream();
    const parts: Buffer[] = [];
    for await (const part of stream) parts.push(part as Buffer);
    expect(Buffer.concat(parts).toString().split('\r\n')[1]).toBe('http://example.org/air/airport/AUS,Austin Bergstrom,2');
  });

  it('remembers saved queries, history and the text', async () => {
    await run(SELECT);
    await status('8 rows');
    await page.keyboard.press('ControlOrMeta+s');
    await page.getByRole('textbox', { name: 'Name' }).fill('Codes');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Codes', exact: true }).waitFor();
    await page.reload();
    expect(await page.locator('.cm-content').innerText()).toContain('air:code');
    await page.getByRole('button', { name: 'Codes', exact: true }).waitFor();
    expect(await page.locator('.side').innerText()).toContain('8 rows in');
    await page.getByRole('button', { name: 'Remove Codes' }).click();
    await page.getByRole('button', { name: 'Codes', exact: true }).waitFor({ state: 'detached' });
  });

  it('takes saved queries to another browser, in a file', async () => {
    await write(SELECT);
    await page.keyboard.press('ControlOrMeta+s');
    await page.getByRole('textbox', { name: 'Name' }).fill('Codes');
    await page.keyboard.press('Enter');
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Export saved queries' }).click()]);
    expect(download.suggestedFilename()).toBe('queries.json');
    const file = await download.path();
    await page.getByRole('button', { name: 'Remove Codes' }).click();
    await page.getByRole('button', { name: 'Codes', exact: true }).waitFor({ state: 'detached' });
    const give = async (path: string): Promise<void> => {
      const [chooser] = await Promise.all([page.waitForEvent('filechooser'), page.getByRole('button', { name: 'Import saved queries' }).click()]);
      await chooser.setFiles(path);
    };
    await give(file);
    await page.getByRole('button', { name: 'Codes', exact: true }).waitFor();
    await give(fileURLToPath(import.meta.url));
    await status('it is not JSON');
  });

  it('makes columns wider by pointer and by keys, and gives them back', async () => {
    await run(SELECT);
    await status('8 rows');
    const column = page.getByRole('columnheader', { name: 'label' });
    const width = async (): Promise<number> => (await column.boundingBox())?.width ?? 0;
    const before = await width();
    const edge = await column.locator('.handle').boundingBox();
    if (edge === null) expect.fail('no edge to drag');
    await page.mouse.move(edge.x + 5, edge.y + 5);
    await page.mouse.down();
    await page.mouse.move(edge.x + 65, edge.y + 5, { steps: 3 });
    await page.mouse.up();
    expect(await width()).toBeCloseTo(before + 60, -1);
    const cell = await page.getByRole('row').nth(1).getByRole('gridcell').nth(1).boundingBox();
    expect(cell?.width).toBeCloseTo(await width(), 0);
    await column.getByRole('button').focus();
    await page.keyboard.press('Alt+ArrowLeft');
    expect(await width()).toBeCloseTo(before + 36, -1);
    await column.locator('.handle').dblclick();
    expect(await width()).toBeCloseTo(before, 0);
  });

  it('asks for less time than the server allows', async () => {
    await page.getByLabel('Time limit').locator('option', { hasText: '≤ 60 s' }).waitFor({ state: 'attached' });
    await page.getByLabel('Time limit').selectOption('≤ 5 s');
    const [request] = await Promise.all([page.waitForRequest('**/query**'), run(SELECT)]);
    expect(new URL(request.url()).searchParams.get('timeout')).toBe('5');
    await page.reload();
    await page.getByLabel('Time limit').locator('option', { hasText: '≤ 60 s' }).waitFor({ state: 'attached' });
    await page.keyboard.press('Alt+l');
    const [other] = await Promise.all([page.waitForRequest('**/gremlin'), run('g.V()')]);
    expect(other.postDataJSON()).toEqual({ gremlin: 'g.V()', language: 'gremlin-lang', evaluationTimeout: 5000 });
  });

  it('takes a query from the address', async () => {
    await page.goto(`${fake.address}#query=${encodeURIComponent('ASK { ?shared ?p ?o }')}`);
    await page.reload();
    await page.locator('.cm-content', { hasText: '?shared' }).waitFor();
    await page.locator('.run', { hasText: 'Run' }).click();
    await page.locator('.answer', { hasText: 'Yes' }).waitFor();
  });

  it('lists names and inserts one', async () => {
    await page.getByRole('tab', { name: 'Names' }).click();
    await page.getByLabel('Find a class or predicate').fill('airp');
    await page.locator('.names .item', { hasText: 'air:route' }).waitFor({ state: 'detached' });
    await page.locator('.names .item', { hasText: 'air:Airport' }).click();
    await expect.poll(() => page.locator('.cm-content').innerText()).toContain('air:Airport');
    expect(await page.locator('.cm-line').first().innerText()).toContain('PREFIX air:');
  });

  it('sends an update', async () => {
    await run('INSERT DATA { <http://a> <http://b> 1 }');
    await page.locator('.answer', { hasText: 'Done' }).waitFor();
    // users 36: what has changed.
    await status('1 statement added');
    expect(await page.locator('.answer').innerText()).toContain('1 statement added');
  });

  it('has labels on all controls and fits a phone', async () => {
    const unnamed = await page.evaluate(() =>
      [...document.querySelectorAll('button, input, select')]
        .filter((element) => !((element.tagName !== 'SELECT' && element.textContent?.trim()) || element.getAttribute('aria-label') || element.closest('label')))
        .map((element) => element.outerHTML),
    );
    expect(unnamed).toEqual([]);
    await page.setViewportSize({ width: 390, height: 800 });
    await page.reload();
    await run(SELECT);
    await status('8 rows');
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  });

  it('says when an answer breaks off', async () => {
    await run(`${SELECT} # break`);
    await page.getByRole('alert').filter({ hasText: 'the answer broke off' }).waitFor();
    problems = problems.filter((problem) => !problem.includes('ERR_'));
  });

  it('says when nobody answers', async () => {
    await page.route('**/query', (route) => route.abort());
    await run(SELECT);
    await page.getByRole('alert').filter({ hasText: 'the server does not answer' }).waitFor();
    problems = problems.filter((problem) => !problem.includes('ERR_FAILED'));
  });
});

// users 37: an empty database offered queries, and nothing about loading.
describe.skipIf(browserPath === null)('an empty database', () => {
  it('takes files and first data', async () => {
    const fake = await startFake({ page: DIST, empty: true });
    const browser = await chromium.launch({ executablePath: browserPath ?? '', args: ['--no-sandbox'] });
    try {
      const page = await browser.newPage();
      await page.goto(fake.address);
      await page.getByRole('heading', { name: 'This database is empty' }).waitFor();
      await page.getByRole('button', { name: /^Write some data/ }).click();
      await page.locator('.cm-content', { hasText: 'INSERT DATA' }).waitFor();
      const [chooser] = await Promise.all([page.waitForEvent('filechooser'), page.getByRole('button', { name: /^Load files/ }).click()]);
      const [request] = await Promise.all([
        page.waitForRequest('**/load'),
        chooser.setFiles([{ name: 'people.csv', mimeType: 'text/csv', buffer: Buffer.from('id,label,name\n1,person,Ann\n') }]),
      ]);
      expect(request.method()).toBe('POST');
      expect(request.headers()['content-type']).toContain('multipart/form-data');
      await page.locator('.status', { hasText: '2 statements loaded' }).waitFor();
      expect(await page.locator('.plan-text').innerText()).toContain('people.csv: a note');
      await page.locator('.info', { hasText: '2 statements' }).waitFor();
    } finally {
      await browser.close();
      await fake.close();
    }
  });
});

describe.skipIf(browserPath === null)('a server that asks who you are', () => {
  it('gets what a person says, for this tab', async () => {
    const authorization = `Basic ${Buffer.from('ann:s3cret é').toString('base64')}`;
    const fake = await startFake({ page: DIST, authorization });
    const browser = await chromium.launch({ executablePath: browserPath ?? '', args: ['--no-sandbox'] });
    try {
      const page = await browser.newPage();
      await page.goto(fake.address);
      await page.getByLabel('User').fill('ann');
      await page.getByLabel('Password').fill('wrong');
      await page.keyboard.press('Enter');
      await page.getByText('The server rejected these credentials.').waitFor();
      await page.getByLabel('User').fill('ann');
      await page.getByLabel('Password').fill('s3cret é');
      await page.keyboard.press('Enter');
      await page.locator('.info', { hasText: 'statements' }).waitFor();
      await page.reload();
      await page.locator('.info', { hasText: 'statements' }).waitFor();
    } finally {
      await browser.close();
      await fake.close();
    }
  });
});
