/**
 * The no-limbo sweep (SPEC S3.4, I6): looks for unfinished tasks that nothing would ever move. Finding one means a bug somewhere,
 * so it is always told; it is mended only where a move of the table, or the row that a state calls for, gets it going again.
 */
import { isTerminal } from '../domain/states.ts';
import type { TaskRow } from '../stores/rows.ts';
import { admit, advance, badEnd, becomeEligible } from './advance.ts';
import type { EngineContext } from './engine-context.ts';
import { isExpanded, recountItems } from './map-row.ts';
import type { Work } from './work.ts';

const BATCH = 100;

/** Reports what is in limbo and mends it; returns how many rows were mended. */
export async function sweepLimbo(context: EngineContext): Promise<number> {
  const { store, committer, logger } = context;
  const found = await store.read((tx) => tx.tasks.limbo(BATCH));
  if (found.length === 0) return 0;
  const mended = await committer.commit(async (work) => {
    let count = 0;
    for (const task of await work.adopt(await work.tx.tasks.limbo(BATCH))) {
      const { id: task_run_id, task_id, status, run_key } = task;
      const cure = await mend(context, work, task);
      logger.error('limbo.found', { task_run_id, task_id, status, run_key, cure });
      if (cure !== 'none') count += 1;
    }
    await advance(work);
    return count;
  });
  return mended;
}

/** Gets one task going again; says how, or `none`. */
async function mend(context: EngineContext, work: Work, task: TaskRow): Promise<string> {
  switch (task.status) {
    case 'PENDING':
      return mendPending(work, task);
    case 'READY':
      work.letGo(task);
      await admit(work);
      return 'admitted';
    case 'QUEUED':
      return mendQueued(context, work, task);
    default:
      // A question that is lost cannot be asked again by anybody but its worker.
      return 'none';
  }
}

/** A delayed task gets its timer again; any other its place in the queue. */
async function mendQueued(context: EngineContext, work: Work, task: TaskRow): Promise<string> {
  const run = work.runOf(task);
  if (task.in_queue === 0 && task.not_before !== null) {
    const { settledBy } = await context.plans.task(task, run, work.tx);
    const kind = settledBy === 'timer' ? 'wait' : 'retry';
    work.addTimer({ due_at: task.not_before, kind, subject: task.key });
    return 'timer added';
  }
  if (task.in_queue === 1) run.n_queued -= 1;
  work.makeClaimable(task);
  return 'queued again';
}

/** Counts the parents afresh; all of them are over, or the row would not have been found. */
async function mendPending(work: Work, task: TaskRow): Promise<string> {
  if (isExpanded(task)) return mendMap(work, task);
  const edges = await work.tx.tasks.parentsOf([task.key]);
  const parents = await work.tasks(edges.map((edge) => edge.parent));
  task.deps_remaining = parents.filter((parent) => !isTerminal(parent.status)).length;
  task.deps_ok = parents.filter((parent) => parent.status === 'SUCCESS').length;
  work.change(task);
  const bad = parents.flatMap((parent) => badEnd(parent) ?? [])[0];
  if (bad !== undefined && task.is_finally === 0) {
    work.move(task, 'SKIPPED', { event: 'task.skipped', reason: bad });
    return 'skipped';
  }
  if (task.deps_remaining > 0) return 'counted again';
  becomeEligible(work, task, parents.length > 0);
  return 'advanced';
}

/** Counts the items afresh; all that exist are over, or the row would not have been found. Those that are missing are made. */
async function mendMap(work: Work, map: TaskRow): Promise<string> {
  const items = await work.tx.tasks.items(map, { from: 0, limit: map.map_size ?? 0 });
  recountItems(work, map, items);
  return map.deps_remaining > 0 ? 'items made' : 'items counted again';
}
