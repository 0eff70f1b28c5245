/**
 * The dependency graph of a workflow, by index, and the questions asked of its shape (10,000 tasks and 100,000 edges are
 * ordinary, so nothing here recurses). A need named twice counts once; a need that names no node is left out, as is a
 * second node with the same id: reporting those is the validator's work. Cycles are found in `find-cycles.ts`.
 */
import { invariant } from '../base/invariant.ts';
import { popIndex, pushIndex } from './index-heap.ts';

/** A task and what it needs, as far as the graph is concerned. */
export interface GraphNode {
  readonly id: string;
  readonly needs: readonly string[];
}

/** Nodes in input order with their neighbours; an index is a node's place in `ids`. */
export interface Graph {
  readonly ids: readonly string[];
  readonly indexOf: ReadonlyMap<string, number>;
  /** What each node needs, in the order it names them. */
  readonly parents: readonly (readonly number[])[];
  /** What needs each node, in input order. */
  readonly children: readonly (readonly number[])[];
  readonly edgeCount: number;
}

/** The graph of some nodes. */
export function buildGraph(nodes: readonly GraphNode[]): Graph {
  const indexOf = new Map<string, number>();
  const distinct = nodes.filter(({ id }) => {
    if (indexOf.has(id)) return false;
    indexOf.set(id, indexOf.size);
    return true;
  });
  const children: number[][] = distinct.map(() => []);
  const parents = distinct.map(({ needs }, child) => {
    const known = new Set<number>();
    for (const need of needs) {
      const parent = indexOf.get(need);
      if (parent !== undefined) known.add(parent);
    }
    for (const parent of known) children[parent]?.push(child);
    return [...known];
  });
  const edgeCount = parents.reduce((sum, list) => sum + list.length, 0);
  return Object.freeze({ ids: distinct.map(({ id }) => id), indexOf, parents, children, edgeCount });
}

/** The nodes that need nothing, in input order. */
export function roots(graph: Graph): readonly string[] {
  return graph.ids.filter((_, index) => neighbours(graph.parents, index).length === 0);
}

/** The nodes that nothing needs, in input order. */
export function leaves(graph: Graph): readonly string[] {
  return graph.ids.filter((_, index) => neighbours(graph.children, index).length === 0);
}

/** Everything downstream of the given nodes, in input order; a given node is in it only if downstream of one. */
export function descendants(graph: Graph, ids: Iterable<string>): ReadonlySet<string> {
  return reach(graph, ids, graph.children);
}

/** Everything upstream of the given nodes, in input order; a given node is in it only if upstream of one. */
export function ancestors(graph: Graph, ids: Iterable<string>): ReadonlySet<string> {
  return reach(graph, ids, graph.parents);
}

/** The parts that no edge connects, each in input order; a connected graph is one part. */
export function components(graph: Graph): readonly (readonly string[])[] {
  const partOf = new Map<number, number>();
  const parts: string[][] = [];
  for (const start of graph.ids.keys()) {
    if (partOf.has(start)) continue;
    partOf.set(start, parts.length);
    const stack = [start];
    for (let index = stack.pop(); index !== undefined; index = stack.pop()) {
      for (const side of [graph.parents, graph.children]) {
        for (const next of neighbours(side, index)) {
          if (partOf.has(next)) continue;
          partOf.set(next, parts.length);
          stack.push(next);
        }
      }
    }
    parts.push([]);
  }
  for (const [index, id] of graph.ids.entries()) parts[partOf.get(index) ?? 0]?.push(id);
  return parts;
}

/** Parents before children; of the nodes that could come next, the first by input does. The graph has no cycle. */
export function topologicalOrder(graph: Graph): readonly string[] {
  return order(graph).map((index) => idAt(graph, index));
}

/** Levels that could each run at once: a node's level is the longest path to it from a root. The graph has no cycle. */
export function phases(graph: Graph): readonly (readonly string[])[] {
  const level = new Int32Array(graph.ids.length);
  const levels: string[][] = [];
  for (const index of order(graph)) {
    const own = level[index] ?? 0;
    for (const child of neighbours(graph.children, index))
      level[child] = Math.max(level[child] ?? 0, own + 1);
  }
  for (const [index, id] of graph.ids.entries()) {
    const own = level[index] ?? 0;
    while (levels.length <= own) levels.push([]);
    levels[own]?.push(id);
  }
  return levels;
}

function order(graph: Graph): readonly number[] {
  const missing = Int32Array.from(graph.parents, (list) => list.length);
  const next: number[] = [];
  for (const [index, count] of missing.entries()) if (count === 0) pushIndex(next, index);
  const ordered: number[] = [];
  for (let index = popIndex(next); index !== undefined; index = popIndex(next)) {
    ordered.push(index);
    for (const child of neighbours(graph.children, index)) {
      const left = (missing[child] ?? 0) - 1;
      missing[child] = left;
      if (left === 0) pushIndex(next, child);
    }
  }
  invariant(ordered.length === graph.ids.length, 'a graph that is put in order has no cycle');
  return ordered;
}

function reach(graph: Graph, ids: Iterable<string>, side: Graph['parents']): ReadonlySet<string> {
  const stack: number[] = [];
  for (const id of ids) {
    const index = graph.indexOf.get(id);
    invariant(index !== undefined, `\`${id}\` is a node of the graph`);
    stack.push(index);
  }
  const reached = new Uint8Array(graph.ids.length);
  for (let index = stack.pop(); index !== undefined; index = stack.pop()) {
    for (const next of neighbours(side, index)) {
      if (reached[next] === 1) continue;
      reached[next] = 1;
      stack.push(next);
    }
  }
  return new Set(graph.ids.filter((_, index) => reached[index] === 1));
}

function neighbours(side: Graph['parents'], index: number): readonly number[] {
  return side[index] ?? [];
}

function idAt(graph: Graph, index: number): string {
  return graph.ids[index] ?? '';
}
