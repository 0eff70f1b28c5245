/** Diamonds by one or several processes on one Postgres: from the word to start until the last run is over, seen from outside. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { Client } from 'pg';
import { createDatabase } from '../../test/support/postgres.ts';

const POLL_MS = 5;
const WARM_ROUNDS = 3;
const BUSY =
  "select count(*) as n from (select 1 from runs where status in ('PENDING', 'RUNNING') limit 1) busy";

/** Tasks per second of so many processes that share the same number of diamonds. */
export async function diamondsBy(processes: number, diamonds: number, server: string): Promise<number> {
  const { url, drop } = await createDatabase(server);
  const children: ChildProcess[] = [];
  // One after the other: the first one migrates.
  for (let n = 0; n < processes; n++) children.push(await start(diamonds / processes, url));
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    // The first rounds warm everything up: of two processes each does half of them.
    for (let warm = 1; warm <= WARM_ROUNDS; warm++) await round(children, client, diamonds * warm);
    return (diamonds * 4) / (await round(children, client, diamonds * (WARM_ROUNDS + 1)));
  } finally {
    await client.end();
    for (const child of children) child.stdin?.end();
    await Promise.all(children.map((child) => child.exitCode ?? once(child, 'exit')));
    await drop();
  }
}

async function start(diamonds: number, url: string): Promise<ChildProcess> {
  const program = join(import.meta.dirname, 'diamonds-process.mjs');
  const child = spawn(process.execPath, [program, String(diamonds), url], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  return child;
}

async function round(children: readonly ChildProcess[], client: Client, until: number): Promise<number> {
  const startedAt = performance.now();
  for (const child of children) child.stdin?.write('go\n');
  const ask = async (text: string): Promise<number> =>
    Number((await client.query<{ n: string }>(text)).rows[0]?.n);
  for (let done = 0; done < until; ) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    // Counting all runs again and again would take a share of what is measured.
    if ((await ask(BUSY)) === 0) done = await ask("select count(*) as n from runs where status = 'SUCCESS'");
  }
  return (performance.now() - startedAt) / 1_000;
}
