/** Workers, tokens and numbers of an engine in this process. */
import { RelayError } from '../base/errors.ts';
import { type LimitDefinition, toLimit } from '../domain/limits.ts';
import { createToken, toTokenView } from '../engine/tokens.ts';
import type { RelayApi } from './api.ts';
import type { Local } from './local-api.ts';
import * as views from './views.ts';

/** The part of the API that is about workers. */
export function workersApi({ engine }: Local): RelayApi['workers'] {
  const { store } = engine.context;
  const list = async () => (await store.read((tx) => tx.workers.list())).map(views.workerView);
  return {
    list: async () => ({ items: await list(), next_cursor: null }),
    drain: async (id) => {
      await engine.remote.drain(id);
      const worker = (await list()).find((each) => each.id === id);
      if (worker === undefined) throw new RelayError('NOT_FOUND', `there is no worker ${id}`);
      return worker;
    },
  };
}

/** The part of the API that is about tokens. */
export function tokensApi({ engine }: Local): RelayApi['tokens'] {
  const { store, committer, clock } = engine.context;
  return {
    list: async () => {
      const rows = await store.read((tx) => tx.tokens.list());
      return { items: rows.map(toTokenView), next_cursor: null };
    },
    create: async ({ name, scopes }) => {
      const { row, token } = createToken({ name, scopes, now: clock.now() });
      await committer.commit((work) => work.tx.tokens.insert(row));
      return { ...toTokenView(row), token };
    },
    revoke: async (id) => {
      const row = await committer.commit(async (work) => {
        await work.tx.tokens.revoke(id, work.now);
        return (await work.tx.tokens.list()).find((each) => each.id === id);
      });
      if (row === undefined) throw new RelayError('NOT_FOUND', `there is no token ${id}`);
      return toTokenView(row);
    },
  };
}

/** The part of the API that is about named limits. */
export function limitsApi({ engine }: Local): RelayApi['limits'] {
  const { store, clock } = engine.context;
  return {
    list: () =>
      store.read(async (tx) => {
        const now = clock.now();
        const waiting = new Map((await tx.held.counts()).map(({ place, n }) => [place, n]));
        const items = [];
        for (const row of await tx.limits.all()) {
          const limit = toLimit(JSON.parse(row.definition) as LimitDefinition);
          const asked = [...limit.windows.map(({ ms }) => now - ms), now];
          const used = await tx.limits.use(
            asked.map((since) => [row.name, since] as const),
            now,
          );
          items.push(views.limitView(row, { limit, used, now, waiting: waiting.get(row.name) ?? 0 }));
        }
        return { items, next_cursor: null };
      }),
  };
}

/** The part of the API that counts. */
export function statsApi({ engine }: Local): RelayApi['stats'] {
  const { store, clock } = engine.context;
  return {
    get: () =>
      store.read(async (tx) => {
        const { oldest_at, ...counts } = await tx.stats.handOut(clock.now());
        const runs = Object.fromEntries((await tx.stats.runs()).map(({ status, n }) => [status, n]));
        const workers = (await tx.workers.list()).length;
        return {
          ...counts,
          runs,
          workers,
          oldest_queued_ms: oldest_at === null ? null : Math.max(0, clock.now() - oldest_at),
        };
      }),
  };
}
