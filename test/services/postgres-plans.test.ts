/** Hot statements have one plan, whatever the planner believes: also when statistics were taken while the tables were empty. */
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { SESSION_SETTINGS } from '../../src/stores/postgres/connections.ts';
import { PostgresStore } from '../../src/stores/postgres/postgres-store.ts';
import { updateStatements } from '../../src/stores/postgres/row-statements.ts';
import { readStatements } from '../../src/stores/statements.ts';
import { createDatabase } from '../support/postgres.ts';

const place = inject('postgres');
const skipped = 'reason' in place ? `, skipped: ${place.reason}` : '';

const HOT_TABLES = new Set([
  'runs',
  'task_runs',
  'edges',
  'claimable',
  'leases',
  'task_marks',
  'attempts',
  'artifacts',
  'timers',
  'attempt_logs',
  'context_snapshots',
  'limit_grants',
  'held_tasks',
]);
const HOT_STATEMENTS = [
  'runs.by_keys',
  'runs.lock',
  'runs.lock_free',
  'runs.expect',
  'runs.touch',
  'runs.by_id',
  'runs.list',
  'runs.list_by_status',
  'runs.list_by_workflow',
  'tasks.by_keys',
  'tasks.by_id',
  'tasks.by_task_ids',
  'tasks.of_run',
  'tasks.nodes_of',
  'tasks.items',
  'tasks.held',
  'tasks.unfinished',
  'tasks.ready',
  'tasks.children_of',
  'tasks.children_rows',
  'tasks.priorities_below',
  'tasks.parents_of',
  'tasks.undecided',
  'tasks.by_claim',
  'tasks.limbo',
  'claimable.peek',
  'claimable.peek_locked',
  'claimable.remove',
  'timers.due',
  'timers.remove',
  'attempts.find',
  'attempts.acknowledge',
  'artifacts.find',
  'leases.add',
  'leases.change',
  'leases.remove',
  'marks.remove',
  'events.page_of_run',
  'logs.page',
  'logs.page_of_run',
  'contexts.of_run',
  'runs.blobs',
  'runs.remove_marks',
  'cursors.of_run',
  'limits.use',
  'limits.settle',
  'limits.free',
  'limits.aged',
  'limits.age',
  'held.limits',
  'held.first',
  'held.first_locked',
  'held.of_run',
  'held.remove',
  'tasks.keys_of',
  'outbox.take',
  'outbox.drop_marks',
  'outbox.drop_stale',
  'outbox.lock_owned',
  'outbox.mark',
  'outbox.remove',
  'outbox.defer',
  'outbox.bury',
];

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Cond'?: string;
  readonly 'Index Name'?: string;
  readonly Plans?: readonly PlanNode[];
}

describe.skipIf(skipped !== '')(`postgres: plans${skipped}`, () => {
  let client: Client;
  let drop: () => Promise<void>;

  beforeAll(async () => {
    const database = await createDatabase('url' in place ? place.url : '');
    drop = database.drop;
    const store = new PostgresStore({ url: database.url });
    await store.migrate();
    await store.close();
    client = new Client({ connectionString: database.url });
    await client.connect();
    // The trap: a planner that has seen the tables empty.
    await client.query('analyze');
    for (const [name, value] of Object.entries(SESSION_SETTINGS))
      await client.query('select set_config($1, $2, false)', [name, value]);
  });
  afterAll(async () => {
    await client?.end();
    await drop?.();
  });

  const planOf = async (text: string): Promise<PlanNode> => {
    const count = Math.max(0, ...[...text.matchAll(/\$(\d+)/g)].map((match) => Number(match[1])));
    await client.query(`prepare p as ${text}`);
    const nulls = count === 0 ? '' : `(${Array.from({ length: count }, () => 'null').join(', ')})`;
    const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(
      `explain (format json) execute p${nulls}`,
    );
    await client.query('deallocate p');
    const [{ Plan }] = rows[0]?.['QUERY PLAN'] ?? [{ Plan: { 'Node Type': 'none' } }];
    return Plan;
  };
  const walksOf = async (text: string): Promise<string[]> =>
    [...nodes(await planOf(text))]
      .filter((node) => HOT_TABLES.has(node['Relation Name'] ?? '') && node['Node Type'].endsWith(' Scan'))
      .filter((node) => node['Node Type'] !== 'Tid Scan' && node['Index Cond'] === undefined)
      .map((node) => `${node['Node Type']} over all of ${node['Relation Name']}`);

  const texts = readStatements('postgres');
  it.each(HOT_STATEMENTS)('%s finds its rows by index', async (name) => {
    expect(await walksOf((texts.get(name) ?? '').replace(/;$/, ''))).toEqual([]);
  });

  it.each(['status', 'workflow'])('runs are listed by %s along its own index', async (filter) => {
    const text = (texts.get(`runs.list_by_${filter}`) ?? '').replace(/;$/, '');
    const used = [...nodes(await planOf(text))].map((node) => node['Index Name']).filter(Boolean);
    expect(used).toEqual([`runs_by_${filter}`]);
  });

  it('updates that are put together find their rows by index', async () => {
    const columns = ['key', 'status', 'version', 'error'];
    const row = (key: number, version: number, error: string) => ({
      key,
      list: [key, 'SUCCESS', version, error],
      changed: 0b111,
    });
    const groups = [[row(1, 1, 'a')], [row(1, 1, 'a'), row(2, 1, 'a')], [row(1, 1, 'a'), row(2, 2, 'b')]];
    for (const group of groups)
      for (const { text } of updateStatements({ table: 'task_runs', columns, changing: [1, 2, 3] }, group))
        expect(await walksOf(text)).toEqual([]);
  });
});

function* nodes(node: PlanNode): Generator<PlanNode> {
  yield node;
  for (const child of node.Plans ?? []) yield* nodes(child);
}
