/** Whether a worker is what a task asks for (SPEC S1.2 `worker`): its pool, its labels, its resources. Pure. */

/** What a worker offers beyond its handlers. */
export interface WorkerFit {
  readonly pool?: string | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly resources?: Readonly<Record<string, number>> | undefined;
}

interface Wanted {
  readonly pool?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly resources?: Readonly<Record<string, number>>;
}

/** Compares the JSON of a queue's requirements with a worker; a task that asks for nothing fits every worker. */
export function fitsWorker(wanted: string, { pool, labels = {}, resources = {} }: WorkerFit): boolean {
  if (wanted === '{}') return true;
  const asked = JSON.parse(wanted) as Wanted;
  return (
    (asked.pool === undefined || asked.pool === pool) &&
    Object.entries(asked.labels ?? {}).every(([name, value]) => labels[name] === value) &&
    Object.entries(asked.resources ?? {}).every(([name, least]) => (resources[name] ?? 0) >= least)
  );
}
