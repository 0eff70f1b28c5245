/** Task runs and their edges in SQLite. */
import { isTerminal } from '../../domain/states.ts';
import { TASK_NEW } from '../columns.ts';
import { TASK_SHAPE } from '../row-shapes.ts';
import type { TaskRow } from '../rows.ts';
import type { Tx } from '../store.ts';
import type { Access, Shape } from './access.ts';
import type { SqlValue } from './driver.ts';
import { insertInto } from './row-statements.ts';

const SHAPE: Shape<TaskRow> = {
  ...TASK_SHAPE,
  insert: insertInto('task_runs', TASK_NEW),
  texts: new Map(),
  isHot: (task) => !isTerminal(task.status),
};

/** Operations on task runs. */
export function tasks(access: Access): Tx['tasks'] {
  const list = (name: string, ...params: SqlValue[]): TaskRow[] => access.listed(SHAPE, name, ...params);
  const edges = (name: string, ...params: SqlValue[]): { parent: number; child: number }[] =>
    access
      .lists(name, ...params)
      .map(([parent, child]) => ({ parent: parent as number, child: child as number }));
  return {
    byKeys: async (keys) => access.byKeys(SHAPE, 'tasks.by_keys', keys),
    byId: async (id) => list('tasks.by_id', id)[0] ?? null,
    keysOf: async (ids) => access.rows<{ id: string; key: number }>('tasks.keys_of', JSON.stringify(ids)),
    byTaskIds: async (run_key, ids) => list('tasks.by_task_ids', run_key, JSON.stringify(ids)),
    ofRun: async (run_key, { after, limit }) => list('tasks.of_run', run_key, after, limit),
    nodesOf: async (run_key, { after, limit }) => list('tasks.nodes_of', run_key, after, limit),
    items: async ({ key }, { from, limit }) => list('tasks.items', key, from, limit),
    held: async ({ key }, limit) => list('tasks.held', key, limit),
    insert: async (added) => {
      const keys = access.insertKeyed(SHAPE, added);
      access.children?.add(keys);
      return keys;
    },
    save: async (changed) => {
      access.save(SHAPE, changed);
      for (const task of changed) if (isTerminal(task.status)) access.children?.remove(task.key);
    },
    childrenOf: async (parents, page) =>
      access.children?.of(parents, page) ??
      edges('tasks.children_of', JSON.stringify(parents), page.after, page.limit),
    prioritiesBelow: async (parent, limit) =>
      access.rows<{ priority: number }>('tasks.priorities_below', parent, limit).map((row) => row.priority),
    parentsOf: async (children) => edges('tasks.parents_of', JSON.stringify(children)),
    link: async (added) => {
      access.many('tasks.link', added);
      access.children?.link(added);
    },
    unfinished: async (run_key, { after, limit }) => list('tasks.unfinished', run_key, after, limit),
    ready: async (run_key, limit) => list('tasks.ready', run_key, limit),
    undecided: async (limit) => list('tasks.undecided', limit),
    expired: async (now, limit) => list('tasks.expired', now, limit),
    leasedBy: async (worker) => list('tasks.leased_by', worker),
    byClaim: async (claim_id) => list('tasks.by_claim', claim_id),
    asking: async ({ after, limit, run_key }) => list('tasks.asking', after, run_key ?? null, limit),
    dead: async ({ after, limit, run_key }) => list('tasks.dead', after, run_key ?? null, limit),
    limbo: async (limit) => list('tasks.limbo', limit),
  };
}
