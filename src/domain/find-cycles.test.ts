/** Cycles: each knot once, by a path that is really there. */
import { describe, expect, test } from 'vitest';
import { fc } from '../../test/support/property.ts';
import { findCycles } from './find-cycles.ts';
import { buildGraph, type GraphNode } from './graph.ts';

const cycles = (needs: Readonly<Record<string, readonly string[]>>) =>
  findCycles(buildGraph(Object.entries(needs).map(([id, list]) => ({ id, needs: list }))));

test('a graph without a cycle has none', () => {
  // SPEC S1.4
  expect(cycles({ a: [], b: ['a'], c: ['a', 'b'] })).toEqual([]);
});

test('a cycle of two is reported with its path', () => {
  // SPEC S1.4
  expect(cycles({ a: ['b'], b: ['a'] })).toEqual([['a', 'b', 'a']]);
});

test('the path leads from a task to one that needs it', () => {
  // SPEC S1.4
  expect(cycles({ fetch: ['write'], draft: ['fetch'], write: ['draft'] })).toEqual([
    ['fetch', 'draft', 'write', 'fetch'],
  ]);
});

test('a task that needs itself is a cycle of one', () => {
  // SPEC S1.4
  expect(cycles({ a: ['a'], b: ['a'] })).toEqual([['a', 'a']]);
});

test('a self-dependency inside a larger knot does not hide the larger cycle', () => {
  // SPEC S1.4
  expect(cycles({ a: ['a', 'b'], b: ['a'] })).toEqual([['a', 'b', 'a']]);
});

test('tasks before and after a cycle are not part of its path', () => {
  // SPEC S1.4
  expect(cycles({ root: [], a: ['root', 'b'], b: ['a'], leaf: ['b'] })).toEqual([['a', 'b', 'a']]);
});

test('separate knots are all reported, in input order', () => {
  // SPEC S1.4
  expect(cycles({ x: ['y'], a: ['b', 'y'], y: ['x'], b: ['a'] })).toEqual([
    ['x', 'y', 'x'],
    ['a', 'b', 'a'],
  ]);
});

test('a knot with many cycles is reported once, by a short one', () => {
  // SPEC S1.4
  expect(cycles({ a: ['d', 'b'], b: ['a'], c: ['b'], d: ['c'] })).toEqual([['a', 'b', 'a']]);
});

test('a ring of 10,000 tasks needs no recursion', () => {
  // SPEC S1.4
  const ring = Array.from({ length: 10_000 }, (_, i) => ({
    id: `t${i}`,
    needs: [`t${(i + 9_999) % 10_000}`],
  }));
  expect(findCycles(buildGraph(ring))).toEqual([[...ring.map(({ id }) => id), 't0']]);
});

describe('on random graphs', () => {
  const nodesOf: fc.Arbitrary<GraphNode[]> = fc.integer({ min: 0, max: 7 }).chain((size) => {
    const ids = Array.from({ length: size }, (_, i) => `t${i}`);
    return fc.tuple(
      ...ids.map((id) => fc.subarray(ids, { maxLength: Math.min(2, size) }).map((needs) => ({ id, needs }))),
    );
  });

  /** Whether a way of at least one edge leads from one node to another, by growing the set of reached nodes. */
  const leads = (nodes: readonly GraphNode[], from: string, to: string): boolean => {
    const reached = new Set<string>();
    for (let before = -1; before !== reached.size; ) {
      before = reached.size;
      for (const { id, needs } of nodes) if (needs.some((n) => n === from || reached.has(n))) reached.add(id);
    }
    return reached.has(to);
  };

  test('every knot is reported once, by a closed path of real edges inside it', () => {
    // SPEC S1.4
    fc.assert(
      fc.property(nodesOf, (nodes) => {
        const ids = nodes.map(({ id }) => id);
        const firstOfKnot = ids.filter(
          (id, at) =>
            leads(nodes, id, id) && !ids.slice(0, at).some((e) => leads(nodes, e, id) && leads(nodes, id, e)),
        );
        const found = findCycles(buildGraph(nodes));
        expect(found.map((path) => path[0])).toEqual(firstOfKnot);
        for (const path of found) {
          expect(path.at(-1)).toBe(path[0]);
          expect(new Set(path).size).toBe(path.length - 1);
          for (const [at, id] of path.slice(1).entries()) {
            expect(nodes.find((node) => node.id === id)?.needs).toContain(path[at]);
          }
        }
      }),
      { numRuns: 500 },
    );
  });
});
