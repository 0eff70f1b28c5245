/** `relay outbox` (SPEC S10.3, S10.7): flags that make no sense, and what is done about dead letters. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { canonical } from '../../../test/support/harness.ts';
import { MemoryBroker } from '../../../test/support/memory-broker.ts';
import { relay as call } from '../../../test/support/memory-io.ts';
import { LocalRelay } from '../../app/local-relay.ts';
import { systemClock } from '../../base/clock.ts';
import { RELAY_DEFAULTS } from '../../domain/relay-settings.ts';
import { OutboxRelay } from '../../engine/outbox-relay.ts';

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'relay-outbox-'));
});
afterEach(() => rmSync(cwd, { recursive: true, force: true }));

/** Nothing listens there. */
const BROKER = 'redis://127.0.0.1:1';
const relay = (...argv: readonly string[]) => call(['outbox', ...argv], { cwd });
const json = async <T>(...argv: readonly string[]): Promise<T> =>
  JSON.parse((await relay(...argv, '--json')).out) as T;

/** Two tasks whose messages a broker has refused for good. */
async function leaveTwoDead(): Promise<void> {
  const local = await LocalRelay.open({
    data: join(cwd, '.relay'),
    broker: BROKER,
    cwd,
    env: {},
    by: 'test',
    log: 'silent',
    writeLog: () => {},
  });
  const workflow = await canonical({ name: 'two', tasks: { a: {}, b: {} } });
  await local.engine.startRun({ workflow }, { caller: 'test' });
  const broker = new MemoryBroker();
  broker.script = () => ({ kind: 'rejected', error: 'WRONGTYPE not a stream' });
  const settings = { ...RELAY_DEFAULTS, maxRetries: 1, backoffTimeMs: 1 };
  const sender = new OutboxRelay({
    store: local.store,
    broker,
    clock: systemClock,
    logger: local.logger,
    settings,
  });
  for (let dead = 0; dead < 2; ) dead += (await sender.runOnce()).dead;
  await local.close();
}

describe('relay outbox', () => {
  // SPEC S10.3
  it.each([
    ['--batch-size', 'NaN'],
    ['--batch-size', '0'],
    ['--publish-concurrency', '-1'],
    ['--max-retries', 'Infinity'],
    ['--idle-time', '0s'],
    ['--send-timeout', 'NaN'],
    ['--stale-timeout', '-5s'],
    ['--broker-outage-cooldown', 'Infinity'],
    ['--send-timeout', '300s'],
  ])('%s %s is refused', async (flag, value) => {
    const { code, err } = await relay(`${flag}=${value}`, '--broker', BROKER);
    expect(code).toBe(2);
    expect(err).toContain(flag);
  });

  // SPEC S10.3
  it('needs a broker, and a liveness file that can be written', async () => {
    expect((await relay()).err).toContain('--broker');
    const { code, err } = await relay('--broker', BROKER, '--liveness-file', '/proc/none/alive');
    expect(code).toBe(2);
    expect(err).toContain('cannot be written');
  });

  // SPEC S10.7
  it('counts, lists, replays and purges dead letters, and says beforehand what it would do', async () => {
    expect(await json('stats')).toMatchObject({ depth: 0, dead: 0, oldest_ms: null });
    expect((await relay('dead-letters')).out).toBe('No dead letters.\n');
    await leaveTwoDead();
    expect(await json('stats')).toMatchObject({ depth: 0, dead: 2 });
    const { items } = await json<{ items: { id: string; task_id: string; last_error: string }[] }>(
      'dead-letters',
    );
    expect(items.map(({ task_id }) => task_id)).toEqual(['a', 'b']);
    expect(items[0]?.last_error).toBe('WRONGTYPE not a stream');
    expect((await relay('dead-letters')).out).toContain('WRONGTYPE not a stream');
    const [first, second] = items.map(({ id }) => id);
    expect(await json('replay', '--all', '--dry-run')).toMatchObject({
      items: [first, second],
      dry_run: true,
    });
    expect(await json('purge', '--all')).toMatchObject({ items: [first, second], dry_run: true });
    expect(await json('stats')).toMatchObject({ depth: 0, dead: 2 });
    expect((await relay('replay', first ?? '')).out).toContain('1 dead letter');
    expect(await json('stats')).toMatchObject({ depth: 1, dead: 1 });
    expect((await relay('purge', '--all', '--yes')).out).toBe('1 dead letter taken off the list\n');
    expect(await json('stats')).toMatchObject({ depth: 1, dead: 0 });
  });

  // SPEC S10.7
  it('asks which dead letters are meant', async () => {
    expect((await relay('replay')).err).toContain('--all');
    expect((await relay('purge', 'x', '--yes')).code).toBe(2);
  });
});
