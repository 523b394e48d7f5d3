// Client of the server's API: a method for each path. Its only state is the credentials.
//
// Aborting the signal of a query cancels it: the server notices the disconnect and stops. Credentials are in
// `sessionStorage`, so they end with the tab.
import { parseFailure, type Failure } from './failure';
import type { Call, PlanCall } from './language';
import { RAW_MAX, type Changes, type Content, type Reader, type Result } from './results/result';

export class ServerError extends Error {
  constructor(
    readonly status: number,
    readonly failure: Failure,
  ) {
    super(failure.message);
  }
}

/** No response: no server, or no network. */
export class UnreachableError extends Error {}

/** The server disconnected, or aborted, in the middle of a response. */
export class BrokenOffError extends Error {}

export interface Info {
  version?: string;
  statements?: number;
  /** Absent if counting would take long. */
  vertices?: number | null;
  bytes?: number;
  read_only?: boolean;
  durability?: string;
  /** The server's time limit of a query. */
  timeout_seconds?: number;
}

export interface Name {
  iri: string;
  label?: string;
  count?: number;
}

export interface Prefix {
  prefix: string;
  iri: string;
}

/** A step of a plan. `parent`: the enclosing step. Rows and times are null unless it ran. */
export interface Step {
  id: number;
  parent: number | null;
  operator: string;
  detail: string;
  estimated_rows: number | null;
  rows: number | null;
  nanoseconds: number | null;
  threads?: number | null;
}

export interface Plan {
  text: string;
  steps: Step[];
}

/** A running request on the database. Times in seconds. */
export interface Running {
  id: number;
  kind: string;
  user: string | null;
  text: string;
  seconds: number;
  rows: number;
  heavy: boolean;
  stopped: boolean;
}

export interface Progress {
  readonly rows: number;
  readonly bytes: number;
}

interface RunOptions {
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: Progress) => void;
  /** The maximum number of rows or statements to read. */
  readonly rowsMax?: number;
}

const CREDENTIALS = 'vervet.authorization';

export class Server {
  /**
   * Prompts for an `Authorization` header; null if the prompt was closed. `again`: the last one was rejected.
   */
  askForCredentials: ((again: boolean) => Promise<string | null>) | null = null;
  #asking: Promise<string | null> | null = null;

  async info(): Promise<Info> {
    return (await (await this.#fetch('api/info')).json()) as Info;
  }

  /** The running requests that this user may see. */
  async running(): Promise<Running[]> {
    const answer = (await (await this.#fetch('api/queries')).json()) as { queries?: Running[] };
    return answer.queries ?? [];
  }

  /** Stops a request; one that has already ended is not an error. */
  async stop(id: number): Promise<void> {
    try {
      await this.#fetch(`api/queries/${id}`, { method: 'DELETE' });
    } catch (error) {
      if (!(error instanceof ServerError && error.status === 404)) throw error;
    }
  }

  /** The saved queries of the server, as sent; null from a server that has no such list. */
  async savedQueries(): Promise<unknown> {
    return this.#optional('api/saved-queries');
  }

  /** The servers of the cluster, as sent; null from a server that is not a part of one. */
  async cluster(): Promise<unknown> {
    return this.#optional('cluster');
  }

  async prefixes(): Promise<Prefix[]> {
    return (await this.#names('prefix', '', 1000)) as Prefix[];
  }

  async names(kind: 'class' | 'predicate', contains: string, limit: number): Promise<Name[]> {
    return (await this.#names(kind, contains, limit)) as Name[];
  }

  async plan(call: PlanCall, signal: AbortSignal): Promise<Plan> {
    const response = await this.#fetch(call.path, { ...post(call), signal });
    return call.read(await response.text());
  }

  async run(call: Call, options: RunOptions): Promise<Result> {
    const start = performance.now();
    const stop = new AbortController();
    const signal = AbortSignal.any([options.signal, stop.signal]);
    const response = await this.#fetch(call.path, { ...post(call), signal });
    const reader = call.reader(options.rowsMax);
    const { raw, bytes } = await read(response, reader, options);
    stop.abort();
    const { content: received, complete } = reader.finish();
    const warnings = warningsOf(response.headers.get('vervet-warnings'));
    const changes = changesOf(response.headers.get('vervet-changes'));
    const content: Content = received.kind === 'update' && changes !== null ? { ...received, changes } : received;
    return { content, complete, raw, bytes, milliseconds: performance.now() - start, warnings };
  }

  /** Loads files as one transaction. Returns the number of their statements, and notes. */
  async load(files: readonly File[], signal: AbortSignal): Promise<{ statements: number; notes: string[] }> {
    const body = new FormData();
    for (const file of files) body.append('file', file, file.name);
    const response = await this.#fetch('load', { method: 'POST', body, signal });
    const { statements = 0, notes = [] } = (await response.json()) as { statements?: number; notes?: string[] };
    return { statements, notes };
  }

  /** The complete response, as received. */
  async download(call: Call, signal: AbortSignal): Promise<Blob> {
    return (await this.#fetch(call.path, { ...post(call), signal })).blob();
  }

  /** The JSON at `path`; null if there is nothing. */
  async #optional(path: string): Promise<unknown> {
    try {
      return await (await this.#fetch(path)).json();
    } catch (error) {
      if (error instanceof ServerError && error.status === 404) return null;
      throw error;
    }
  }

  async #names(kind: string, contains: string, limit: number): Promise<(Name | Prefix)[]> {
    const query = new URLSearchParams({ kind, contains, limit: String(limit) });
    const answer = (await (await this.#fetch(`api/names?${query}`)).json()) as { names?: (Name | Prefix)[] };
    return answer.names ?? [];
  }

  async #fetch(path: string, init: RequestInit = {}): Promise<Response> {
    for (;;) {
      const authorization = sessionStorage.getItem(CREDENTIALS);
      const headers = new Headers(init.headers);
      if (authorization !== null) headers.set('authorization', authorization);
      let response: Response;
      try {
        // The browser must not prompt for a password: the page does.
        response = await fetch(path, { ...init, headers, credentials: 'omit' });
      } catch (error) {
        if (error instanceof DOMException && error.name === 'AbortError') throw error;
        throw new UnreachableError('the server does not answer', { cause: error });
      }
      if (response.ok) return response;
      if (response.status === 401 && (await this.#ask(authorization))) continue;
      throw new ServerError(response.status, parseFailure((await response.text()) || response.statusText));
    }
  }

  /** One prompt for all rejected requests. True if the request should be retried. */
  async #ask(refused: string | null): Promise<boolean> {
    if (sessionStorage.getItem(CREDENTIALS) !== refused) return true;
    if (this.askForCredentials === null) return false;
    this.#asking ??= this.askForCredentials(refused !== null).finally(() => (this.#asking = null));
    const authorization = await this.#asking;
    if (authorization === null) return false;
    sessionStorage.setItem(CREDENTIALS, authorization);
    return true;
  }
}

/** The server's warnings about names in a query that match nothing. */
function warningsOf(header: string | null): string[] {
  if (header === null) return [];
  try {
    const list: unknown = JSON.parse(header);
    return Array.isArray(list) ? list.filter((text): text is string => typeof text === 'string') : [];
  } catch {
    return [];
  }
}

/** The numbers of statements that an update has added and removed. */
function changesOf(header: string | null): Changes | null {
  try {
    const { inserted, removed } = JSON.parse(header ?? '{}') as Partial<Changes>;
    return typeof inserted === 'number' && typeof removed === 'number' ? { inserted, removed } : null;
  } catch {
    return null;
  }
}

function post({ body, type, accept }: Pick<Call, 'body' | 'type' | 'accept'>): RequestInit {
  return { method: 'POST', body, headers: { 'content-type': type, ...(accept === undefined ? {} : { accept }) } };
}

async function read(response: Response, reader: Reader, options: RunOptions): Promise<{ raw: string; bytes: number }> {
  let [raw, bytes] = ['', 0];
  const body = response.body?.getReader();
  const decoder = new TextDecoder();
  while (body !== undefined) {
    const { done, value } = await body.read().catch((error: unknown) => {
      if (options.signal.aborted) throw error;
      throw new BrokenOffError('the answer broke off', { cause: error });
    });
    bytes += value?.length ?? 0;
    const text = decoder.decode(value, { stream: !done });
    if (raw.length < RAW_MAX) raw += text.slice(0, RAW_MAX - raw.length);
    const more = reader.push(text);
    options.onProgress?.({ rows: reader.count, bytes });
    if (done || !more) break;
  }
  return { raw, bytes };
}
