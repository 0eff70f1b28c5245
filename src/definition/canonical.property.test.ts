/** Random valid workflows: however written, the canonical form is a fixed point with one hash (SPEC S1.1). */
import { describe, expect, it } from 'vitest';
import { fc } from '../../test/support/property.ts';
import { formatDuration, parseDuration } from '../base/duration.ts';
import { BUILT_IN_HANDLERS } from '../handlers/registry.ts';
import { checkWorkflowText, checkWorkflowValue, requireWorkflow } from './load.ts';
import { hashWorkflow } from './workflow.ts';
import { toYaml } from './yaml-text.ts';

const options = { handlers: BUILT_IN_HANDLERS };
const optional = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(arbitrary, { nil: undefined, freq: 2 });

/** The same length in a spelling that need not be the canonical one. */
const duration = fc
  .integer({ min: 1, max: 500_000_000 })
  .chain((ms) => fc.constantFrom(`${ms}ms`, `${ms * 60}s`, `${ms % 1000 || 1}m`, formatDuration(ms)))
  .filter((text) => parseDuration(text) !== null);
const text = fc.string({ maxLength: 12, unit: 'grapheme' }).filter((value) => !/\{[{%#]/.test(value));
const json = fc
  .jsonValue({ maxDepth: 3 })
  .filter((value) => !/\{[{%#]|__proto__/.test(JSON.stringify(value)));
const retry = fc.record(
  {
    max_attempts: fc.integer({ min: 1, max: 9 }),
    initial: duration,
    factor: fc.double({ min: 1, max: 9, noNaN: true }),
    on_output_error: fc.boolean(),
  },
  { requiredKeys: [] },
);
const shared = { timeout: duration, priority: fc.integer({ min: -9, max: 9 }), retry };

/** Task number `index`: it may need and refer to earlier ones only, so there is never a circle. */
function taskOf(index: number, ids: readonly string[]): fc.Arbitrary<object> {
  const earlier = ids.slice(0, index);
  const needs =
    earlier.length === 0
      ? fc.constant([])
      : fc.oneof(fc.constantFrom(...earlier), fc.array(fc.constantFrom(...earlier)));
  const reference =
    earlier.length === 0
      ? fc.constant('1')
      : fc.constantFrom(...earlier.map((id) => `tasks['${id}'].output`));
  const template = fc
    .tuple(text, reference)
    .map(([before, name]) => `${before.replaceAll('{', '')}{{ ${name} }}`);
  const body = fc.oneof(
    fc.record({ uses: fc.constant('transform'), with: fc.record({ value: fc.oneof(json, template) }) }),
    fc.record({
      uses: fc.constant('shell'),
      with: fc.record({ run: fc.tuple(fc.constant('echo'), template) }),
    }),
    fc.record({
      uses: fc.constant('llm'),
      with: fc.record({ model: fc.constant('offline/x'), prompt: template }),
    }),
    fc.record({ uses: fc.constant('wait'), with: fc.record({ for: duration }) }),
  );
  const extra = fc.record(
    { needs, ...shared, if: reference.map((name) => `${name} == 1`), gate: fc.record({ message: template }) },
    { requiredKeys: [] },
  );
  return fc.tuple(body, extra).map(([own, rest]) => ({ ...rest, ...own }));
}

const workflows = fc
  .uniqueArray(fc.stringMatching(/^[a-z_][a-z0-9_-]{0,6}$/), { minLength: 1, maxLength: 7 })
  .map((ids) => ids.map((id) => `t-${id}`))
  .chain((ids) =>
    fc.record({
      name: fc.constant('random'),
      description: optional(text),
      labels: optional(fc.dictionary(fc.stringMatching(/^[a-z]{1,5}$/), text)),
      inputs: optional(fc.constant({ who: { type: 'string', default: 'you' } })),
      outputs: optional(fc.record({ last: fc.constant(`{{ tasks['${ids.at(-1)}'].output }}`), x: json })),
      on_failure: optional(fc.constantFrom('fail_fast', 'continue')),
      timeout: optional(duration),
      defaults: optional(fc.record(shared, { requiredKeys: [] })),
      tasks: fc
        .tuple(...ids.map((_, index) => taskOf(index, ids)))
        .map((tasks) => Object.fromEntries(ids.map((id, index) => [id, tasks[index]]))),
    }),
  )
  .map((value) => JSON.parse(JSON.stringify(value)) as Record<string, unknown>);

// SPEC S1.1
describe('any valid workflow', () => {
  it('has one canonical form, whether it is a value, JSON or YAML, and making it again changes nothing', async () => {
    await fc.assert(
      fc.asyncProperty(workflows, async (value) => {
        const first = requireWorkflow(await checkWorkflowValue(value, options));
        const canonical = JSON.stringify(first);
        const again = [
          await checkWorkflowText(JSON.stringify(value), options),
          await checkWorkflowText(toYaml(value), options),
          await checkWorkflowValue(first, options),
          await checkWorkflowText(canonical, options),
          await checkWorkflowText(toYaml(first), options),
        ].map(requireWorkflow);
        for (const form of again) {
          expect(JSON.stringify(form)).toBe(canonical);
          expect(hashWorkflow(form)).toBe(hashWorkflow(first));
        }
      }),
      { numRuns: 150 },
    );
  });
});
