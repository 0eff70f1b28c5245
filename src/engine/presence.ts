/** Which processes hold leases, so that those of a process proven dead on this host are freed at once (SPEC S6.2, I12). */
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import type { WorkerRow } from '../stores/rows.ts';
import type { EngineContext } from './engine-context.ts';
import { expire } from './reap.ts';

/** Who this process is: host, pid, and when it started, because pids are used again. */
export function processIdentity(): Pick<WorkerRow, 'host' | 'pid' | 'process_start'> {
  return { host: hostIdentity(), pid: process.pid, process_start: startOf(process.pid) };
}

/** The machine and its boot; after a restart every process of before is gone. */
function hostIdentity(): string {
  return `${hostname()}/${readText('/proc/sys/kernel/random/boot_id') ?? 'unknown'}`;
}

/** The start time of a process as the kernel counts it, where it can be read. */
function startOf(pid: number): string | null {
  const stat = readText(`/proc/${pid}/stat`);
  // The name in parentheses may hold spaces; the start is the 20th field after it.
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null;
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return null;
  }
}

/** True only when it is certain: same host, and no process with that pid and start. */
export function isProvenDead(worker: Pick<WorkerRow, 'host' | 'pid' | 'process_start'>): boolean {
  const here = hostIdentity();
  if (worker.host !== here) {
    const [name, boot] = worker.host.split('/');
    const [ownName, ownBoot] = here.split('/');
    return name === ownName && boot !== ownBoot && boot !== 'unknown' && ownBoot !== 'unknown';
  }
  try {
    process.kill(worker.pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
  const start = startOf(worker.pid);
  return start !== null && worker.process_start !== null && start !== worker.process_start;
}

/** Frees the leases of dead processes; returns how many there were. */
export async function freeDeadWorkers(context: EngineContext): Promise<number> {
  const workers = await context.store.read((tx) => tx.workers.list());
  const dead = workers.filter(isProvenDead);
  if (dead.length === 0) return 0;
  return context.committer.commit(async (work) => {
    let freed = 0;
    for (const { id } of dead) {
      freed += await expire(work, await work.adopt(await work.tx.tasks.leasedBy(id)), context.random);
      await work.tx.workers.remove(id);
    }
    return freed;
  });
}
