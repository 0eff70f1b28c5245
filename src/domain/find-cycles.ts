/**
 * Cycles of a graph, so that a person can mend them (SPEC S1.4). Each strongly connected part is reported once, by a
 * shortest way round from its first node; a node that needs itself inside a larger part is left to the validator's own
 * check, since it would hide the longer cycle. Tarjan's algorithm with its own stack: a chain of 10,000 is ordinary.
 */
import type { Graph } from './graph.ts';

/** One path per knot, `[a, b, a]` for a → b → a, where an arrow leads from a task to one that needs it. */
export function findCycles(graph: Graph): readonly (readonly string[])[] {
  return knots(graph)
    .map((knot) => shortestWayRound(graph, knot))
    .sort((a, b) => (a[0] ?? 0) - (b[0] ?? 0))
    .map((path) => path.map((index) => graph.ids[index] ?? ''));
}

/** The strongly connected parts that hold a cycle: more than one node, or a node that needs itself. */
function knots(graph: Graph): readonly (readonly number[])[] {
  const size = graph.ids.length;
  const search: Search = {
    children: graph.children,
    order: new Int32Array(size),
    low: new Int32Array(size),
    onPath: new Uint8Array(size),
    path: [],
    seen: 0,
  };
  const found: number[][] = [];
  for (let start = 0; start < size; start++) {
    if (search.order[start] === 0) visit(search, start, found);
  }
  return found.filter((knot) => knot.length > 1 || needsItself(graph, knot[0] ?? 0));
}

interface Search {
  readonly children: Graph['children'];
  /** When a node was first met, from 1; 0 is not yet. */
  readonly order: Int32Array;
  /** The earliest node of the path that can be reached from here. */
  readonly low: Int32Array;
  readonly onPath: Uint8Array;
  readonly path: number[];
  seen: number;
}

interface Frame {
  readonly node: number;
  next: number;
}

function visit(search: Search, start: number, found: number[][]): void {
  const { children, order, low, onPath } = search;
  const frames: Frame[] = [enter(search, start)];
  for (let frame = frames.at(-1); frame !== undefined; frame = frames.at(-1)) {
    const { node } = frame;
    const child = children[node]?.[frame.next];
    if (child === undefined) {
      frames.pop();
      const above = frames.at(-1);
      if (above !== undefined) lower(low, above.node, low[node] ?? 0);
      if (low[node] === order[node]) found.push(leave(search, node));
      continue;
    }
    frame.next += 1;
    if (order[child] === 0) frames.push(enter(search, child));
    else if (onPath[child] === 1) lower(low, node, order[child] ?? 0);
  }
}

function enter(search: Search, node: number): Frame {
  search.seen += 1;
  search.order[node] = search.seen;
  search.low[node] = search.seen;
  search.onPath[node] = 1;
  search.path.push(node);
  return { node, next: 0 };
}

function leave(search: Search, root: number): number[] {
  const knot = search.path.splice(search.path.lastIndexOf(root));
  for (const node of knot) search.onPath[node] = 0;
  return knot;
}

function lower(low: Int32Array, node: number, to: number): void {
  low[node] = Math.min(low[node] ?? 0, to);
}

/** Breadth first from the knot's first node until an edge leads back; staying inside the knot bounds the work. */
function shortestWayRound(graph: Graph, knot: readonly number[]): readonly number[] {
  const start = knot.reduce((a, b) => Math.min(a, b));
  const inside = new Set(knot);
  const cameFrom = new Map<number, number>();
  const queue = [start];
  // The queue grows while it is walked; every node enters it once.
  for (const node of queue) {
    for (const child of graph.children[node] ?? []) {
      if (child === start && node !== start) return wayBack(cameFrom, { start, end: node });
      if (child === start || !inside.has(child) || cameFrom.has(child)) continue;
      cameFrom.set(child, node);
      queue.push(child);
    }
  }
  // Only a knot of one has no way round through another node.
  return [start, start];
}

function wayBack(
  cameFrom: ReadonlyMap<number, number>,
  ends: { start: number; end: number },
): readonly number[] {
  const path = [ends.start];
  for (let node: number | undefined = ends.end; node !== undefined; node = cameFrom.get(node))
    path.push(node);
  return path.reverse();
}

function needsItself(graph: Graph, node: number): boolean {
  return graph.children[node]?.includes(node) ?? false;
}
