/** I13 as a naive recount: limits and budgets from leases and held rows, with no help from the engine's own bookkeeping. */
import { type LimitDefinition, toLimit } from '../../src/domain/limits.ts';
import type { RunRow, TaskRow } from '../../src/stores/rows.ts';
import type { Store, Tx } from '../../src/stores/store.ts';

const EVERYTHING = 1_000_000;
const NOT_YET = Number.MAX_SAFE_INTEGER;
const LEASED = new Set(['LEASED', 'RUNNING']);

interface Wishes {
  readonly place: string | null;
  readonly shares: readonly { readonly limit: string }[];
  readonly reserved: { readonly tokens: number; readonly cost_usd: number } | null;
}

/** Whether a limit or a budget holds a task back. */
export function isHeldBack({ status, waiting_for }: TaskRow): boolean {
  return status === 'READY' && (waiting_for === 'limit' || waiting_for === 'budget');
}

/** Everything that is wrong with the limits of a store at a time, in words. */
export async function brokenLimits(store: Store, now: number): Promise<string[]> {
  return store.read(async (tx) => {
    const tasks: TaskRow[] = [];
    // Only runs that go on have leases.
    for (const status of ['PENDING', 'RUNNING', 'WAITING'])
      for (const run of await tx.runs.list({ status, limit: EVERYTHING }))
        tasks.push(...(await tx.tasks.ofRun(run.key, { after: 0, limit: EVERYTHING })));
    const problems: string[] = [];
    for (const { name, definition } of await tx.limits.all()) {
      const { concurrency, windows } = toLimit(JSON.parse(definition) as LimitDefinition);
      const asked = [now, ...windows.map(({ ms }) => now - ms)].map((since) => [name, since] as const);
      const used = await tx.limits.use(asked, now);
      const slots = used[0]?.slots ?? 0;
      if (concurrency !== null && slots > concurrency)
        problems.push(`I13 ${slots} are inside ${name}, which has room for ${concurrency}`);
      for (const { unit, max, ms } of windows) {
        const spent = used.find(({ since }) => since === now - ms)?.[unit] ?? 0;
        if (spent > max) problems.push(`I13 ${name} let ${spent} ${unit} through in ${ms} ms, not ${max}`);
      }
      // A slot without an end belongs to a lease, and the other way round: nothing leaks.
      const open = (await tx.limits.use([[name, now]], NOT_YET - 1))[0]?.slots ?? 0;
      const holders = tasks.filter(
        (task) => LEASED.has(task.status) && wishesOf(task).shares.some(({ limit }) => limit === name),
      );
      if (open !== holders.length)
        problems.push(`I13 ${name} has ${open} open slots for ${holders.length} leases`);
    }
    return problems;
  });
}

/** Everything that is wrong with one run's reservations and held tasks. */
export async function brokenHolds(tx: Tx, run: RunRow, tasks: readonly TaskRow[]): Promise<string[]> {
  const problems: string[] = [];
  const places = [...(await tx.limits.all()).map(({ name }) => name), ':estimate', ':budget'];
  const rows = [];
  for (const place of places) rows.push(...(await tx.held.ofRun(run.key, place, EVERYTHING)));
  for (const task of tasks) {
    const { place, shares, reserved } = wishesOf(task);
    const own = rows.filter((row) => row.task_key === task.key);
    const right = isHeldBack(task)
      ? own.length === 1 && own[0]?.place === place && own[0]?.queue_key === task.queue_key
      : own.length === 0 && place === null;
    if (!right)
      problems.push(`I6 ${task.task_id} (${task.status}) at ${place} is held by ${JSON.stringify(own)}`);
    if (!LEASED.has(task.status) && (shares.length > 0 || reserved !== null))
      problems.push(`I13 ${task.task_id} (${task.status}) keeps what it was granted`);
  }
  const live = tasks.map((task) => wishesOf(task).reserved).filter((reserved) => reserved !== null);
  const sum = (of: (amount: { tokens: number; cost_usd: number }) => number): number =>
    live.reduce((total, amount) => total + of(amount), 0);
  const said = JSON.parse(run.reserved ?? '{"tokens":0,"cost_usd":0}') as {
    tokens: number;
    cost_usd: number;
  };
  if (said.tokens !== sum(({ tokens }) => tokens))
    problems.push(
      `I13 the run says ${said.tokens} tokens are reserved, recounted ${sum(({ tokens }) => tokens)}`,
    );
  if (Math.abs(said.cost_usd - sum(({ cost_usd }) => cost_usd)) > 1e-6)
    problems.push(`I13 the run says ${said.cost_usd} USD are reserved`);
  return problems;
}

function wishesOf(task: TaskRow): Wishes {
  const none: Wishes = { place: null, shares: [], reserved: null };
  return task.limits === null ? none : (JSON.parse(task.limits) as Wishes);
}
