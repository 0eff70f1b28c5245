/** Every kind of problem as a user meets it: code, message, hint, path, line and column (SPEC S1.4). */
import { describe, expect, it } from 'vitest';
import { DEFINITION_LIMITS } from '../base/limits.ts';
import { llmWith } from '../handlers/llm.ts';
import { BUILT_IN_HANDLERS } from '../handlers/registry.ts';
import { createModels } from '../models/registry.ts';
import { checkWorkflowText } from './load.ts';
import { formatPath, PROBLEM_CODES, type Problem } from './problem.ts';

interface Case {
  readonly file: readonly string[];
  readonly problem: Problem;
}

/** A machine without any key. */
const LLM = llmWith(createModels({ providers: {}, prices: {}, env: {} }));
const HANDLERS = new Map([...BUILT_IN_HANDLERS, [LLM.name, LLM]]);

const CASES: readonly Case[] = [
  {
    file: [
      'name: a',
      'tasks:',
      '  one:',
      '    uses: llm',
      '    with: { model: offline/brief, fallbacks: ["{{ inputs.m }}", openai/gpt-5-mini], prompt: x }',
      'inputs: { m: {} }',
    ],
    problem: {
      code: 'unavailable',
      message:
        '`openai/gpt-5-mini` cannot be asked here: the provider `openai` has no key: OPENAI_API_KEY is not set in the environment of the worker',
      hint: 'Set OPENAI_API_KEY there, or name another variable with `providers.openai.api_key_env` in the config.',
      path: 'tasks.one.with.fallbacks[1]',
      line: 5,
      column: 65,
    },
  },
  {
    file: ['', '# only a comment'],
    problem: {
      code: 'empty_file',
      message: 'the file is empty; a workflow has at least `name` and `tasks`',
      hint: '`relay init` writes an example',
      path: '',
      line: 1,
      column: 1,
    },
  },
  {
    file: ['name: a', 'tasks: [1, 2'],
    problem: {
      code: 'syntax',
      message: 'a `[` is not closed by a `]`',
      hint: 'mend the indentation, or close the bracket',
      path: '',
      line: 2,
      column: 13,
    },
  },
  {
    file: ['name: a', 'tasks:', '  one: { uses: transform, with: { value: 1 } }', 'name: b'],
    problem: {
      code: 'duplicate_key',
      message: 'key `name` is defined twice; the first is on line 1',
      hint: 'remove one of them',
      path: 'name',
      line: 4,
      column: 1,
    },
  },
  {
    file: [
      'name: a',
      'tasks:',
      '  one: { uses: transform, with: { value: 1 } }',
      '  one: { uses: transform, with: { value: 2 } }',
    ],
    problem: {
      code: 'duplicate_id',
      message: 'task `one` is defined twice; the first is on line 3',
      hint: 'give one of them another id',
      path: 'tasks.one',
      line: 4,
      column: 3,
    },
  },
  {
    file: ['name: a', 'tasks:', '  one: { uses: transform, with: { value: .inf } }'],
    problem: {
      code: 'not_json',
      message: '`.inf` is not a value that JSON can hold',
      hint: 'put quotes around it to keep it as text',
      path: 'tasks.one.with.value',
      line: 3,
      column: 42,
    },
  },
  {
    file: ['name: a', 'max_parallel: many', 'tasks:', '  one: { uses: transform, with: { value: 1 } }'],
    problem: {
      code: 'wrong_type',
      message: '`max_parallel` must be a number, not the text "many"',
      path: 'max_parallel',
      line: 2,
      column: 15,
    },
  },
  {
    file: ['name: a', 'on_failure: continu', 'tasks:', '  one: { uses: transform, with: { value: 1 } }'],
    problem: {
      code: 'wrong_value',
      message: '`on_failure` must be one of `fail_fast`, `continue`, not the text "continu"',
      hint: 'did you mean `continue`?',
      path: 'on_failure',
      line: 2,
      column: 13,
    },
  },
  {
    file: ['tasks:', '  one: { uses: transform, with: { value: 1 } }'],
    problem: {
      code: 'missing_key',
      message: '`name` is missing in the file',
      hint: 'start the file with `name: my-workflow`',
      path: 'name',
      line: 1,
      column: 1,
    },
  },
  {
    file: ['name: a', 'tasks:', '  one: { uses: transform, with: { value: 1 }, neds: [] }'],
    problem: {
      code: 'unknown_key',
      message: 'unknown key `neds` in `tasks.one`',
      hint: 'did you mean `needs`?',
      path: 'tasks.one.neds',
      line: 3,
      column: 47,
    },
  },
  {
    file: ['name: a', 'timeout: 5 minutes', 'tasks:', '  one: { uses: transform, with: { value: 1 } }'],
    problem: {
      code: 'bad_duration',
      message: '`timeout` is not a duration: the text "5 minutes"',
      hint: 'write a number and a unit: 500ms, 30s, 5m, 2h or 1d',
      path: 'timeout',
      line: 2,
      column: 10,
    },
  },
  {
    file: ['name: a', 'tasks:', '  1st: { uses: transform, with: { value: 1 } }'],
    problem: {
      code: 'bad_id',
      message: '`1st` is not a valid task id',
      hint: 'letters, digits, `_` and `-`, starting with a letter or `_`, at most 128',
      path: 'tasks.1st',
      line: 3,
      column: 3,
    },
  },
  {
    file: ['name: a', 'tasks:', '  item: { uses: transform, with: { value: 1 } }'],
    problem: {
      code: 'reserved_id',
      message: 'a task cannot be called `item`: templates use this name',
      hint: 'choose another id',
      path: 'tasks.item',
      line: 3,
      column: 3,
    },
  },
  {
    file: ['name: a', 'tasks: {}'],
    problem: {
      code: 'no_tasks',
      message: 'the workflow has no tasks',
      hint: 'add one under `tasks`',
      path: 'tasks',
      line: 2,
      column: 8,
    },
  },
  {
    file: [
      'name: a',
      'tasks:',
      '  one: { uses: transform, with: { value: 1 } }',
      '  two:',
      '    needs: [oen]',
      '    uses: transform',
      '    with: { value: 2 }',
    ],
    problem: {
      code: 'unknown_dependency',
      message: '`two` needs `oen`, which does not exist',
      hint: 'did you mean `one`?',
      path: 'tasks.two.needs[0]',
      line: 5,
      column: 13,
    },
  },
  {
    file: [
      'name: a',
      'tasks:',
      '  one:',
      '    needs: one',
      '    uses: transform',
      '    with: { value: "{{ tasks.one.output }}" }',
    ],
    problem: {
      code: 'self_dependency',
      message: 'task `one` needs itself',
      hint: 'remove it from `needs`',
      path: 'tasks.one.needs[0]',
      line: 4,
      column: 12,
    },
  },
  {
    file: [
      'name: a',
      'tasks:',
      '  one:',
      '    needs: [two]',
      '    uses: transform',
      '    with: { value: 1 }',
      '  two:',
      '    needs: [one]',
      '    uses: transform',
      '    with: { value: 2 }',
    ],
    problem: {
      code: 'cycle',
      message: 'tasks need each other in a circle: one → two → one',
      hint: 'remove one of these dependencies',
      path: 'tasks.one.needs',
      line: 4,
      column: 12,
    },
  },
  {
    file: ['name: a', 'tasks:', '  one: { with: { value: 1 } }'],
    problem: {
      code: 'missing_handler',
      message: 'task `one` does not say which handler it uses',
      hint: 'add `uses:` with one of llm, http, shell, script, transform, wait, approval',
      path: 'tasks.one.uses',
      line: 3,
      column: 3,
    },
  },
  {
    file: ['name: a', 'tasks:', '  one: { uses: trasform, with: { value: 1 } }', '  two: { uses: train }'],
    problem: {
      code: 'undeclared_handler',
      message: 'there is no handler `trasform`',
      hint: 'did you mean `transform`?',
      path: 'tasks.one.uses',
      line: 3,
      column: 16,
    },
  },
  {
    file: [
      'name: a',
      'tasks:',
      '  one: { uses: http, with: { url: "https://example.org", method: FETCH } }',
      '  two: { uses: llm, with: { prompt: hi } }',
      '  three: { uses: llm }',
    ],
    problem: {
      code: 'invalid_config',
      message:
        '`http`: `method` must be one of `GET`, `HEAD`, `POST`, `PUT`, `PATCH`, `DELETE`, `OPTIONS`, not the text "FETCH"',
      path: 'tasks.one.with.method',
      line: 3,
      column: 66,
    },
  },
  {
    file: ['name: a', 'tasks:', '  one: { uses: transform, with: { value: "a {{ 1 + }}" } }'],
    problem: {
      code: 'template_syntax',
      message: 'expected a value, found `}}`',
      path: 'tasks.one.with.value',
      line: 3,
      column: 52,
    },
  },
  {
    file: [
      'name: a',
      'tasks:',
      '  one: { uses: transform, with: { value: "{{ task.one.output }} {{ tsks.x }} {{ two }} {{ zzzzzzz }}" } }',
      '  two: { uses: transform, with: { value: "{{ tasks[inputs.x].output }} {{ tasks.one.result }}{{ run.foo }}" } }',
    ],
    problem: {
      code: 'unknown_reference',
      message: '`task` has no `one`; it has id, task_run_id, attempt',
      hint: 'did you mean `tasks.one`?',
      path: 'tasks.one.with.value',
      line: 3,
      column: 46,
    },
  },
  {
    file: [
      'name: a',
      'secrets: [K]',
      'outputs: { x: "{{ secrets.K }}", y: "{{ task.id }}" }',
      'tasks:',
      '  one: { uses: transform, with: { value: "{{ item }}" } }',
      '  two: { for_each: [1], if: "index > 0", uses: transform, with: { value: "{{ item }}" } }',
    ],
    problem: {
      code: 'misplaced_reference',
      message: '`secrets` may only be used in `with`, where it is masked in everything that is stored',
      path: 'outputs.x',
      line: 3,
      column: 19,
    },
  },
  {
    file: ['name: a', 'tasks:', '  one: { uses: transform, with: { value: "{{ inputs.topic }}" } }'],
    problem: {
      code: 'undeclared_input',
      message: '`inputs.topic` is not declared',
      hint: 'declare it under `inputs`',
      path: 'tasks.one.with.value',
      line: 3,
      column: 46,
    },
  },
  {
    file: [
      'name: a',
      'secrets: [API_KEY]',
      'tasks:',
      '  one: { uses: transform, with: { value: "{{ secrets.APIKEY }}" } }',
    ],
    problem: {
      code: 'undeclared_secret',
      message: '`secrets.APIKEY` is not declared',
      hint: 'did you mean `API_KEY`?',
      path: 'tasks.one.with.value',
      line: 4,
      column: 46,
    },
  },
  {
    file: ['name: a', 'tasks:', '  one: { uses: transform, with: { value: "{{ env.HOME }}" } }'],
    problem: {
      code: 'undeclared_env',
      message: '`env.HOME` is not declared',
      hint: 'add it to the list `env`',
      path: 'tasks.one.with.value',
      line: 3,
      column: 46,
    },
  },
  {
    file: [
      'name: a',
      'inputs:',
      '  topic: { type: strin }',
      '  n: { type: integer, default: many }',
      '  k: { typ: string }',
      'tasks:',
      '  one: { uses: transform, with: { value: 1 } }',
    ],
    problem: {
      code: 'bad_json_schema',
      message:
        'not a valid JSON Schema: `type` must be one of array, boolean, integer, null, number, object, string',
      hint: 'did you mean `string`?',
      path: 'inputs.topic.type',
      line: 3,
      column: 18,
    },
  },
  {
    file: ['name: a', 'tasks:', '  one: { uses: transform, with: { value: 1 }, max_parallel: 2 }'],
    problem: {
      code: 'not_applicable',
      message: '`max_parallel` has no effect on a task without `for_each`',
      hint: 'add `for_each`, or remove the key',
      path: 'tasks.one.max_parallel',
      line: 3,
      column: 47,
    },
  },
  {
    file: [
      'name: a',
      'tasks:',
      '  one: { uses: transform, with: { value: 1 } }',
      '  two: { needs: one, uses: transform, with: { value: 1 } }',
      '  three: { uses: transform, with: { value: 1 } }',
    ],
    problem: {
      code: 'disconnected',
      message: 'the tasks form 2 separate parts: `one` (+1), `three`',
      hint: 'if that is not meant, a `needs` is missing',
      path: 'tasks.three',
      line: 5,
      column: 3,
    },
  },
  {
    file: [
      'name: a',
      'inputs: { who: { type: string } }',
      'tasks:',
      '  one:',
      '    uses: shell',
      '    with:',
      '      run: |',
      '        echo {{ inputs.who | sh }}',
      '        echo {{ inputs.who }} {{ run.id }} {{ "lit" }}',
      '        {% for x in inputs.who %}echo {{ x }} {{ x | sh }}{% endfor %}',
      '  two: { uses: shell, needs: one, with: { run: [echo, "{{ inputs.who }}"] } }',
    ],
    problem: {
      code: 'unquoted_shell',
      message: '`inputs.who` is put into script text unquoted',
      hint: 'add `| sh` at the end of the expression, or write `run` as a list of arguments',
      path: 'tasks.one.with.run',
      line: 9,
      column: 17,
    },
  },
];

/** Cases whose text is made, because it is large. */
const LARGE: readonly Case[] = [
  {
    file: [
      'name: a',
      `labels: &a { x: ${'x'.repeat(60)} }`,
      'tasks:',
      ...['b', 'c', 'd', 'e', 'f', 'g'].map((id, index, ids) => {
        const alias = `*${ids[index - 1] ?? 'a'}`;
        return `  ${id}: &${id} [${Array.from({ length: 10 }, () => alias).join(', ')}]`;
      }),
    ],
    problem: {
      code: 'too_many_aliases',
      message: 'aliases (`*name`) expand to too much data',
      hint: 'write the value where it is needed',
      path: '',
      line: 8,
      column: 38,
    },
  },
  {
    file: [
      'name: a',
      'tasks:',
      `  one: { uses: transform, with: { value: ${'['.repeat(120)}${']'.repeat(120)} } }`,
    ],
    problem: {
      code: 'nested_too_deep',
      message: 'lists and mappings are nested more than 100 deep',
      hint: 'flatten the data',
      path: 'tasks.one.with.value[0][0]',
      line: 3,
      column: 139,
    },
  },
  {
    file: [
      'name: a',
      'tasks:',
      '  one:',
      '    uses: transform',
      `    with: { value: ${'x'.repeat(70_000)} }`,
    ],
    problem: {
      code: 'config_too_large',
      message: '`with` of task `one` has 70012 bytes; the limit is 65536',
      hint: 'pass large data as an input or a file',
      path: 'tasks.one.with',
      line: 5,
      column: 5,
    },
  },
  {
    file: [
      'name: a',
      'tasks:',
      ...Array.from({ length: 11 }, (_, i) => `  t${i}: { uses: transform, with: { value: 1 } }`),
    ],
    problem: {
      code: 'too_many_tasks',
      message: 'the workflow has 11 tasks; the limit is 10',
      hint: 'use `for_each` for many alike, or raise definition_limits.tasks_max in the config file',
      path: 'tasks',
      line: 3,
      column: 3,
    },
  },
];

// SPEC S1.4
describe('a problem of a workflow file', () => {
  for (const { file, problem } of [...CASES, ...LARGE]) {
    it(`says ${problem.code} with its place: ${problem.message}`, async () => {
      const isTaskLimit = problem.code === 'too_many_tasks';
      const limits = isTaskLimit ? { ...DEFINITION_LIMITS, tasksMax: 10 } : DEFINITION_LIMITS;
      const { errors, warnings } = await checkWorkflowText(file.join('\n'), {
        handlers: HANDLERS,
        limits,
      });
      expect([...errors, ...warnings]).toContainEqual(problem);
    });
  }

  it('has a case here for every code', () => {
    const shown = new Set([...CASES, ...LARGE].map(({ problem }) => problem.code));
    expect(Object.keys(PROBLEM_CODES).filter((code) => !shown.has(code as Problem['code']))).toEqual([]);
  });

  it('is a warning, and the workflow stays valid, only for what may be meant or be there elsewhere', async () => {
    for (const { file, problem } of [...CASES, ...LARGE]) {
      const checked = await checkWorkflowText(file.join('\n'), { handlers: HANDLERS });
      const isWarning = PROBLEM_CODES[problem.code].startsWith('Warning');
      if (isWarning) expect(checked.errors).toEqual([]);
      else if (problem.code !== 'too_many_tasks') expect(checked.workflow).toBeNull();
    }
  });

  it('has a path as people write it', () => {
    expect(formatPath(['tasks', 'draft', 'needs', 0])).toBe('tasks.draft.needs[0]');
    expect(formatPath(['inputs', 'a b'])).toBe('inputs["a b"]');
    expect(formatPath([])).toBe('');
  });
});
