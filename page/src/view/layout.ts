// Force-directed layout of a picture: springs along edges, repulsion between all vertices, gravity to the
// centre.
//
// Deterministic: vertices start on a spiral (placed vertices at their position), the most connected first.
// Cost: `ROUNDS * n^2` steps for n vertices, so the model's cap keeps it below a tenth of a second. A last
// pass separates labels; if every vertex has a position, it is the only one. After Fruchterman and Reingold,
// "Graph drawing by force-directed placement", 1991; differences: boxes instead of points, and gravity
// instead of a frame.

export interface Box {
  readonly id: string;
  /** Including the label, in pixels. */
  readonly width: number;
  readonly height: number;
  /** The offset of the box's centre below the vertex: labels hang below. */
  readonly drop: number;
  /** Its previous position, if any. */
  readonly at: Point | null;
}

export interface Point {
  x: number;
  y: number;
}

const ROUNDS = 300;
const SPREAD_ROUNDS = 150;
/** Length of an edge at rest, unless the caller asks for more. */
const LENGTH = 84;
/** Gravity to the centre, per pixel of distance. */
const PULL = 0.12;
const STRETCH_MAX = 1.6;
const GOLDEN = Math.PI * (3 - Math.sqrt(5));

/** `aspect`: width by height of the picture's area; `length`: that of an edge at rest. */
export function arrange(boxes: readonly Box[], edges: readonly { source: string; target: string }[], aspect = 1, length = LENGTH): Map<string, Point> {
  const index = new Map(boxes.map(({ id }, i) => [id, i] as const));
  const pairs = edges.flatMap(({ source, target }) => {
    const [a, b] = [index.get(source), index.get(target)];
    return a === undefined || b === undefined || a === b ? [] : [[a, b] as const];
  });
  const points = start(boxes, pairs, length);
  const degree = new Float64Array(boxes.length);
  for (const [a, b] of pairs) [degree[a], degree[b]] = [(degree[a] ?? 0) + 1, (degree[b] ?? 0) + 1];
  // A placed vertex is hard to move, to preserve the user's mental map.
  const mobility = Float64Array.from(boxes, ({ at }) => (at === null ? 1 : 0.1));
  const rounds = boxes.some(({ at }) => at === null) ? ROUNDS : 0;
  for (let round = 0; round < rounds; round += 1) {
    const heat = 1 - round / rounds;
    relax(points, pairs, { degree, mobility, step: 60 * heat * heat + 0.5, aspect, length });
  }
  for (let round = 0; round < SPREAD_ROUNDS && spread(points, boxes, aspect); round += 1);
  if (boxes.every(({ at }) => at === null)) stretch(points, aspect);
  return new Map(boxes.map(({ id }, i) => [id, points[i] ?? { x: 0, y: 0 }] as const));
}

/** On a spiral, the most connected in the centre; new ones near a placed neighbour. */
function start(boxes: readonly Box[], pairs: readonly (readonly [number, number])[], length: number): Point[] {
  const neighbours = boxes.map((): number[] => []);
  for (const [a, b] of pairs) {
    neighbours[a]?.push(b);
    neighbours[b]?.push(a);
  }
  const order = boxes.map((_, i) => i).sort((a, b) => (neighbours[b]?.length ?? 0) - (neighbours[a]?.length ?? 0) || a - b);
  const points: Point[] = boxes.map(() => ({ x: 0, y: 0 }));
  order.forEach((vertex, rank) => {
    const angle = rank * GOLDEN;
    const box = boxes[vertex];
    const near = neighbours[vertex]?.map((other) => boxes[other]?.at).find((at) => at);
    const radius = near ? length : 40 * Math.sqrt(rank);
    points[vertex] = box?.at
      ? { ...box.at }
      : { x: (near?.x ?? 0) + radius * Math.cos(angle), y: (near?.y ?? 0) + radius * Math.sin(angle) };
  });
  return points;
}

interface Round {
  readonly degree: Float64Array;
  /** The fraction of a force that moves a vertex. */
  readonly mobility: Float64Array;
  /** The maximum step of a round. */
  readonly step: number;
  readonly aspect: number;
  readonly length: number;
}

function relax(points: Point[], pairs: readonly (readonly [number, number])[], { degree, mobility, step, aspect, length }: Round): void {
  const n = points.length;
  const fx = new Float64Array(n);
  const fy = new Float64Array(n);
  const push = (i: number, x: number, y: number): void => {
    fx[i] = (fx[i] ?? 0) + x;
    fy[i] = (fy[i] ?? 0) + y;
  };
  for (let i = 0; i < n; i += 1) {
    const a = points[i]!;
    for (let j = i + 1; j < n; j += 1) {
      const b = points[j]!;
      let [dx, dy] = [a.x - b.x, a.y - b.y];
      // Two vertices at one position separate in a direction that depends on their indices.
      if (dx === 0 && dy === 0) [dx, dy] = [Math.cos(i + j), Math.sin(i + j)];
      const square = Math.max(dx * dx + dy * dy, 25);
      const force = (length * length) / square;
      push(i, dx * force, dy * force);
      push(j, -dx * force, -dy * force);
    }
    push(i, -a.x * PULL, -a.y * PULL * Math.min(3, Math.max(0.5, aspect)));
  }
  for (const [i, j] of pairs) {
    const [a, b] = [points[i]!, points[j]!];
    const [dx, dy] = [b.x - a.x, b.y - a.y];
    const distance = Math.max(1, Math.hypot(dx, dy));
    // Edges of hubs are longer and softer, to make room for their neighbours.
    const crowd = Math.sqrt(Math.min(degree[i] ?? 1, degree[j] ?? 1));
    const force = distance / length / crowd;
    push(i, dx * force, dy * force);
    push(j, -dx * force, -dy * force);
  }
  for (let i = 0; i < n; i += 1) {
    const [x, y] = [fx[i] ?? 0, fy[i] ?? 0];
    const scale = (mobility[i] ?? 1) * Math.min(1, step / Math.max(1e-9, Math.hypot(x, y)));
    const point = points[i]!;
    point.x += x * scale;
    point.y += y * scale;
  }
}

/**
 * Separates overlapping boxes, along the shorter axis; a wide area favours horizontal moves. False if none
 * overlapped.
 */
function spread(points: Point[], boxes: readonly Box[], aspect: number): boolean {
  let moved = false;
  for (let i = 0; i < points.length; i += 1) {
    for (let j = i + 1; j < points.length; j += 1) {
      const [a, b, p, q] = [boxes[i]!, boxes[j]!, points[i]!, points[j]!];
      const x = (a.width + b.width) / 2 - Math.abs(p.x - q.x);
      const [above, below] = [p.y + a.drop, q.y + b.drop];
      const y = (a.height + b.height) / 2 - Math.abs(above - below);
      if (x <= 0 || y <= 0) continue;
      moved = true;
      if (y * Math.max(1, aspect) <= x) {
        const shift = (above < below || (above === below && i < j) ? -y : y) / 2;
        p.y += shift;
        q.y -= shift;
      } else {
        const shift = (p.x < q.x || (p.x === q.x && i < j) ? -x : x) / 2;
        p.x += shift;
        q.x -= shift;
      }
    }
  }
  return moved;
}

/** Fills the area: stretches the picture up to `STRETCH_MAX` times in width or height. */
function stretch(points: Point[], aspect: number): void {
  const [xs, ys] = [points.map(({ x }) => x), points.map(({ y }) => y)];
  const width = Math.max(...xs) - Math.min(...xs);
  const height = Math.max(...ys) - Math.min(...ys);
  if (!(width > 0 && height > 0)) return;
  const ratio = (aspect * height) / width;
  const [sx, sy] = [Math.min(STRETCH_MAX, Math.max(1, ratio)), Math.min(STRETCH_MAX, Math.max(1, 1 / ratio))];
  for (const point of points) {
    point.x *= sx;
    point.y *= sy;
  }
}
