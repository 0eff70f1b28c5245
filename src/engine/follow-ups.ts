/**
 * What a commit leaves to be done next: decisions that need templates, outputs of finished runs, unlocks and stops that go on in
 * chunks. All of it is written down in the store, so another process can take it over; doing it twice changes nothing.
 */
import { isStoreError, RelayError } from '../base/errors.ts';
import type { TaskFailure } from '../domain/failure.ts';
import type { CursorRow, RunRow, TaskRow } from '../stores/rows.ts';
import { TemplateError } from '../template/template.ts';
import { advance, cancelChunk, continueUnlock, moveCursor } from './advance.ts';
import { applyVerdict, decisionReferences, evaluate, type Verdict } from './decide.ts';
import type { EngineContext } from './engine-context.ts';
import { estimateBatch } from './estimate.ts';
import { continueExpansion, continueRetirement } from './expand.ts';
import { gather } from './gather.ts';
import { isExpanded } from './map-row.ts';
import { storeJson } from './payload.ts';
import type { Plan } from './plan.ts';
import { CHUNK } from './run-counters.ts';
import type { Work } from './work.ts';

const BATCH = 100;

/** Does a batch of everything that is left over; returns how much there was. */
export async function followUp(
  context: EngineContext,
): Promise<{ decided: number; estimated: number; finished: number; chunks: number }> {
  return {
    decided: await decideBatch(context),
    estimated: await estimateBatch(context),
    finished: await finishBatch(context),
    chunks: await continueCursor(context),
  };
}

interface KeyedVerdict {
  readonly key: number;
  readonly version: number;
  readonly verdict: Verdict;
}

async function decideBatch(context: EngineContext): Promise<number> {
  const tasks = await context.store.read((tx) => tx.tasks.undecided(BATCH));
  if (tasks.length === 0) return 0;
  const verdicts = await storeLists(context, await decideEach(context, tasks.filter(isOpen)));
  if (verdicts.length > 0) await context.committer.commit((work) => applyVerdicts(work, verdicts));
  // What keeps a map waiting keeps no other decision waiting.
  for (const map of tasks.filter((task) => !isOpen(task))) {
    const gathered = await gatherOrFail(context, map);
    await context.committer.commit((work) => applyVerdicts(work, [gathered]));
  }
  return tasks.length;
}

/** Something is to be decided; otherwise all items of a map have ended, and its output is to be put together. */
function isOpen(task: TaskRow): boolean {
  return !isExpanded(task);
}

/** A list is durable before anything refers to it. */
async function storeLists(context: EngineContext, verdicts: KeyedVerdict[]): Promise<KeyedVerdict[]> {
  const stored: KeyedVerdict[] = [];
  for (const each of verdicts) stored.push({ ...each, verdict: await storeList(context, each.verdict) });
  return stored;
}

async function storeList({ blobs }: EngineContext, verdict: Verdict): Promise<Verdict> {
  if (verdict.kind !== 'list') return verdict;
  try {
    const payload = await storeJson(verdict.items, blobs);
    return { kind: 'items', list: { size: verdict.items.length, slots: verdict.slots, payload } };
  } catch (error) {
    if (!(error instanceof RelayError) || isStoreError(error)) throw error;
    return { kind: 'fail', failure: templateFailure(`the list of \`for_each\`: ${error.message}`) };
  }
}

/** A map whose output cannot be put together fails alone. */
async function gatherOrFail(context: EngineContext, map: TaskRow): Promise<KeyedVerdict> {
  const { key, version } = map;
  try {
    return { key, version, verdict: { kind: 'gathered', end: await gather(context, map) } };
  } catch (error) {
    if (isStoreError(error)) throw error;
    context.logger.error('gather.failed', { task_run_id: map.id, error });
    const isTooLong = error instanceof RelayError && error.code === 'PAYLOAD_TOO_LARGE';
    const failure: TaskFailure = isTooLong
      ? { class: 'output', code: 'OUTPUT_TOO_LONG', message: error.message }
      : templateFailure(`the outputs of the items cannot be put together: ${messageOf(error)}`);
    return { key, version, verdict: { kind: 'fail', failure } };
  }
}

/** One task that cannot be decided fails alone and keeps nobody else waiting. */
async function decideEach(context: EngineContext, tasks: readonly TaskRow[]): Promise<KeyedVerdict[]> {
  try {
    return await decideTogether(context, tasks);
  } catch (error) {
    const [task] = tasks;
    if (isStoreError(error) || task === undefined) throw error;
    if (tasks.length > 1) {
      const verdicts: KeyedVerdict[] = [];
      for (const each of tasks) verdicts.push(...(await decideEach(context, [each])));
      return verdicts;
    }
    context.logger.error('decision.failed', { task_run_id: task.id, error });
    const failure = templateFailure(`the task cannot be decided: ${messageOf(error)}`);
    return [{ key: task.key, version: task.version, verdict: { kind: 'fail', failure } }];
  }
}

function decideTogether(context: EngineContext, tasks: readonly TaskRow[]): Promise<KeyedVerdict[]> {
  const { store, plans, scopes, clock, itemsMax } = context;
  return store.read(async (tx) => {
    const runs = new Map(
      (await tx.runs.byKeys([...new Set(tasks.map((task) => task.run_key))])).map((run) => [run.key, run]),
    );
    const open = [];
    for (const task of tasks) {
      const run = runs.get(task.run_key);
      if (run !== undefined) open.push({ task, run, planned: await plans.task(task, run, tx) });
    }
    const found = await scopes.build(
      tx,
      open.map((each) => ({ ...each, references: decisionReferences(each.planned, each.task) })),
    );
    return open.map(({ task, planned }, index) => ({
      key: task.key,
      version: task.version,
      verdict: evaluate(planned, found[index] ?? {}, {
        decided: task.gate,
        now: clock.now(),
        isItem: task.map_key !== null,
        itemsMax,
      }),
    }));
  });
}

async function applyVerdicts(work: Work, verdicts: readonly KeyedVerdict[]): Promise<void> {
  const tasks = new Map((await work.tasks(verdicts.map(({ key }) => key))).map((task) => [task.key, task]));
  for (const { key, version, verdict } of verdicts) {
    const task = tasks.get(key);
    // Somebody else was faster, or the task was cancelled meanwhile.
    if (task === undefined || task.undecided === 0 || task.version !== version) continue;
    applyVerdict(work, task, verdict);
  }
  await advance(work);
}

async function finishBatch(context: EngineContext): Promise<number> {
  const { store, plans } = context;
  const results = await store.read(async (tx) => {
    const runs = await tx.runs.finishing(BATCH);
    const list = [];
    for (const run of runs) {
      const plan = await plans.of(run, tx);
      if (plan !== null) list.push({ key: run.key, ...(await outputsOrFailure(context, tx, { run, plan })) });
    }
    return list;
  });
  if (results.length > 0) {
    await context.committer.commit(async (work) => {
      const runs = new Map((await work.runs(results.map(({ key }) => key))).map((run) => [run.key, run]));
      for (const { key, outputs, failure } of results) {
        const run = runs.get(key);
        if (run === undefined || run.finishing === 0) continue;
        run.outputs = JSON.stringify(outputs);
        if (failure !== null) {
          run.error = JSON.stringify(failure);
          // A run that failed anyway keeps its own reason.
          if (run.n_failed === 0) run.stop_reason ??= 'outputs';
        }
        work.changeRun(run);
      }
    });
  }
  return results.length;
}

/** A run whose outputs cannot be worked out fails alone and keeps no other from ending. */
async function outputsOrFailure(
  ...[context, tx, subject]: Parameters<typeof workOutOutputs>
): ReturnType<typeof workOutOutputs> {
  try {
    return await workOutOutputs(context, tx, subject);
  } catch (error) {
    context.logger.error('outputs.failed', { run_id: subject.run.id, error });
    const failure = templateFailure(`the outputs cannot be worked out: ${messageOf(error)}`);
    return { outputs: {}, failure };
  }
}

function templateFailure(message: string): TaskFailure {
  return { class: 'template', code: 'TEMPLATE_FAILED', message };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Every output by itself: null where a task it names did not succeed, an error where the template is wrong (SPEC S1.2). */
async function workOutOutputs(
  { scopes }: EngineContext,
  tx: Parameters<Parameters<EngineContext['store']['read']>[0]>[0],
  { run, plan }: { run: RunRow; plan: Plan },
): Promise<{ outputs: Record<string, unknown>; failure: TaskFailure | null }> {
  const references = [...plan.outputs.values()].flatMap((value) => value.references);
  const { scope, tasks } = await scopes.ofRun(tx, run, references);
  const succeeded = new Set(tasks.filter((task) => task.status === 'SUCCESS').map((task) => task.task_id));
  const outputs: Record<string, unknown> = {};
  let failure: TaskFailure | null = null;
  for (const [name, value] of plan.outputs) {
    const named = value.references.filter(({ root, path }) => root === 'tasks' && path[1] === 'output');
    outputs[name] = null;
    if (!named.every(({ path }) => succeeded.has(String(path[0])))) continue;
    try {
      outputs[name] = value.render(scope) ?? null;
    } catch (error) {
      if (!(error instanceof TemplateError)) throw error;
      failure ??= templateFailure(`outputs.${name}: ${error.message}`);
    }
  }
  return { outputs, failure };
}

/** One chunk of the oldest cursor. */
async function continueCursor(context: EngineContext): Promise<number> {
  const { committer, store } = context;
  // An idle engine must not take the write lock every second just to find nothing.
  if ((await store.read((tx) => tx.cursors.first(1))).length === 0) return 0;
  return committer.commit(async (work) => {
    const [cursor] = await work.tx.cursors.first(1);
    if (cursor === undefined) return 0;
    const [run] = await work.runs([cursor.run_key]);
    await moveCursor(
      work,
      cursor,
      run === undefined ? null : await continueOne(context, work, { run, cursor }),
    );
    await advance(work);
    work.aftermath.hasCursors = true;
    return 1;
  });
}

/** Returns where the cursor stands now, or null when it is done. */
async function continueOne(
  { plans, itemsChunk: chunk }: EngineContext,
  work: Work,
  { run, cursor }: { run: RunRow; cursor: CursorRow },
): Promise<number | null> {
  const { kind, position } = cursor;
  if (kind === 'stop' || kind === 'cancel') return cancelChunk(work, run, position);
  // Whoever continues a cursor admits afterwards.
  if (kind === 'admit') return null;
  const [task] = await work.tasks([cursor.subject]);
  if (task === undefined) return null;
  if (kind === 'unlock') return continueUnlock(work, task, { after: position, limit: CHUNK });
  if (kind === 'retire') return continueRetirement(work, task, { position, chunk });
  const planned = await plans.task(task, run, work.tx);
  return continueExpansion(work, task, { position, chunk, planned });
}
