// The picture of a graph: rendered by Cytoscape, with positions from `layout.ts` and content from
// `picture-model.ts`.
//
// Cytoscape is loaded with the first picture, not with the page. A click on a vertex shows its neighbourhood.
import type { Core, ElementDefinition, EventObject } from 'cytoscape';
import { button, h } from '../dom';
import type { Namespaces } from '../namespaces';
import { count, counted } from '../quantities';
import type { Triple } from '../results/term';
import { arrange } from './layout';
import { VERTICES_MAX, type PictureModel, type Vertex } from './picture-model';
import { iriParts } from './term';

/** The display name and the type of a resource; null if unknown. */
export interface Fact {
  readonly iri: string;
  readonly label: string | null;
  readonly type: string | null;
}

interface PictureOptions {
  readonly load: (iri: string) => Promise<readonly Triple[]>;
  readonly facts: (iris: readonly string[]) => Promise<readonly Fact[]>;
  readonly onOpen: (iri: string) => void;
  readonly onProblem: (message: string) => void;
}

/** Colours of types, most frequent first; further types share the last one. The style sheet defines them. */
const COLOURS = 7;
/** Up to this number of edges, all labels are shown; beyond it, only those of the active vertex. */
const LABELLED_EDGES_MAX = 30;
/** Up to this number of edges of a vertex, all their labels are shown while the pointer is on it. */
const TOLD_MAX = 12;
/** The maximum number of characters of a drawn label. */
const LABEL_MAX = 32;
/** Font size at a zoom of 1, in pixels. */
const LABEL_SIZE = 12;
/** Up to this number of vertices, labels that become too small are enlarged; beyond it they would overlap. */
const ENLARGED_MAX = 24;
/** Maximum width of a line of a label, and the approximate width of a character, in pixels. */
const LABEL_WIDTH = 120;
const CHARACTER = 6.6;
/** The maximum length of an edge at rest that has room for its label. */
const EDGE_MAX = 190;
/** Up to this number of vertices, a click leaves all of them visible. */
const REVEALED_MAX = 60;
/** The maximum zoom of a view that the page chooses. */
const ZOOM_MAX = 1.4;
/** Above this number, edges are thin: the overall structure matters. */
const THIN_FROM = 200;

export class PictureView {
  readonly element: HTMLElement;
  readonly #options: PictureOptions;
  readonly #canvas = h('div', { class: 'canvas', tabindex: 0, role: 'img' });
  readonly #legend = h('ul', { class: 'legend', 'aria-label': 'Types' });
  readonly #note = h('p', { class: 'note', role: 'status' });
  #core: Core | null = null;
  #model: PictureModel | null = null;
  #namespaces: Namespaces | null = null;
  #places = new Map<string, { x: number; y: number }>();
  #chosen: string | null = null;
  #labelSize = LABEL_SIZE;

  constructor(options: PictureOptions) {
    this.#options = options;
    const tools = h(
      'div',
      { class: 'tools', role: 'group', 'aria-label': 'View' },
      button({ icon: 'plus', label: 'Larger (+)', onClick: () => this.#zoom(1.3) }),
      button({ icon: 'minus', label: 'Smaller (−)', onClick: () => this.#zoom(1 / 1.3) }),
      button({ icon: 'fit', label: 'Fit to view (0)', onClick: () => this.#fit() }),
      button({ icon: 'again', label: 'Arrange again', onClick: () => this.#arrangeAgain() }),
      button({ icon: 'picture', label: 'Save as PNG', onClick: () => this.#savePicture() }),
    );
    this.element = h('div', { class: 'picture' }, this.#canvas, tools, this.#legend, this.#note);
    this.#canvas.addEventListener('keydown', (event) => this.#key(event));
    new ResizeObserver(() => this.#core?.resize()).observe(this.#canvas);
  }

  async show(model: PictureModel, namespaces: Namespaces): Promise<void> {
    this.#model = model;
    this.#namespaces = namespaces;
    this.#chosen = null;
    this.#places.clear();
    if (this.#core === null) {
      this.#say('Loading …');
      const { default: cytoscape } = await import('cytoscape');
      // A concurrent call may already have created it.
      this.#core ??= cytoscape({ container: this.#canvas, minZoom: 0.08, maxZoom: 3, autounselectify: true, pixelRatio: 'auto' });
      this.#core.removeAllListeners();
      this.#core.on('tap', 'node', (event: EventObject) => void this.#expand(event.target.id() as string));
      this.#core.on('tap', (event: EventObject) => {
        if (event.target === this.#core) this.#choose(null);
      });
      this.#core.on('zoom', () => this.#sizeLabels());
      this.#core.on('mouseover', 'node', (event: EventObject) => this.#highlight(event.target.id() as string));
      this.#core.on('mouseout', 'node', () => this.#highlight(this.#chosen));
      this.#core.on('dragfree', 'node', (event: EventObject) => this.#places.set(event.target.id() as string, { ...event.target.position() }));
    }
    if (this.#model !== model) return;
    this.restyle();
    this.#draw();
    this.#fit();
    if (await this.#complete()) this.#fit();
  }

  /** Reloads colours from the style sheet after a change of theme. */
  restyle(): void {
    const css = getComputedStyle(this.element);
    const probe = h('span', { hidden: true });
    this.element.append(probe);
    const colour = (name: string): string => {
      probe.style.color = `var(${name})`;
      return getComputedStyle(probe).color;
    };
    const [ink, faint, paper, line, accent] = ['--ink', '--faint', '--paper', '--edge', '--accent'].map(colour) as [string, string, string, string, string];
    const types = Array.from({ length: COLOURS + 1 }, (_, i) => colour(`--type-${i}`));
    probe.remove();
    this.#core?.style([
      {
        selector: 'node',
        style: {
          'background-color': (node: { data(name: string): number }) => types[node.data('colour')] ?? line,
          'border-width': 2, 'border-color': paper,
          width: 'data(size)', height: 'data(size)',
          label: 'data(label)', color: ink, 'font-family': css.fontFamily, 'font-size': LABEL_SIZE, 'font-weight': 500,
          'text-valign': 'bottom', 'text-wrap': 'wrap', 'text-max-width': `${LABEL_WIDTH}px`, 'text-margin-y': 5, 'text-background-color': paper, 'text-background-opacity': 0.85,
          'text-background-padding': '2px', 'text-background-shape': 'roundrectangle', 'min-zoomed-font-size': 7,
          'overlay-opacity': 0, 'transition-property': 'opacity', 'transition-duration': 120,
        },
      },
      { selector: 'node[?blank]', style: { shape: 'diamond' } },
      {
        selector: 'edge',
        style: {
          width: 1.4, 'line-color': line, 'target-arrow-color': line, 'target-arrow-shape': 'triangle', 'arrow-scale': 0.8,
          'curve-style': 'bezier', 'overlay-opacity': 0, color: faint, 'font-family': css.fontFamily, 'font-size': 10,
          'text-rotation': 'autorotate', 'text-background-color': paper, 'text-background-opacity': 0.85, 'text-background-padding': '1px',
          'min-zoomed-font-size': 7, 'transition-property': 'opacity', 'transition-duration': 120,
        },
      },
      { selector: 'edge[?bothWays]', style: { 'source-arrow-shape': 'triangle', 'source-arrow-color': line } },
      { selector: 'edge.named, edge.told', style: { label: 'data(label)' } },
      { selector: 'edge.thin', style: { opacity: 0.3, width: 1, 'arrow-scale': 0.6 } },
      { selector: '.faded', style: { opacity: 0.15 } },
      { selector: 'edge.near', style: { 'line-color': accent, 'target-arrow-color': accent, 'source-arrow-color': accent, color: ink, width: 2, opacity: 1 } },
      { selector: 'node.chosen', style: { 'border-color': accent, 'border-width': 4 } },
    ] as never);
  }

  #draw(): void {
    const [core, model] = [this.#core, this.#model];
    if (core === null || model === null) return;
    const degree = new Map<string, number>();
    for (const { source, target } of model.edges.values()) {
      for (const id of [source, target]) degree.set(id, (degree.get(id) ?? 0) + 1);
    }
    const colours = new Map(model.types().map(({ type }, i) => [type, Math.min(i + 1, COLOURS)] as const));
    const size = (id: string): number => Math.min(44, 18 + 5 * Math.sqrt(degree.get(id) ?? 0));
    const data = (vertex: Vertex): ElementDefinition['data'] => ({
      id: vertex.id,
      label: vertex.label.length > LABEL_MAX ? `${vertex.label.slice(0, LABEL_MAX - 1)}…` : vertex.label,
      colour: vertex.type === null ? 0 : (colours.get(vertex.type) ?? 0),
      size: size(vertex.id),
      blank: vertex.id.startsWith('_:'),
    });
    const boxes = [...model.vertices.values()].map(({ id, label }) => {
      const text = Math.min(label.length, LABEL_MAX) * CHARACTER;
      const below = 4 + 15 * Math.ceil(text / LABEL_WIDTH);
      const width = Math.max(size(id), Math.min(text, LABEL_WIDTH)) + 12;
      return { id, width, height: size(id) + below + 8, drop: below / 2, at: this.#places.get(id) ?? null };
    });
    const few = model.edges.size <= LABELLED_EDGES_MAX;
    // Room for the labels of the edges, beside two vertices and a label of one of them.
    const longest = few ? Math.max(0, ...[...model.edges.values()].map((edge) => Math.min(edge.label.length, LABEL_MAX))) : 0;
    const length = longest === 0 ? undefined : Math.min(EDGE_MAX, 72 + longest * CHARACTER);
    this.#places = arrange(boxes, [...model.edges.values()], core.width() / Math.max(1, core.height()), length);
    core.batch(() => {
      for (const vertex of model.vertices.values()) {
        const at = this.#places.get(vertex.id) ?? { x: 0, y: 0 };
        const known = core.getElementById(vertex.id);
        if (known.nonempty()) known.data(data(vertex) ?? {}).position(at);
        else core.add({ group: 'nodes', data: data(vertex) ?? {}, position: { ...at } });
      }
      for (const edge of model.edges.values()) {
        const known = core.getElementById(edge.id);
        if (known.empty()) core.add({ group: 'edges', data: { ...edge } });
        else known.data('bothWays', edge.bothWays);
      }
      core.nodes().filter((node) => !model.vertices.has(node.id())).remove();
      core.edges().filter((edge) => !model.edges.has(edge.id())).remove();
      core.edges().toggleClass('named', few).toggleClass('thin', model.edges.size > THIN_FROM);
    });
    this.#highlight(this.#chosen);
    this.#labelSize = LABEL_SIZE;
    core.nodes().removeStyle('font-size');
    this.#sizeLabels();
    this.#tell(colours);
  }

  #tell(colours: ReadonlyMap<string, number>): void {
    const [model, namespaces] = [this.#model, this.#namespaces];
    if (model === null || namespaces === null) return;
    const text = `${counted(model.vertices.size, 'vertex')}, ${counted(model.edgeCount, 'edge')}`;
    this.#canvas.setAttribute('aria-label', `Picture of ${text}. The table shows the same data as text.`);
    const left = [
      model.left > 0 ? `${count(model.left)} vertices beyond the limit of ${VERTICES_MAX} are not shown` : '',
      model.leftEdges > 0 ? 'not all edges are shown' : '',
    ].filter((part) => part !== '');
    this.#say([text, ...left].join('; '));
    this.element.classList.toggle('capped', left.length > 0);
    const shown = model.types().slice(0, COLOURS);
    this.#legend.replaceChildren(
      ...shown.map(({ type, count: number }) => {
        const { head, local } = iriParts(type, namespaces);
        const dot = h('span', { class: 'dot', style: `background:var(--type-${colours.get(type) ?? 0})` });
        return h('li', { title: type }, dot, local === '' ? head : local, h('span', { class: 'faint' }, count(number)));
      }),
    );
  }

  #say(text: string): void {
    this.#note.textContent = text;
  }

  /** Fetches missing labels and types. True if there were any. */
  async #complete(): Promise<boolean> {
    const model = this.#model;
    const iris = model?.takeUnknown() ?? [];
    if (model === null || iris.length === 0) return false;
    const facts = await this.#options.facts(iris).catch(() => []);
    if (facts.length === 0 || model !== this.#model) return false;
    for (const { iri, label, type } of facts) {
      if (label !== null) model.name(iri, label);
      if (type !== null) model.type(iri, type);
    }
    this.#draw();
    return true;
  }

  async #expand(id: string): Promise<void> {
    const model = this.#model;
    const vertex = model?.vertices.get(id);
    if (model === null || vertex === undefined) return;
    this.#choose(id);
    if (vertex.iri === null) {
      this.#options.onProblem(id.startsWith('_:') ? 'a blank node cannot be queried by name' : 'a value has no neighbourhood');
      return;
    }
    this.#options.onOpen(vertex.iri);
    if (vertex.expanded) return;
    vertex.expanded = true;
    try {
      const triples = await this.#options.load(vertex.iri);
      if (model !== this.#model) return;
      model.addTriples(triples);
      this.#draw();
      await this.#complete();
      this.#core?.resize();
      this.#reveal(id);
    } catch (error) {
      vertex.expanded = false;
      this.#options.onProblem(error instanceof Error ? error.message : String(error));
    }
  }

  #choose(id: string | null): void {
    this.#chosen = id;
    this.#highlight(id);
  }

  #highlight(id: string | null): void {
    const core = this.#core;
    if (core === null) return;
    core.batch(() => {
      core.elements().removeClass('faded near told chosen');
      if (id === null) return;
      const vertex = core.getElementById(id);
      if (vertex.empty()) return;
      core.elements().difference(vertex.closedNeighborhood()).addClass('faded');
      const near = vertex.connectedEdges().addClass('near');
      if (near.length <= TOLD_MAX) near.addClass('told');
      vertex.addClass('chosen');
    });
  }

  #arrangeAgain(): void {
    this.#places.clear();
    this.#draw();
    this.#fit();
  }

  #fit(): void {
    this.#core?.resize();
    this.#core?.fit(undefined, 36);
    // A few vertices need not fill the screen.
    if (this.#core !== null && this.#core.zoom() > ZOOM_MAX) {
      this.#core.zoom(ZOOM_MAX);
      this.#core.center();
    }
  }

  /**
   * Moves the view so that the neighbourhood of a vertex is visible: with the rest of a small picture, and never
   * at a larger zoom than that of a new picture.
   */
  #reveal(id: string): void {
    const core = this.#core;
    if (core === null) return;
    const all = core.nodes().length <= REVEALED_MAX;
    const box = (all ? core.elements() : core.getElementById(id).closedNeighborhood()).boundingBox();
    const [width, height, padding] = [core.width(), core.height(), 36];
    const fitting = Math.min((width - 2 * padding) / Math.max(1, box.w), (height - 2 * padding) / Math.max(1, box.h));
    const zoom = Math.max(core.minZoom(), Math.min(ZOOM_MAX, fitting));
    const pan = { x: width / 2 - (zoom * (box.x1 + box.x2)) / 2, y: height / 2 - (zoom * (box.y1 + box.y2)) / 2 };
    core.animate({ zoom, pan }, { duration: still() ? 0 : 300 });
  }

  /** Enlarges labels at low zoom, so that they stay readable. */
  #sizeLabels(): void {
    const [core, model] = [this.#core, this.#model];
    if (core === null || model === null) return;
    const few = model.vertices.size <= ENLARGED_MAX;
    const size = few ? Math.min(20, Math.max(LABEL_SIZE, Math.round(8.5 / core.zoom()))) : LABEL_SIZE;
    if (size === this.#labelSize) return;
    this.#labelSize = size;
    core.nodes().style('font-size', size);
  }

  #zoom(factor: number): void {
    const core = this.#core;
    if (core === null) return;
    core.zoom({ level: core.zoom() * factor, renderedPosition: { x: core.width() / 2, y: core.height() / 2 } });
  }

  #key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const pan: Record<string, [number, number]> = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    const by = pan[event.key];
    if (by !== undefined) this.#core?.panBy({ x: by[0], y: by[1] });
    else if (event.key === '+' || event.key === '=') this.#zoom(1.3);
    else if (event.key === '-') this.#zoom(1 / 1.3);
    else if (event.key === '0') this.#fit();
    else return;
    event.preventDefault();
  }

  #savePicture(): void {
    const data = this.#core?.png({ full: true, scale: 2, bg: getComputedStyle(this.element).backgroundColor });
    if (data !== undefined) h('a', { href: data, download: 'graph.png' }).click();
  }
}

function still(): boolean {
  return matchMedia('(prefers-reduced-motion: reduce)').matches;
}
