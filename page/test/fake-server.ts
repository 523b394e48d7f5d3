// A server for the tests of the page: the same paths as `vervet serve`, over a small graph of air routes.
//
// It does not evaluate queries. Undeclared prefixes are errors with a position. Otherwise the text determines
// the response: the form of the query, `# slow` (no response until the client disconnects), `# break`, `#
// rows N`.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { readFile } from 'node:fs/promises';
import { extname, join, normalize } from 'node:path';
import type { AddressInfo } from 'node:net';
import type { FakeCluster } from './fake-cluster';
import { GRAPHSON, answerGremlin } from './fake-gremlin';

const AIR = 'http://example.org/air/';
const ONT = `${AIR}ont#`;
const RDF_TYPE = 'http://www.w3.org/1999/02/22-rdf-syntax-ns#type';
const RDFS_LABEL = 'http://www.w3.org/2000/01/rdf-schema#label';
const XSD_INTEGER = 'http://www.w3.org/2001/XMLSchema#integer';

const AIRPORTS: readonly (readonly [string, string, number])[] = [
  ['AUS', 'Austin Bergstrom', 2],
  ['DFW', 'Dallas/Fort Worth', 7],
  ['ATL', 'Hartsfield – Jackson Atlanta', 5],
  ['LHR', 'London Heathrow', 2],
  ['FRA', 'Frankfurt am Main', 4],
  ['NRT', 'Tokyo Narita', 2],
  ['GRU', 'São Paulo Guarulhos', 2],
  ['CPT', 'Cape Town', 2],
];
const ROUTES = ['AUS DFW', 'AUS ATL', 'AUS LHR', 'AUS FRA', 'DFW ATL', 'DFW LHR', 'ATL LHR', 'ATL GRU', 'LHR FRA', 'FRA NRT', 'FRA CPT', 'LHR CPT', 'DFW NRT'];

const iri = (code: string): string => `${AIR}airport/${code}`;

/** Statements as N-Triples, with the IRIs that they are about. */
const STATEMENTS: readonly string[] = [
  ...AIRPORTS.flatMap(([code, label, runways]) => [
    `<${iri(code)}> <${RDF_TYPE}> <${ONT}Airport> .`,
    `<${iri(code)}> <${RDFS_LABEL}> "${label}"@en .`,
    `<${iri(code)}> <${ONT}code> "${code}" .`,
    `<${iri(code)}> <${ONT}runways> "${runways}"^^<${XSD_INTEGER}> .`,
  ]),
  ...ROUTES.map((route) => {
    const [from = '', to = ''] = route.split(' ');
    return `<${iri(from)}> <${ONT}route> <${iri(to)}> .`;
  }),
];

export interface Fake {
  readonly address: string;
  /** Requests whose reader went away before the answer. */
  readonly aborted: () => number;
  readonly close: () => Promise<void>;
}

interface Content {
  readonly queries: object;
  readonly cluster: FakeCluster | null;
  statements: number;
}

interface FakeOptions {
  /** Folder of the built page. */
  readonly page: string;
  /** An `Authorization` header that every request must have. */
  readonly authorization?: string;
  /** Whether it speaks Gremlin. */
  readonly gremlin?: boolean;
  /** Whether the graph is empty until files are loaded. */
  readonly empty?: boolean;
  /** Its saved queries. */
  readonly queries?: object;
  /** The cluster of which it is a part. */
  readonly cluster?: FakeCluster;
}

export async function startFake({ page, authorization, gremlin = true, empty = false, queries = { queries: [] }, cluster }: FakeOptions): Promise<Fake> {
  let aborted = 0;
  const content: Content = { queries, cluster: cluster ?? null, statements: empty ? 0 : 302978 };
  const server: Server = createServer((request, response) => {
    response.on('close', () => {
      if (!response.writableFinished) aborted += 1;
    });
    answer(request, response, page, authorization, gremlin, content).catch((error: unknown) => response.writeHead(500).end(String(error)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    aborted: () => aborted,
    close: () => new Promise((resolve) => (server.closeAllConnections(), server.close(() => resolve()))),
  };
}

/** What runs, as the server lists it. */
const running = [
  { id: 7, kind: 'query', user: 'ann', text: 'SELECT * { ?a ?b ?c . ?d ?e ?f }', since: 1_795_000_000, seconds: 3.2, rows: 120_000, heavy: true, stopped: false },
  { id: 9, kind: 'gremlin', user: null, text: 'g.V().count()', since: 1_795_000_002, seconds: 0.4, rows: 0, heavy: false, stopped: false },
];

async function answer(request: IncomingMessage, response: ServerResponse, page: string, authorization: string | undefined, gremlin: boolean, content: Content): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://localhost');
  const send = (type: string, body: string, status = 200): void => void response.writeHead(status, { 'content-type': type }).end(body);
  const isPage = request.method === 'GET' && !url.pathname.startsWith('/api/') && url.pathname !== '/cluster';
  if (isPage) return file(page, url.pathname, response);
  if (authorization !== undefined && request.headers.authorization !== authorization) {
    return void response.writeHead(401, { 'www-authenticate': 'Basic realm="vervet"' }).end('who are you?');
  }
  const body = request.method === 'POST' ? await text(request) : '';
  switch (url.pathname) {
    case '/query':
      content.cluster?.count();
      return query(body, send, response);
    case '/gremlin': {
      if (!gremlin) return send('text/plain', 'there is nothing at /gremlin', 404);
      const told = answerGremlin(body);
      return told === null ? undefined : send(told.status === 200 ? GRAPHSON : 'text/plain', told.body, told.status);
    }
    case '/update':
      return void response.writeHead(204, { 'vervet-changes': '{"inserted":1,"removed":0}' }).end();
    case '/load':
      content.statements += 2;
      return send('application/json', JSON.stringify({ statements: 2, notes: ['people.csv: a note'] }));
    case '/api/info':
      return send('application/json', JSON.stringify({ version: '0.1.0', statements: content.statements, vertices: 54398, bytes: 2_200_000, read_only: false, timeout_seconds: 60 }));
    case '/api/names':
      return send('application/json', JSON.stringify({ names: names(url.searchParams) }));
    case '/api/saved-queries':
      return send('application/json', JSON.stringify(content.queries));
    case '/cluster':
      if (content.cluster === null) return send('text/plain', 'this server is not a part of a cluster', 404);
      return send('application/json', JSON.stringify(content.cluster.state()));
    case '/api/queries':
      return send('application/json', JSON.stringify({ queries: running }));
    case '/api/plan':
      return send('application/json', JSON.stringify(plan(url.searchParams.get('run') === 'true')));
    default:
      if (request.method === 'DELETE' && url.pathname.startsWith('/api/queries/')) {
        const at = running.findIndex(({ id }) => String(id) === url.pathname.slice('/api/queries/'.length));
        if (at < 0) return send('text/plain', 'no request of that number is running', 404);
        running.splice(at, 1);
        return void response.writeHead(204).end();
      }
      return send('text/plain', `there is nothing at ${url.pathname}`, 404);
  }
}

/** No scripts, styles or requests from elsewhere: as strict as the page can take. */
const POLICY = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; frame-ancestors 'none'";

const TYPES: Readonly<Record<string, string>> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml' };

async function file(page: string, path: string, response: ServerResponse): Promise<void> {
  const name = join(page, normalize(path === '/' ? '/index.html' : path));
  const body = await readFile(name).catch(() => null);
  if (body === null) response.writeHead(404).end();
  else response.writeHead(200, { 'content-type': TYPES[extname(name)] ?? 'application/octet-stream', 'content-security-policy': POLICY }).end(body);
}

async function text(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
}

type Send = (type: string, body: string, status?: number) => void;

function query(body: string, send: Send, response: ServerResponse): void {
  if (body.includes('# slow')) return;
  if (body.includes('# break')) return void response.writeHead(200).write('{"head":{"vars":["x"]},"results":{"bindings":[', () => response.destroy());
  const problem = undeclared(body);
  if (problem !== null) return send('text/plain', problem, 400);
  if (/\bASK\b/.test(body)) return send('application/sparql-results+json', '{"head":{},"boolean":true}');
  const about = /CONSTRUCT \{ (<[^>]*>)/.exec(body)?.[1];
  if (about !== undefined) return send('application/n-triples', STATEMENTS.filter((line) => line.includes(`${about} `)).join('\n'));
  if (/\b(?:CONSTRUCT|DESCRIBE)\b/.test(body)) return send('application/n-triples', STATEMENTS.filter((line) => !line.includes(iri('CPT'))).join('\n'));
  if (body.includes('?vertex ?label ?type')) {
    const facts = AIRPORTS.map(([code, label]) => ({
      vertex: { type: 'uri', value: iri(code) },
      label: { type: 'literal', value: label },
      type: { type: 'uri', value: `${ONT}Airport` },
    }));
    return table(['vertex', 'label', 'type'], facts, send);
  }
  const many = Number(/# rows (\d+)/.exec(body)?.[1] ?? AIRPORTS.length);
  const rows = Array.from({ length: many }, (_, i) => {
    const [code, label, runways] = AIRPORTS[i % AIRPORTS.length]!;
    return {
      airport: { type: 'uri', value: i < AIRPORTS.length ? iri(code) : `${iri(code)}-${i}` },
      label: { type: 'literal', value: label, 'xml:lang': 'en' },
      runways: { type: 'literal', value: String(many > 8 ? i : runways), datatype: XSD_INTEGER },
    };
  });
  return table(['airport', 'label', 'runways'], rows, send);
}

function table(variables: readonly string[], bindings: readonly object[], send: Send): void {
  send('application/sparql-results+json', JSON.stringify({ head: { vars: variables }, results: { bindings } }));
}

/** The server's error for the first name whose prefix the text does not declare. */
function undeclared(body: string): string | null {
  const declared = new Set([...body.matchAll(/PREFIX\s+([\w-]*):/gi)].map((match) => match[1]));
  const lines = body.split('\n');
  for (const [i, line] of lines.entries()) {
    for (const match of line.replace(/<[^>]*>|#.*/g, (all) => ' '.repeat(all.length)).matchAll(/([A-Za-z][\w-]*):\w/g)) {
      const prefix = match[1] ?? '';
      if (declared.has(prefix)) continue;
      const number = String(i + 1);
      const name = /^[\w:-]+/.exec(line.slice(match.index))?.[0] ?? prefix;
      return [
        `the prefix ${prefix}: is not declared (line ${number}, column ${match.index + 1})`,
        `${number} | ${line}`,
        `${' '.repeat(number.length)} | ${' '.repeat(match.index)}${'^'.repeat(name.length)}`,
        `hint: add PREFIX ${prefix}: <...> before the query`,
      ].join('\n');
    }
  }
  return null;
}

/** Names of a property graph beside those of RDF. */
const GRAPH_NAMES = [
  { kind: 'class', iri: 'urn:vervet:label:airport', count: 3504 },
  { kind: 'predicate', iri: 'urn:vervet:key:runways', count: 3504 },
];

function names(parameters: URLSearchParams): object[] {
  const contains = (parameters.get('contains') ?? '').toLowerCase();
  const limit = Number(parameters.get('limit') ?? 100);
  const all: Readonly<Record<string, readonly [string, number][]>> = {
    class: [['Leg', 50637], ['Airport', 3504], ['Country', 237], ['Continent', 7], ['Version', 1]],
    predicate: [['route', 50637], ['from', 50637], ['to', 50637], ['dist', 50637], ['contains', 7008], ['code', 3749], ['runways', 3504], ['city', 3504]],
  };
  if (parameters.get('kind') === 'prefix') return [{ prefix: 'air', iri: ONT }, { prefix: 'rdfs', iri: RDFS_LABEL.replace('label', '') }];
  return (all[parameters.get('kind') ?? ''] ?? [])
    .filter(([name]) => name.toLowerCase().includes(contains))
    .slice(0, limit)
    .map(([name, count]) => ({ iri: ONT + name, label: `air:${name}`, count }))
    .concat(GRAPH_NAMES.filter(({ kind, iri }) => kind === parameters.get('kind') && iri.includes(contains)).map(({ iri, count }) => ({ iri, label: '', count })));
}

function plan(run: boolean): object {
  const step = (id: number, parent: number | null, operator: string, detail: string, estimated: number, rows: number, nanoseconds: number): object => ({
    id, parent, operator, detail, estimated_rows: estimated, rows: run ? rows : null, nanoseconds: run ? nanoseconds : null, threads: 1,
  });
  return {
    text: 'plan for ?n ?c',
    steps: [
      step(0, null, 'expand', `"AUS" ←<${ONT}code>─ ?x`, 1, 1, 8_800),
      step(1, null, 'expand', `?x ─<${ONT}route>→ ?z`, 21, 98, 25_900),
      step(2, null, 'expand', `?z ─<${ONT}route>→ ?y`, 461, 8_354, 50_400),
      step(3, null, 'expand', `?y ─<${ONT}city>→ ?n`, 461, 8_354, 190_200),
      step(4, null, 'group', 'by ?n ?_4 = count(*)', 46, 977, 638_200),
      step(5, null, 'order', 'desc(?c) (first 3)', 3, 3, 267_700),
    ],
  };
}
