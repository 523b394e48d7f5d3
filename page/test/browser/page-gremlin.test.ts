// Gremlin in a real browser, with the server of `fake-server.ts`, and with the server at VERVET_URL if it has
// Gremlin. Its data may be arbitrary: the test adds its own data and removes them.
import { fileURLToPath } from 'node:url';
import { chromium, type Browser, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startFake, type Fake } from '../fake-server';
import { findBrowser } from './browser';

const DIST = fileURLToPath(new URL('../../dist', import.meta.url));
const browserPath = findBrowser();
const real = await findServer();

/** The address of a server that speaks Gremlin; null, and a message why, if there is none. */
async function findServer(): Promise<string | null> {
  const address = process.env['VERVET_URL'];
  if (address === undefined) {
    console.warn('skipped: Gremlin before a real server (name one in VERVET_URL)');
    return null;
  }
  const answer = await fetch(new URL('gremlin', address), { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"gremlin":"g.inject(1)"}' });
  if (answer.ok) return address;
  console.warn(`skipped: the server at ${address} answers ${answer.status} at /gremlin, so it does not speak Gremlin`);
  return null;
}

/** What a test does with a page in which Gremlin is chosen. */
class Shell {
  constructor(readonly page: Page) {}

  async write(text: string): Promise<void> {
    await this.page.locator('.cm-content').click();
    await this.page.keyboard.press('ControlOrMeta+a');
    await this.page.keyboard.insertText(text);
    await this.page.keyboard.press('Escape');
  }

  async run(text: string): Promise<void> {
    await this.write(text);
    await this.page.keyboard.press('ControlOrMeta+Enter');
  }

  status(text: string | RegExp): Promise<void> {
    return this.page.locator('.status', { hasText: text }).waitFor();
  }

  editor(): Promise<string> {
    return this.page.locator('.cm-content').innerText();
  }
}

async function open(browser: Browser, address: string, problems: string[]): Promise<Shell> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  page.setDefaultTimeout(10_000);
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => {
    if (message.type() === 'error' && !message.text().includes('status of 4')) problems.push(message.text());
  });
  await page.goto(address);
  await page.locator('.info', { hasText: 'statement' }).waitFor();
  await page.getByRole('radio', { name: 'Gremlin' }).click();
  return new Shell(page);
}

describe.skipIf(browserPath === null)('Gremlin in the page', () => {
  let browser: Browser;
  let fake: Fake;
  let problems: string[] = [];
  let shell: Shell;
  let page: Page;

  beforeAll(async () => {
    fake = await startFake({ page: DIST });
    browser = await chromium.launch({ executablePath: browserPath ?? '', args: ['--no-sandbox'] });
  });
  afterAll(async () => {
    await browser.close();
    await fake.close();
  });
  beforeEach(async () => {
    problems = [];
    shell = await open(browser, fake.address, problems);
    page = shell.page;
  });
  afterEach(async () => {
    await page.context().close();
    expect(problems).toEqual([]);
  });

  it('is chosen by pointer and by keys, and each language keeps its text', async () => {
    await shell.write('g.V()');
    await page.keyboard.press('Alt+l');
    expect(await page.getByRole('radio', { name: 'SPARQL' }).getAttribute('aria-checked')).toBe('true');
    expect(await shell.editor()).not.toContain('g.V()');
    await shell.write('ASK {}');
    await page.getByRole('radio', { name: 'SPARQL' }).focus();
    await page.keyboard.press('ArrowRight');
    expect(await page.getByRole('radio', { name: 'Gremlin' }).getAttribute('aria-checked')).toBe('true');
    expect(await shell.editor()).toContain('g.V()');
    // Undo stays within the language.
    await page.keyboard.press('Alt+e');
    await page.keyboard.press('ControlOrMeta+z');
    expect(await shell.editor()).not.toContain('ASK');
    await shell.write('g.E()');
    await page.reload();
    await page.locator('.cm-content', { hasText: 'g.E()' }).waitFor();
    await page.keyboard.press('Alt+l');
    await page.locator('.cm-content', { hasText: 'ASK {}' }).waitFor();
  });

  it('greets with examples of its own', async () => {
    await page.getByRole('button', { name: 'Labels' }).last().click();
    await shell.status('2 rows');
    expect(await shell.editor()).toContain('groupCount');
    expect(await page.getByRole('columnheader').allInnerTexts()).toEqual(['key', 'value']);
    expect(await page.getByRole('row').nth(1).innerText()).toContain('3,504'.replace(',', ''));
  });

  it('shows vertices as cells that open a panel, and leaves the query in the editor', async () => {
    await shell.run('g.V()');
    await shell.status('4 rows');
    const cell = page.locator('.grid [data-iri]').first();
    expect(await cell.innerText()).toContain('Austin Bergstrom');
    expect(await cell.getAttribute('title')).toContain('v[1] airport\ncode: AUS');
    await cell.click();
    await page.locator('.inspector .address', { hasText: 'urn:vervet:vertex:1' }).waitFor();
    // users 33: a click replaced the query.
    expect((await shell.editor()).trim()).toBe('g.V()');
    await shell.write('g.V().has("half');
    await page.locator('.grid [data-iri]').nth(1).click();
    await page.locator('.inspector .address', { hasText: 'urn:vervet:vertex:2' }).waitFor();
    expect(await shell.editor()).toContain('half');
    await page.getByRole('button', { name: 'Describe in editor' }).click();
    await page.locator('.cm-content', { hasText: 'g.V(2)' }).waitFor();
  });

  it('shows maps as columns, edges and paths with their ends', async () => {
    await shell.run('g.V().elementMap()');
    await shell.status('4 rows');
    expect(await page.getByRole('columnheader').allInnerTexts()).toEqual(['id', 'label', 'code', 'name', 'runways']);
    await shell.run('g.E()');
    await page.getByRole('columnheader', { name: 'edge' }).waitFor();
    expect((await page.getByRole('row').nth(1).innerText()).replace(/\s/g, '')).toContain('1─route→2');
    await shell.run('g.V().outE().inV().path()');
    await page.getByRole('columnheader', { name: 'path' }).waitFor();
    expect((await page.getByRole('row').nth(1).innerText()).replace(/\s/g, '')).toContain('─route→2Dallas');
  });

  it('draws paths', async () => {
    await shell.run('g.V().outE().inV().path()');
    await shell.status('2 rows');
    await page.getByRole('tab', { name: 'Picture' }).click();
    await page.locator('.note', { hasText: '4 vertices, 4 edges' }).waitFor();
    await page.locator('.legend li', { hasText: 'airport' }).waitFor();
  });

  it('shows plans and profiles, and says what has none', async () => {
    await shell.write('g.V().hasLabel("airport").out("route")');
    await page.keyboard.press('ControlOrMeta+Shift+Enter');
    await page.locator('.plan-text', { hasText: 'hasLabel(airport)' }).waitFor();
    await page.getByRole('button', { name: 'Run and profile' }).click();
    await page.getByRole('columnheader', { name: 'Actual' }).waitFor();
    expect(await page.locator('.plan').innerText()).toContain('610 µs');
    expect(await page.locator('.plan').innerText()).not.toContain('Estimated');
    await shell.write('g.V().toList()');
    await page.keyboard.press('ControlOrMeta+Shift+Enter');
    await page.getByText('remove toList() at the end').waitFor();
  });

  it('marks the place of an error', async () => {
    await shell.run('g.V()\n  .outt()');
    await page.getByRole('alert').filter({ hasText: 'there is no step outt (line 2, column 4)' }).waitFor();
    expect(await page.locator('.cm-line .wrong').innerText()).toBe('outt');
  });

  it('completes steps and names', async () => {
    await page.locator('.cm-content').click();
    await page.keyboard.type('g.V().hasL', { delay: 30 });
    await page.locator('.cm-tooltip-autocomplete li', { hasText: 'hasLabel' }).waitFor();
    await expect.poll(async () => (await page.keyboard.press('Tab'), shell.editor())).toContain('hasLabel()');
    await page.keyboard.type("'airp", { delay: 30 });
    await page.locator('.cm-tooltip-autocomplete li', { hasText: 'airport' }).first().waitFor();
    await expect.poll(async () => (await page.keyboard.press('Tab'), shell.editor())).toContain("hasLabel('airport')");
  });

  it('cancels, keeps 100,000 rows smooth, and says what a write did', async () => {
    await shell.run('g.V() // slow');
    await page.getByRole('button', { name: /Cancel/ }).waitFor();
    await page.keyboard.press('Escape');
    await shell.status('cancelled after');
    await shell.run('g.V() // rows 100000');
    await shell.status('100,000 rows');
    expect(await page.getByRole('gridcell').count()).toBeLessThan(300);
    await shell.run('g.addV("x").iterate()');
    await page.locator('.answer', { hasText: 'Done' }).waitFor();
  });

  it('remembers the language of saved queries, history and links', async () => {
    await shell.run('g.V()');
    await shell.status('4 rows');
    await page.keyboard.press('ControlOrMeta+s');
    await page.getByRole('textbox', { name: 'Name' }).fill('All of them');
    await page.keyboard.press('Enter');
    await page.getByRole('radio', { name: 'SPARQL' }).click();
    const saved = page.locator('.removable .item', { hasText: 'All of them' });
    expect(await saved.innerText()).toContain('Gremlin');
    await saved.click();
    expect(await page.getByRole('radio', { name: 'Gremlin' }).getAttribute('aria-checked')).toBe('true');
    expect(await shell.editor()).toContain('g.V()');
    await page.getByRole('radio', { name: 'SPARQL' }).click();
    await page.locator('.side .item', { hasText: '4 rows in' }).click();
    expect(await page.getByRole('radio', { name: 'Gremlin' }).getAttribute('aria-checked')).toBe('true');
    await page.getByRole('button', { name: 'Link' }).click();
    expect(page.url()).toContain('language=gremlin');
  });

  it('saves files', async () => {
    await shell.run('g.V().elementMap()');
    await shell.status('4 rows');
    for (const [name, start] of [['CSV', 'id,label,code,name,runways\r\n1,airport,AUS'], ['GraphSON', '{"requestId"']] as const) {
      const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: `Save as ${name}` }).click()]);
      const parts: Buffer[] = [];
      for await (const part of await download.createReadStream()) parts.push(part as Buffer);
      expect(Buffer.concat(parts).toString().slice(0, start.length)).toBe(start);
    }
  });

  it('fits a phone', async () => {
    await page.setViewportSize({ width: 390, height: 800 });
    await page.reload();
    await shell.run('g.E()');
    await shell.status('4 rows');
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  });

  it('says that a server does not speak it', async () => {
    const without = await startFake({ page: DIST, gremlin: false });
    try {
      await page.goto(without.address);
      await page.getByRole('radio', { name: 'Gremlin' }).click();
      await shell.run('g.V()');
      await page.getByRole('alert').filter({ hasText: 'this server does not support Gremlin' }).waitFor();
    } finally {
      await without.close();
    }
  });
});

describe.skipIf(browserPath === null || real === null)('Gremlin before a real server', () => {
  it('writes, reads, draws, plans and removes', async () => {
    const browser = await chromium.launch({ executablePath: browserPath ?? '', args: ['--no-sandbox'] });
    const problems: string[] = [];
    try {
      const shell = await open(browser, real ?? '', problems);
      const { page } = shell;
      const label = `page-test-${Date.now()}`;
      await shell.run(`g.addV('${label}').property('name', 'Ann').as('a').addV('${label}').property('name', 'Bob').as('b').addE('likes').from('a').to('b').property('since', 2020).iterate()`);
      await page.locator('.answer', { hasText: 'Done' }).waitFor();
      await shell.run(`g.V().hasLabel('${label}').valueMap('name')`);
      await shell.status('2 rows');
      expect(await page.getByRole('gridcell').allInnerTexts()).toEqual(expect.arrayContaining(['Ann', 'Bob']));
      await shell.run(`g.V().hasLabel('${label}').outE('likes').inV().path()`);
      await shell.status('1 row ');
      expect((await page.getByRole('row').nth(1).innerText()).replace(/\s/g, '')).toMatch(/Ann.*─likes→.*Bob/);
      await page.getByRole('tab', { name: 'Picture' }).click();
      await page.locator('.note', { hasText: '2 vertices, 1 edge' }).waitFor();
      await page.getByRole('tab', { name: 'Table' }).click();
      await page.locator('.grid [data-iri]').first().click();
      await page.locator('.inspector h2', { hasText: 'Ann' }).waitFor();
      await page.locator('.cm-content', { hasText: 'bothE()' }).waitFor();
      await page.keyboard.press('ControlOrMeta+Enter');
      await shell.status('1 row ');
      await page.keyboard.press('ControlOrMeta+Shift+Enter');
      await page.locator('.plan-text').waitFor();
      await page.getByRole('button', { name: 'Run and profile' }).click();
      await page.getByRole('columnheader', { name: 'Actual' }).waitFor();
      await shell.run('g.V().outt()');
      await page.getByRole('alert').filter({ hasText: 'outt' }).waitFor();
      expect(await page.locator('.cm-line .wrong').innerText()).toContain('outt');
      await shell.run(`g.V().hasLabel('${label}').drop()`);
      await page.locator('.answer', { hasText: 'Done' }).waitFor();
      expect(problems).toEqual([]);
    } finally {
      await browser.close();
    }
  });
});
