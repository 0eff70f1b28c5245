/** The types of `workflow()` and `task()`. The compiler is the test: a line marked as an error must be one. */
import { describe, expect, it } from 'vitest';
import { BUILT_IN_HANDLERS } from '../handlers/registry.ts';
import { task, workflow } from './builder.ts';
import { checkWorkflowValue } from './load.ts';

const step = { uses: 'transform', with: { value: 1 } } as const;

// SPEC S1.1
describe('workflow()', () => {
  it('returns the definition itself', async () => {
    const definition = { name: 'a', tasks: { one: step, two: { ...step, needs: ['one'] } } } as const;
    expect(workflow(definition)).toBe(definition);
    const checked = await checkWorkflowValue(workflow(definition), { handlers: BUILT_IN_HANDLERS });
    expect(checked.errors).toEqual([]);
  });

  it('makes a `needs` that names no task a compile error', () => {
    workflow({ name: 'a', tasks: { one: step, two: { ...step, needs: 'one' } } });
    workflow({ name: 'a', tasks: { one: step, two: { ...step, needs: ['one'] } } });
    // @ts-expect-error there is no task `oen`
    workflow({ name: 'a', tasks: { one: step, two: { ...step, needs: 'oen' } } });
    // @ts-expect-error there is no task `oen`
    workflow({ name: 'a', tasks: { one: step, two: { ...step, needs: ['one', 'oen'] } } });
    expect(true).toBe(true);
  });

  it('makes an unknown key or a wrong type a compile error', () => {
    // @ts-expect-error the key is `max_parallel`
    workflow({ name: 'a', max_paralel: 1, tasks: { one: step } });
    // @ts-expect-error `continu` is not a policy
    workflow({ name: 'a', on_failure: 'continu', tasks: { one: step } });
    // @ts-expect-error a timeout is text
    workflow({ name: 'a', tasks: { one: { ...step, timeout: 5 } } });
    // @ts-expect-error a workflow has a name
    workflow({ tasks: { one: step } });
    expect(true).toBe(true);
  });
});

// SPEC S1.1
describe('task()', () => {
  it('declares a part that fits where its needs exist', () => {
    const draft = task({ ...step, needs: 'research' });
    workflow({ name: 'a', tasks: { research: step, draft } });
    // @ts-expect-error this workflow has no task `research`
    workflow({ name: 'a', tasks: { draft } });
    expect(draft.needs).toBe('research');
  });
});
