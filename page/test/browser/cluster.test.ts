// The panel about a cluster, in a real browser with the server of `fake-server.ts`.
import { fileURLToPath } from 'node:url';
import { chromium, type Browser, type Locator, type Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { FakeCluster } from '../fake-cluster';
import { startFake, type Fake } from '../fake-server';
import { findBrowser } from './browser';

const DIST = fileURLToPath(new URL('../../dist', import.meta.url));
const browserPath = findBrowser();

describe.skipIf(browserPath === null)('the panel about a cluster', () => {
  let browser: Browser;
  let cluster: FakeCluster;
  let fake: Fake;

  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: browserPath ?? '', args: ['--no-sandbox'] });
  });
  afterAll(() => browser.close());
  beforeEach(async () => {
    cluster = new FakeCluster();
    fake = await startFake({ page: DIST, cluster });
    return () => fake.close();
  });
  const open = async (width = 1280): Promise<{ page: Page; panel: Locator }> => {
    const context = await browser.newContext({ viewport: { width, height: 800 } });
    const page = await context.newPage();
    page.setDefaultTimeout(10_000);
    await page.goto(fake.address);
    await page.locator('.info', { hasText: 'statements' }).waitFor();
    return { page, panel: page.getByRole('complementary', { name: 'Cluster' }) };
  };
  const run = async (page: Page): Promise<void> => {
    await page.locator('.cm-content').click();
    await page.keyboard.insertText('SELECT * { ?s ?p ?o }');
    await page.keyboard.press('ControlOrMeta+Enter');
    await page.locator('.status', { hasText: '8 rows' }).waitFor();
  };

  it('draws the servers and their partitions', async () => {
    const { page, panel } = await open();
    await panel.getByText('4 servers · 16 partitions').waitFor();
    await panel.getByRole('img', { name: 'server a, 4 partitions, this server' }).waitFor();
    const other = panel.getByRole('link', { name: /^server b, 4 partitions, answers in 190 µs, 0 B sent/ });
    expect(await other.getAttribute('href')).toBe('http://127.0.0.1:7879/');
    expect(await panel.locator('.square').count()).toBe(16);
    await panel.getByText('As a table').click();
    await panel.getByRole('rowheader', { name: 'd' }).waitFor();
    await page.context().close();
  });

  it('shows what a query has sent', async () => {
    const { page, panel } = await open();
    await panel.getByText('Run a query').waitFor();
    await run(page);
    await panel.getByText('12 requests, 2.1 kB sent, 3.9 kB received').waitFor();
    await panel.getByRole('row', { name: 'b 4 700 B 1.3 kB' }).waitFor();
    await panel.getByRole('link', { name: /^server b.* 700 B sent, 1.3 kB received/ }).waitFor();
    await page.context().close();
  });

  it('shows a server that does not answer, and that it answers again', async () => {
    const { page, panel } = await open();
    await panel.getByText('4 servers').waitFor();
    cluster.silent.set('c', 'connection refused');
    await panel.getByText('1 server does not answer').waitFor();
    await panel.locator('.silent').getByText('connection refused').waitFor();
    // The link is not replaced by an update.
    await panel.getByRole('link', { name: /^server d/ }).focus();
    cluster.silent.clear();
    await panel.locator('.silent').waitFor({ state: 'detached' });
    expect(await page.evaluate(() => document.activeElement?.textContent)).toMatch(/^d/);
    await page.context().close();
  });

  it('opens and closes by keyboard, and reads only while it is open', async () => {
    const { page, panel } = await open(1000);
    const toggle = page.getByRole('button', { name: 'Cluster' });
    await toggle.waitFor();
    expect(await panel.isVisible()).toBe(false);
    expect(cluster.reads).toBe(1);
    await toggle.focus();
    await page.keyboard.press('Enter');
    await expect.poll(() => cluster.reads, { timeout: 5000 }).toBeGreaterThan(2);
    expect(await toggle.getAttribute('aria-expanded')).toBe('true');
    await panel.getByRole('button', { name: 'Close' }).focus();
    await page.keyboard.press('Escape');
    await panel.waitFor({ state: 'hidden' });
    expect(await page.evaluate(() => document.activeElement?.getAttribute('aria-label'))).toBe('Cluster');
    const reads = cluster.reads;
    await run(page);
    await page.waitForTimeout(2500);
    expect(cluster.reads).toBe(reads);
    await page.context().close();
  });

  it('is absent from a server without a cluster', async () => {
    await fake.close();
    fake = await startFake({ page: DIST });
    const { page } = await open();
    await page.locator('.item.name').first().waitFor({ state: 'attached' });
    expect(await page.getByRole('button', { name: 'Cluster' }).count()).toBe(0);
    await page.context().close();
  });
});
