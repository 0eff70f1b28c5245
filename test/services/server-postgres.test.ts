/** Several servers on one Postgres (SPEC S13.2, DESIGN "Growing past one machine"): each serves everything, none gets in another's way. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { createClient, follow, ROUTES } from '../../client/src/index.ts';
import { type Running, start, startServer, tokenOf } from '../support/server-process.ts';

const place = inject('postgres');
const DATABASE = 'relay_servers';
let cwd: string;
const processes: Running[] = [];

beforeAll(async () => {
  cwd = mkdtempSync(join(tmpdir(), 'relay-servers-'));
  if ('reason' in place) return;
  const admin = new Client({ connectionString: place.url });
  await admin.connect();
  await admin.query(`create database ${DATABASE}`);
  await admin.end();
});
afterAll(async () => {
  for (const { process: child } of processes) child.kill('SIGKILL');
  await Promise.all(processes.map(({ ended }) => ended));
  rmSync(cwd, { recursive: true, force: true });
});

describe.skipIf('reason' in place)('two servers on one Postgres', () => {
  it('share runs, workers and events, and one goes on when the other is killed', async () => {
    const url = new URL('url' in place ? place.url : '');
    url.pathname = DATABASE;
    const argv = ['--port', '0', '--store', url.href];
    const first = await startServer(cwd, argv);
    processes.push(first);
    const second = await startServer(cwd, argv);
    processes.push(second, start(['worker', '--server', second.url], { cwd }));
    const token = tokenOf(cwd);
    const clients = [first, second].map((server) => createClient({ url: server.url, token }));
    const [one, two] = clients;
    if (one === undefined || two === undefined) return;
    const leaving = new AbortController();
    const created = follow(two.http, ROUTES.events.page, {
      query: { types: 'run.created', after: '0' },
      signal: leaving.signal,
    });
    const tasks = Object.fromEntries(
      Array.from({ length: 30 }, (_, n) => [
        `t${n}`,
        { uses: 'shell', with: { run: ['sh', '-c', `echo ${n}`] } },
      ]),
    );
    const ids = await Promise.all(
      Array.from({ length: 6 }, async (_, n) => {
        const started = await (n % 2 === 0 ? one : two).runs.start({ definition: { name: 'both', tasks } });
        return started.id;
      }),
    );
    const seen = new Set<string>();
    for await (const { data } of created) {
      seen.add((JSON.parse(data) as { run_id: string }).run_id);
      if (ids.every((id) => seen.has(id))) break;
    }
    leaving.abort();
    first.process.kill('SIGKILL');
    await first.ended;
    for (const id of ids) {
      const run = await two.runs
        .get(id, { wait_ms: 60_000 })
        .then((early) => (early.status === 'RUNNING' ? two.runs.get(id, { wait_ms: 60_000 }) : early));
      expect(run.status).toBe('SUCCESS');
      const { items } = await two.events.page({ run_id: id, types: ['task.completed'], limit: 1_000 });
      expect(items).toHaveLength(30);
    }
    for (const client of clients) client.close();
  });
});
