/** Grants that count in no window any more are removed; whoever counts never sees them, so that nothing depends on when. */
import { type LimitDefinition, toLimit } from '../domain/limits.ts';
import type { EngineContext } from './engine-context.ts';

/** Removes what has aged; returns how many grants there were. */
export async function ageGrants({ store, committer, clock }: EngineContext): Promise<number> {
  const now = clock.now();
  const aged = await store.read(async (tx) => {
    const found: { name: string; before: number; count: number }[] = [];
    for (const { name, definition } of await tx.limits.all()) {
      const { windows } = toLimit(JSON.parse(definition) as LimitDefinition);
      const before = now - Math.max(0, ...windows.map(({ ms }) => ms));
      found.push({ name, before, count: await tx.limits.aged(name, now, before) });
    }
    return found.filter(({ count }) => count > 0);
  });
  if (aged.length === 0) return 0;
  await committer.commit(async (work) => {
    for (const { name, before } of aged) await work.tx.limits.age(name, now, before);
  });
  return aged.reduce((sum, { count }) => sum + count, 0);
}
