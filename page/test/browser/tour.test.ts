// The tour of a server with saved queries, in a real browser with the server of `fake-server.ts`.
import { fileURLToPath } from 'node:url';
import { chromium, type Browser, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startFake, type Fake } from '../fake-server';
import { findBrowser } from './browser';

const DIST = fileURLToPath(new URL('../../dist', import.meta.url));
const browserPath = findBrowser();

const QUERIES = {
  title: 'Air routes',
  about: 'Four steps.',
  queries: [
    { name: 'Airports', text: 'SELECT * { ?airport ?p ?o }', note: 'Rows of a table.', view: 'table' },
    { name: 'The same in Gremlin', text: "g.V().hasLabel('airport')", language: 'gremlin', note: 'One graph, two languages.' },
    { name: 'Routes', text: 'CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }', note: 'As a picture.', view: 'picture' },
    { name: 'A plan', text: 'SELECT * { ?a ?b ?c }', note: 'With times.', view: 'profile' },
    { name: 'An update', text: 'DELETE WHERE { ?s ?p ?o }', note: 'It waits.' },
  ],
};

describe.skipIf(browserPath === null)('the tour', () => {
  let browser: Browser;
  let fake: Fake;

  beforeAll(async () => {
    fake = await startFake({ page: DIST, queries: QUERIES });
    browser = await chromium.launch({ executablePath: browserPath ?? '', args: ['--no-sandbox'] });
  });
  afterAll(async () => {
    await browser.close();
    await fake.close();
  });
  const open = async (width = 1280): Promise<Page> => {
    const context = await browser.newContext({ viewport: { width, height: 800 } });
    const page = await context.newPage();
    page.setDefaultTimeout(10_000);
    await page.goto(fake.address);
    return page;
  };

  it('runs each step with its view, by keyboard alone', async () => {
    const page = await open();
    const main = page.getByRole('main');
    expect(await main.getByRole('list', { name: 'Air routes' }).getByRole('listitem').count()).toBe(5);
    await main.getByRole('button', { name: /^1 Airports/ }).focus();
    await page.keyboard.press('Enter');
    await page.locator('.status', { hasText: '8 rows' }).waitFor();
    const bar = page.getByRole('region', { name: 'Air routes' });
    expect(await bar.innerText()).toContain('1 of 5');
    expect(await bar.innerText()).toContain('Rows of a table.');
    // The focus is on the button to the next step.
    await page.keyboard.press('Enter');
    await page.locator('.cm-content', { hasText: "hasLabel('airport')" }).waitFor();
    await page.locator('.status', { hasText: '4 rows' }).waitFor();
    expect(await page.getByRole('radio', { name: 'Gremlin' }).getAttribute('aria-checked')).toBe('true');
    await page.keyboard.press('Enter');
    await page.locator('.note', { hasText: '7 vertices, 11 edges' }).waitFor();
    await page.keyboard.press('Enter');
    await page.locator('.plan').getByRole('columnheader', { name: 'Actual' }).waitFor();
    expect(await page.locator('[data-step="3"]').getAttribute('aria-current')).toBe('step');
    // A step that changes the data waits for Run, and the last step has no next one.
    let updates = 0;
    page.on('request', (request) => (updates += Number(request.url().includes('/update'))));
    await page.keyboard.press('Enter');
    await page.locator('.status', { hasText: 'this changes the data' }).waitFor();
    await page.keyboard.press('Enter');
    expect(await bar.innerText()).toContain('5 of 5');
    expect(updates).toBe(0);
    await page.keyboard.press('ControlOrMeta+Enter');
    await page.locator('.answer', { hasText: 'Done' }).waitFor();
    expect(updates).toBe(1);
    await bar.getByRole('button', { name: 'Close the tour' }).click();
    await bar.waitFor({ state: 'hidden' });
    expect(await page.locator('[aria-current=step]').count()).toBe(0);
    await page.context().close();
  });

  it('fits a phone, and its list opens beside', async () => {
    const page = await open(390);
    const main = page.getByRole('main');
    await main.getByRole('button', { name: /^2 The same/ }).click();
    await page.locator('.status', { hasText: '4 rows' }).waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
    await page.getByRole('button', { name: 'All steps' }).click();
    await page.locator('[data-step="1"]:focus').waitFor();
    await page.locator('[data-step="0"]').click();
    await page.locator('.status', { hasText: '8 rows' }).waitFor();
    await page.locator('.side').waitFor({ state: 'hidden' });
    await page.context().close();
  });
});
