// Gremlin responses of the fake server: GraphSON 3 about the same air routes.
//
// It does not run traversals: the end of the text determines the response. An unknown step is an error.

export const GRAPHSON = 'application/vnd.gremlin-v3.0+json';

export const typed = (type: string, value: unknown): object => ({ '@type': type, '@value': value });
export const long = (value: number): object => typed('g:Int64', value);
export const list = (...items: unknown[]): object => typed('g:List', items);
export const map = (...entries: unknown[]): object => typed('g:Map', entries);

/** A vertex as servers from 3.7 on send it: with its properties. */
export function vertex(id: unknown, label: string, properties: Readonly<Record<string, unknown>> = {}): object {
  const all = Object.entries(properties).map(([key, value]) => [key, [typed('g:VertexProperty', { id: `${String(id)} ${key}`, value, label: key })]] as const);
  return typed('g:Vertex', { id, label, properties: Object.fromEntries(all) });
}

export function edge(id: unknown, label: string, from: unknown, to: unknown, properties: Readonly<Record<string, unknown>> = {}): object {
  const all = Object.entries(properties).map(([key, value]) => [key, typed('g:Property', { key, value })] as const);
  return typed('g:Edge', { id, label, outV: from, outVLabel: 'airport', inV: to, inVLabel: 'airport', properties: Object.fromEntries(all) });
}

/** A whole answer, written as Vervet writes it: the status last. */
export function response(items: readonly unknown[], code = items.length === 0 ? 204 : 200): string {
  const result = { data: list(...items), meta: map() };
  return JSON.stringify({ requestId: '41d2e28a-20a4-4ab0-b379-d810dede3786', result, status: { message: '', code, attributes: map() } });
}

const AIRPORTS = [
  [1, 'AUS', 'Austin Bergstrom', 2], [2, 'DFW', 'Dallas/Fort Worth', 7], [3, 'ATL', 'Hartsfield – Jackson Atlanta', 5], [4, 'LHR', 'London Heathrow', 2],
] as const;
const ROUTES = [[1, 2, 190], [1, 3, 812], [2, 4, 4736], [3, 4, 4198]] as const;

const airport = (id: number): object => {
  const [, code = '', name = '', runways = 0] = AIRPORTS.find(([known]) => known === id) ?? [];
  return vertex(long(id), 'airport', { code, name, runways: typed('g:Int32', runways) });
};
const route = (from: number, to: number): object => {
  const distance = ROUTES.find(([a, b]) => a === from && b === to)?.[2] ?? 0;
  return edge(`urn:vervet:edge:${from}${to}`, 'route', long(from), long(to), { dist: typed('g:Int32', distance) });
};

export interface Answer {
  readonly status: number;
  readonly body: string;
}

/** The answer to the body of a request; null if it is to wait for ever. */
export function answerGremlin(body: string): Answer | null {
  const { gremlin: text, language } = JSON.parse(body) as { gremlin: string; language: string };
  if (language !== 'gremlin-lang') return { status: 400, body: `the language ${language} is not one of gremlin-lang` };
  if (text.includes('// slow')) return null;
  const wrong = /\.(outt)\(/.exec(text);
  if (wrong !== null) {
    const lines = text.slice(0, wrong.index + 1).split('\n');
    const column = (lines.at(-1)?.length ?? 0) + 1;
    const line = text.split('\n')[lines.length - 1] ?? '';
    const place = `${lines.length} | ${line}\n${' '.repeat(String(lines.length).length)} | ${' '.repeat(column - 1)}^^^^`;
    return { status: 400, body: `there is no step outt (line ${lines.length}, column ${column})\n${place}\nhint: did you mean out?` };
  }
  return { status: 200, body: response(items(text)) };
}

function items(text: string): readonly unknown[] {
  const rows = /\/\/ rows (\d+)/.exec(text);
  if (rows !== null) return Array.from({ length: Number(rows[1]) }, (_, i) => long(i));
  if (/\.explain\(\)$/.test(text)) return ['  0  query V() hasLabel(airport) out(route)\n  1  values(name)\n'];
  if (/\.profile\(\)$/.test(text)) {
    const metric = (name: string, count: number, milliseconds: number): object =>
      typed('g:Metrics', map('dur', typed('g:Double', milliseconds), 'counts', map('traverserCount', long(count), 'elementCount', long(count)), 'name', name, 'id', name));
    const metrics = list(metric('query V() hasLabel(airport)', 3504, 0.61), metric('count()', 1, 0.02));
    return [typed('g:TraversalMetrics', map('dur', typed('g:Double', 0.63), 'metrics', metrics))];
  }
  if (/\b(?:addV|drop)\(/.test(text)) return [];
  if (/\bgroupCount\(/.test(text)) return [map('airport', long(3504), 'country', long(237))];
  if (/\b(?:elementMap|project)\(/.test(text)) {
    return AIRPORTS.map(([id, code, name, runways]) => map(typed('g:T', 'id'), long(id), typed('g:T', 'label'), 'airport', 'code', code, 'name', name, 'runways', typed('g:Int32', runways)));
  }
  if (/\bpath\(/.test(text)) {
    return [[1, 2, 4], [1, 3, 4]].map((places) => {
      const objects = places.flatMap((place, i) => (i === 0 ? [airport(place)] : [route(places[i - 1] ?? 0, place), airport(place)]));
      return typed('g:Path', { labels: list(...objects.map(() => typed('g:Set', []))), objects: list(...objects) });
    });
  }
  if (/\b(?:out|in|both)?E\(/.test(text)) return ROUTES.map(([from, to]) => route(from, to));
  return AIRPORTS.map(([id]) => airport(id));
}
