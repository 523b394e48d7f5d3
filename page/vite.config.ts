// How the page is built, developed (`npm run dev`) and unit-tested.
// The development server sends the server's own paths on to VERVET_URL.
import { defineConfig } from 'vitest/config';

const target = process.env['VERVET_URL'] ?? 'http://127.0.0.1:7878';
// The page's own name goes along: the server takes changes from no other site.
const server = { target, changeOrigin: false };

export default defineConfig({
  // Relative, so that the page also works below a path of a reverse proxy.
  base: './',
  build: { target: 'es2022', chunkSizeWarningLimit: 600, reportCompressedSize: false },
  server: { proxy: { '/query': server, '/update': server, '/gremlin': server, '/api': server, '/cluster': server } },
  test: { include: ['test/unit/**/*.test.ts'], environment: 'node', testTimeout: 30_000 },
});
