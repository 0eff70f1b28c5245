/** Shape questions on small graphs by hand, on random ones against naive answers, and on large ones for depth. */
import { describe, expect, test } from 'vitest';
import { fc } from '../../test/support/property.ts';
import { InvariantError } from '../base/invariant.ts';
import {
  ancestors,
  buildGraph,
  components,
  descendants,
  type GraphNode,
  leaves,
  phases,
  roots,
  topologicalOrder,
} from './graph.ts';

/** `'b: a'` is a node b that needs a. */
const parse = (...lines: string[]): GraphNode[] =>
  lines.map((line) => {
    const [id = '', needs = ''] = line.split(':').map((part) => part.trim());
    return { id, needs: needs === '' ? [] : needs.split(' ') };
  });
const graph = (...lines: string[]) => buildGraph(parse(...lines));

/** Random acyclic nodes in random order: a node needs only nodes with a smaller number. */
const acyclic: fc.Arbitrary<GraphNode[]> = fc
  .integer({ min: 0, max: 8 })
  .chain((size) => fc.tuple(...Array.from({ length: size }, (_, own) => fc.subarray([...Array(own).keys()]))))
  .map((lists) => lists.map((needs, own) => ({ id: `t${own}`, needs: needs.map((need) => `t${need}`) })))
  .chain((nodes) => fc.shuffledSubarray(nodes, { minLength: nodes.length }));

const DIAMOND = ['a', 'b: a', 'c: a', 'd: b c'];

describe('buildGraph', () => {
  test('a need named twice counts once', () => {
    // SPEC S1.2
    const twice = graph('a', 'b: a a a');
    expect(twice.edgeCount).toBe(1);
    expect(twice.parents).toEqual([[], [0]]);
    expect(twice.children).toEqual([[1], []]);
  });

  test('a node may need one that comes later', () => {
    // SPEC S1.2
    expect(graph('b: a', 'a').parents).toEqual([[1], []]);
  });

  test('an unknown need and a second node of one id are left out', () => {
    // SPEC S1.4
    const odd = graph('a: ghost', 'b: a', 'b: ghost');
    expect(odd.ids).toEqual(['a', 'b']);
    expect(odd.edgeCount).toBe(1);
  });

  test('names of object properties are ordinary ids', () => {
    expect(roots(graph('__proto__', 'constructor: __proto__'))).toEqual(['__proto__']);
  });

  test('no nodes make an empty graph', () => {
    const empty = graph();
    expect([roots(empty), leaves(empty), phases(empty), components(empty), topologicalOrder(empty)]).toEqual([
      [],
      [],
      [],
      [],
      [],
    ]);
  });
});

describe('a diamond', () => {
  test('has one root and one leaf', () => {
    expect(roots(graph(...DIAMOND))).toEqual(['a']);
    expect(leaves(graph(...DIAMOND))).toEqual(['d']);
  });

  test('has three phases', () => {
    // SPEC S13.2
    expect(phases(graph(...DIAMOND))).toEqual([['a'], ['b', 'c'], ['d']]);
  });

  test('has descendants and ancestors without the node itself', () => {
    // SPEC S5.7
    expect([...descendants(graph(...DIAMOND), ['b'])]).toEqual(['d']);
    expect([...ancestors(graph(...DIAMOND), ['d'])]).toEqual(['a', 'b', 'c']);
  });
});

test('a phase is the longest way from a root, not the shortest', () => {
  // SPEC S13.2
  expect(phases(graph('a', 'b: a', 'c: a b'))).toEqual([['a'], ['b'], ['c']]);
});

test('of the nodes that could come next, the first by input does', () => {
  expect(topologicalOrder(graph('c: b', 'a', 'b'))).toEqual(['a', 'b', 'c']);
  expect(topologicalOrder(graph('z', 'y', 'x: z', 'w'))).toEqual(['z', 'y', 'x', 'w']);
});

test('several starting nodes are followed together, and one downstream of another is included', () => {
  // SPEC S5.7
  expect([...descendants(graph('a', 'b: a', 'c: b', 'd'), ['a', 'b', 'd'])]).toEqual(['b', 'c']);
});

test('disconnected parts come apart, each in input order', () => {
  // SPEC S1.4
  expect(components(graph('a', 'x', 'b: a', 'y: x', 'z'))).toEqual([['a', 'b'], ['x', 'y'], ['z']]);
});

test('asking for an id that is not a node is a bug', () => {
  expect(() => descendants(graph('a'), ['b'])).toThrow(InvariantError);
});

test('putting a cycle in order is a bug', () => {
  expect(() => topologicalOrder(graph('a: b', 'b: a'))).toThrow(InvariantError);
  expect(() => phases(graph('a: a'))).toThrow(InvariantError);
});

describe('on random graphs', () => {
  const needsOf = (nodes: readonly GraphNode[], id: string): readonly string[] =>
    nodes.find((node) => node.id === id)?.needs ?? [];
  const isAbove = (nodes: readonly GraphNode[], above: string, id: string): boolean =>
    needsOf(nodes, id).some((need) => need === above || isAbove(nodes, above, need));
  const levelOf = (nodes: readonly GraphNode[], id: string): number =>
    Math.max(-1, ...needsOf(nodes, id).map((need) => levelOf(nodes, need))) + 1;

  test('the order is the one found by always taking the first free node', () => {
    fc.assert(
      fc.property(acyclic, (nodes) => {
        const taken: string[] = [];
        while (taken.length < nodes.length) {
          const free = nodes.find(
            ({ id, needs }) => !taken.includes(id) && needs.every((need) => taken.includes(need)),
          );
          taken.push(free?.id ?? 'none');
        }
        expect(topologicalOrder(buildGraph(nodes))).toEqual(taken);
      }),
    );
  });

  test('a phase holds the nodes whose longest way from a root is that long', () => {
    // SPEC S13.2
    fc.assert(
      fc.property(acyclic, (nodes) => {
        for (const [level, ids] of phases(buildGraph(nodes)).entries()) {
          expect(ids).toEqual(nodes.map(({ id }) => id).filter((id) => levelOf(nodes, id) === level));
        }
        expect(phases(buildGraph(nodes)).flat()).toHaveLength(nodes.length);
      }),
    );
  });

  test('descendants and ancestors are what needs lead to', () => {
    // SPEC S5.7
    fc.assert(
      fc.property(acyclic, (nodes) => {
        const built = buildGraph(nodes);
        const ids = nodes.map(({ id }) => id);
        for (const id of ids) {
          expect([...descendants(built, [id])]).toEqual(ids.filter((other) => isAbove(nodes, id, other)));
          expect([...ancestors(built, [id])]).toEqual(ids.filter((other) => isAbove(nodes, other, id)));
        }
      }),
    );
  });

  test('two nodes are in one part exactly when edges connect them', () => {
    // SPEC S1.4
    fc.assert(
      fc.property(acyclic, (nodes) => {
        const label = new Map(nodes.map(({ id }) => [id, id]));
        for (const { id, needs } of nodes) {
          for (const need of needs) {
            const [from, to] = [label.get(need), label.get(id) ?? ''];
            for (const [key, value] of label) if (value === from) label.set(key, to);
          }
        }
        const naive = [...new Set(label.values())].map((value) =>
          [...label].filter(([, own]) => own === value).map(([key]) => key),
        );
        expect(components(buildGraph(nodes))).toEqual(naive);
      }),
    );
  });
});

describe('at full size', () => {
  const SIZE = 10_000;
  const id = (index: number): string => `task-${index}`;

  test('a chain of 10,000 tasks, given backwards, needs no recursion', () => {
    // SPEC S1.4
    const nodes = Array.from({ length: SIZE }, (_, i) => ({ id: id(i), needs: i === 0 ? [] : [id(i - 1)] }));
    const chain = buildGraph(nodes.reverse());
    expect(topologicalOrder(chain)[SIZE - 1]).toBe(id(SIZE - 1));
    expect(phases(chain)).toHaveLength(SIZE);
    expect(descendants(chain, [id(0)]).size).toBe(SIZE - 1);
    expect(ancestors(chain, [id(SIZE - 1)]).size).toBe(SIZE - 1);
    expect(components(chain)).toHaveLength(1);
  });

  test('10,000 tasks with 100,000 edges are answered', () => {
    // SPEC S1.4
    const needs = (i: number): string[] => Array.from({ length: Math.min(10, i) }, (_, k) => id(i - 1 - k));
    const wide = buildGraph(Array.from({ length: SIZE }, (_, i) => ({ id: id(i), needs: needs(i) })));
    expect(wide.edgeCount).toBe(10 * SIZE - 55);
    expect(topologicalOrder(wide)).toEqual(wide.ids);
    expect(phases(wide)).toHaveLength(SIZE);
  });
});
