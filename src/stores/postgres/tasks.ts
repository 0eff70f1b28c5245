/** Task runs and their edges in Postgres. */
import { TASK_SHAPE } from '../row-shapes.ts';
import type { Tx } from '../store.ts';
import { type Access, CHILDREN_AHEAD, PARENTS_FEW } from './access.ts';
import type { Lists } from './batch.ts';

/** Operations on task runs. */
export function tasks(access: Access): Tx['tasks'] {
  const { transaction } = access;
  return {
    byKeys: (keys) => access.tasksByKeys(keys),
    byId: async (id) => (await access.tasksAnywhere('wait', 'tasks.by_id', id))[0] ?? null,
    keysOf: (ids) => transaction.rows<{ id: string; key: number }>('tasks.keys_of', ids),
    byTaskIds: (run_key, ids) => access.tasksOfRun(run_key, 'tasks.by_task_ids', run_key, ids),
    ofRun: (run_key, { after, limit }) => access.tasksOfRun(run_key, 'tasks.of_run', run_key, after, limit),
    nodesOf: (run_key, { after, limit }) =>
      access.tasksOfRun(run_key, 'tasks.nodes_of', run_key, after, limit),
    items: ({ key, run_key }, { from, limit }) => access.tasksOfRun(run_key, 'tasks.items', key, from, limit),
    held: ({ key, run_key }, limit) => access.tasksOfRun(run_key, 'tasks.held', key, limit),
    insert: (added) => access.insertKeyed(TASK_SHAPE, added),
    save: async (changed) => access.save(TASK_SHAPE, changed),
    childrenOf: (parents, page) => childrenOf(access, parents, page),
    prioritiesBelow: async (parent, limit) =>
      (await transaction.lists('tasks.priorities_below', parent, limit)).map(
        ([priority]) => priority as number,
      ),
    parentsOf: async (children) => toEdges(await transaction.lists('tasks.parents_of', children)),
    link: async (edges) => {
      if (edges.length === 0) return;
      access.link(edges);
      const [parents, children] = [edges.map(([parent]) => parent), edges.map(([, child]) => child)];
      transaction.later('tasks.link', parents, children);
    },
    unfinished: (run_key, { after, limit }) =>
      access.tasksOfRun(run_key, 'tasks.unfinished', run_key, after, limit),
    ready: (run_key, limit) => access.tasksOfRun(run_key, 'tasks.ready', run_key, limit),
    undecided: (limit) => access.tasksAnywhere('pick', 'tasks.undecided', limit),
    expired: (now, limit) => access.tasksAnywhere('pick', 'tasks.expired', now, limit),
    leasedBy: (worker) => access.tasksAnywhere('wait', 'tasks.leased_by', worker),
    byClaim: (claim_id) => access.tasksAnywhere('wait', 'tasks.by_claim', claim_id),
    asking: ({ after, limit, run_key }) =>
      access.tasksAnywhere('wait', 'tasks.asking', after, run_key ?? null, limit),
    dead: ({ after, limit, run_key }) =>
      access.tasksAnywhere('wait', 'tasks.dead', after, run_key ?? null, limit),
    limbo: (limit) => access.tasksAnywhere('pick', 'tasks.limbo', limit),
  };
}

interface Edge {
  readonly parent: number;
  readonly child: number;
}

async function childrenOf(
  access: Access,
  parents: readonly number[],
  { after, limit }: { after: number; limit: number },
): Promise<Edge[]> {
  const { transaction } = access;
  const known = access.edgesBelow(parents);
  if (known !== null) return toEdges(known.filter(([, child]) => (child as number) > after).slice(0, limit));
  const page = transaction.command('tasks.children_of', parents, after, limit);
  if (!transaction.isWriter || parents.length > PARENTS_FEW) {
    const [edges = []] = await transaction.read(page);
    return toEdges(edges);
  }
  const rows = transaction.command('tasks.children_rows', parents, after, Math.min(limit, CHILDREN_AHEAD));
  const [edges = [], lists = []] = await transaction.read(page, rows);
  access.keepAhead(lists);
  return toEdges(edges);
}

function toEdges(lists: Lists): Edge[] {
  return lists.map(([parent, child]) => ({ parent: parent as number, child: child as number }));
}
