/** How long the graph questions take at the size limit: 10,000 tasks, as a chain and with 100,000 edges. */
import { findCycles } from '../src/domain/find-cycles.ts';
import {
  buildGraph,
  components,
  descendants,
  type GraphNode,
  phases,
  topologicalOrder,
} from '../src/domain/graph.ts';

const TASKS = 10_000;
const ROUNDS = 7;

/** Median milliseconds to build each graph and ask it everything, by shape. */
export async function graphBench(): Promise<Record<string, number>> {
  return {
    graph_chain_10k_ms: medianMs(nodesNeeding((index) => (index === 0 ? [] : [index - 1]))),
    graph_100k_edges_ms: medianMs(nodesNeeding(tenBefore)),
    graph_ring_10k_ms: medianMs(nodesNeeding((index) => [(index + TASKS - 1) % TASKS])),
  };
}

/** Ten earlier tasks, spread out so that edges are both short and long. */
function tenBefore(index: number): number[] {
  return Array.from({ length: Math.min(10, index) }, (_, k) => Math.floor((index * (k + 1)) / 11));
}

function nodesNeeding(needs: (index: number) => readonly number[]): GraphNode[] {
  return Array.from({ length: TASKS }, (_, index) => ({
    id: `task-${index}`,
    needs: needs(index).map((need) => `task-${need}`),
  }));
}

function medianMs(nodes: readonly GraphNode[]): number {
  const times = Array.from({ length: ROUNDS }, () => {
    const start = performance.now();
    askEverything(nodes);
    return performance.now() - start;
  });
  return times.sort((a, b) => a - b)[Math.floor(ROUNDS / 2)] ?? 0;
}

function askEverything(nodes: readonly GraphNode[]): void {
  const graph = buildGraph(nodes);
  components(graph);
  descendants(graph, ['task-0']);
  if (findCycles(graph).length > 0) return;
  topologicalOrder(graph);
  phases(graph);
}
