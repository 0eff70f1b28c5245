/**
 * Relay inside a program of your own: a handler, a workflow that uses it, and the result. Everything is durable: a program that dies
 * half-way carries its runs on when it opens the same store again.
 *
 * Try it with `npx tsx examples/typescript/embed.ts`. In a project of your own the import is `from 'relay'`.
 */
import { argv } from 'node:process';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { defineHandler, openRelay, TerminalError, workflow } from '../../src/index.ts';

/** A handler is a name, a schema for its `with`, and a function. */
const tide = defineHandler({
  name: 'tide',
  summary: 'Gives the height of the water at an hour.',
  config: z.strictObject({ hour: z.number() }),
  run: async ({ config, log }) => {
    // Another try would not help, so there is none.
    if (config.hour < 0 || config.hour > 24) throw new TerminalError(`a day has no hour ${config.hour}`);
    log(`looking at ${config.hour}:00`);
    return Math.round(300 + 200 * Math.cos((config.hour / 12.42) * 2 * Math.PI));
  },
});

const harbour = workflow({
  name: 'harbour',
  handlers: ['tide'],
  inputs: { hour: { type: 'number', default: 6 } },
  tasks: {
    now: { uses: 'tide', with: { hour: '{{ inputs.hour }}' } },
    later: { uses: 'tide', with: { hour: '{{ inputs.hour + 6 }}' } },
    trend: {
      needs: ['now', 'later'],
      uses: 'transform',
      with: { value: "{{ 'rising' if tasks.later.output > tasks.now.output else 'falling' }}" },
    },
  },
  outputs: { trend: '{{ tasks.trend.output }}', height_cm: '{{ tasks.now.output }}' },
});

/** Runs the workflow once on a store and gives its outputs. */
export async function trendAt(hour: number, store: string): Promise<unknown> {
  const relay = await openRelay({ store, handlers: [tide] });
  try {
    const run = await relay.run(harbour, { inputs: { hour } });
    const { status, outputs, tasks } = await run.result();
    if (status === 'SUCCESS') return outputs;
    return { status, errors: tasks.flatMap(({ error }) => error ?? []) };
  } finally {
    await relay.close();
  }
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  process.stdout.write(`${JSON.stringify(await trendAt(6, 'sqlite:.relay/embed.db'))}\n`);
}
