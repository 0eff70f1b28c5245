/** From what people write to the canonical form: one form for all spellings, defaults, dependencies, types (SPEC S1.1–S1.3, S1.5). */
import { describe, expect, it } from 'vitest';
import { BUILT_IN_HANDLERS } from '../handlers/registry.ts';
import { task, workflow } from './builder.ts';
import { checkWorkflowText, checkWorkflowValue, requireWorkflow } from './load.ts';
import { hashWorkflow, type Workflow } from './workflow.ts';

const options = { handlers: BUILT_IN_HANDLERS };
const load = async (text: string): Promise<Workflow> =>
  requireWorkflow(await checkWorkflowText(text, options));
const loadTasks = async (tasks: string): Promise<Workflow['tasks']> =>
  (await load(`name: a\ninputs: { who: {}, list: {} }\ntasks:\n${tasks}`)).tasks;

// SPEC S1.1
describe('one canonical form', () => {
  const yaml = `
name: brief
tasks:
  research: { uses: llm, with: { model: offline/brief, prompt: "Three facts" }, timeout: 120s }
  draft:
    uses: llm
    needs: [research]
    with: { model: offline/brief, prompt: "Write from {{ tasks.research.output }}" }
`;
  const json = JSON.stringify({
    name: 'brief',
    tasks: {
      research: { uses: 'llm', with: { model: 'offline/brief', prompt: 'Three facts' }, timeout: '2m' },
      draft: {
        needs: 'research',
        uses: 'llm',
        with: { model: 'offline/brief', prompt: 'Write from {{ tasks.research.output }}' },
      },
    },
  });
  const nodeList = JSON.stringify({
    name: 'brief',
    nodes: [
      {
        id: 'research',
        handler: 'llm_service',
        config: { model: 'offline/brief', prompt: 'Three facts' },
        timeout_seconds: 120,
      },
      {
        id: 'draft',
        handler: 'llm',
        config: { model: 'offline/brief', prompt: 'Write from {{ research.output }}' },
        dependencies: ['research'],
      },
    ],
  });
  const value = workflow({
    name: 'brief',
    tasks: {
      research: task({
        uses: 'llm',
        with: { model: 'offline/brief', prompt: 'Three facts' },
        timeout: '120000ms',
      }),
      draft: {
        uses: 'llm',
        with: { model: 'offline/brief', prompt: 'Write from {{ tasks.research.output }}' },
      },
    },
  });

  it('is the same for YAML, JSON, a node list and a TypeScript value', async () => {
    const forms = [
      await load(yaml),
      await load(json),
      await load(nodeList),
      requireWorkflow(await checkWorkflowValue(JSON.parse(nodeList), options)),
      requireWorkflow(await checkWorkflowValue(value, options)),
    ];
    const [first] = forms;
    for (const form of forms) expect(JSON.stringify(form)).toBe(JSON.stringify(first));
    expect(first).toEqual({
      name: 'brief',
      tasks: {
        research: {
          needs: [],
          uses: 'llm',
          with: { model: 'offline/brief', prompt: 'Three facts' },
          timeout: '2m',
        },
        draft: {
          needs: ['research'],
          uses: 'llm',
          with: { model: 'offline/brief', prompt: 'Write from {{ tasks.research.output }}' },
        },
      },
    });
  });

  it('changes nothing when it is made again', async () => {
    const once = await load(yaml);
    const again = requireWorkflow(await checkWorkflowValue(once, options));
    expect(JSON.stringify(again)).toBe(JSON.stringify(once));
    expect(hashWorkflow(again)).toBe(hashWorkflow(once));
  });

  it('has another hash when a task changes', async () => {
    const changed = await load(yaml.replace('Three', 'Four'));
    expect(hashWorkflow(changed)).not.toBe(hashWorkflow(await load(yaml)));
  });

  it('has the same hash whatever the order of settings and the spelling of durations', async () => {
    const one = await load(
      'name: a\ntasks: { x: { uses: transform, with: { value: 1 }, retry: { max: 60s, initial: 1000ms } } }',
    );
    const other = await load(
      'tasks: { x: { retry: { initial: 1s, max: 1m }, with: { value: 1 }, uses: transform } }\nname: a',
    );
    expect(hashWorkflow(one)).toBe(hashWorkflow(other));
  });
});

// SPEC S1.2
describe('what is written', () => {
  it('keeps number-like text as text', async () => {
    const { one } = await loadTasks(
      `  one: { uses: transform, with: { value: ["007", '1e3', "true", "null", "1.50", "0x10"] } }`,
    );
    expect(one?.with.value).toEqual(['007', '1e3', 'true', 'null', '1.50', '0x10']);
  });

  it('counts a need that is named twice once', async () => {
    const tasks = await loadTasks(`
  one: { uses: transform, with: { value: 1 } }
  two: { needs: [one, one], uses: transform, with: { value: "{{ tasks.one.output }}" } }`);
    expect(tasks.two?.needs).toEqual(['one']);
  });

  it('may share parts by anchors and merge keys, however often', async () => {
    const many = Array.from({ length: 500 }, (_, i) => `  t${i}: { <<: *base, priority: ${i} }`).join('\n');
    const tasks = await loadTasks(
      `  base: &base { uses: transform, with: { value: 1 }, retry: { factor: 3 } }\n${many}`,
    );
    expect(tasks.t499).toEqual({
      needs: [],
      uses: 'transform',
      with: { value: 1 },
      retry: { factor: 3 },
      priority: 499,
    });
  });

  it('reads an alias as the anchor before it, also inside another anchor', async () => {
    const { one } = await loadTasks(
      `  one: { uses: transform, with: { value: [&a 1, &b [*a], &a 2, *b, *a] } }`,
    );
    expect(one?.with.value).toEqual([1, [1], 2, [1], 2]);
  });

  it('may have Windows line ends, a byte order mark, and tabs in JSON', async () => {
    const flow = 'name: a\ntasks:\n  one: { uses: transform, with: { value: 1 } }\n';
    const plain = await load(flow);
    expect(await load(flow.replaceAll('\n', '\r\n'))).toEqual(plain);
    expect(await load(`\ufeff${flow}`)).toEqual(plain);
    expect(await load(JSON.stringify(plain, null, '\t'))).toEqual(plain);
  });
});

// SPEC S1.2
describe('defaults', () => {
  const withDefaults = async (defaults: string, tasks: string): Promise<Workflow['tasks']> =>
    (await load(`name: a\ndefaults: ${defaults}\ntasks:\n${tasks}`)).tasks;

  it('are merged into every task, and the task wins', async () => {
    const tasks = await withDefaults(
      '{ uses: llm, timeout: 60s, retry: { max_attempts: 5, initial: 2s }, with: { model: offline/a, max_tokens: 10 } }',
      `  one: { with: { prompt: hi } }
  two: { timeout: 5m, retry: { initial: 9s }, with: { prompt: hi, model: offline/b } }`,
    );
    expect(tasks.one).toEqual({
      needs: [],
      uses: 'llm',
      with: { model: 'offline/a', max_tokens: 10, prompt: 'hi' },
      retry: { max_attempts: 5, initial: '2s' },
      timeout: '1m',
    });
    expect(tasks.two).toEqual({
      needs: [],
      uses: 'llm',
      with: { model: 'offline/b', max_tokens: 10, prompt: 'hi' },
      retry: { max_attempts: 5, initial: '9s' },
      timeout: '5m',
    });
  });

  it('give their `with` only to tasks of their handler', async () => {
    const tasks = await withDefaults(
      '{ uses: llm, with: { model: offline/a } }',
      '  one: { uses: shell, with: { run: ls } }\n  two: { needs: one, with: { prompt: hi } }',
    );
    expect(tasks.one?.with).toEqual({ run: 'ls' });
    expect(tasks.two?.with).toEqual({ model: 'offline/a', prompt: 'hi' });
  });

  it('are where a mistake in them is reported, once', async () => {
    const text =
      'name: a\ndefaults:\n  uses: llm\n  with: { model: nope }\ntasks:\n  one: { with: { prompt: a } }\n  two: { needs: one, with: { prompt: b } }\n';
    const { errors } = await checkWorkflowText(text, options);
    expect(errors).toEqual([
      {
        code: 'invalid_config',
        message:
          '`llm`: `model` must be written as provider/model, for example offline/brief, not the text "nope"',
        path: 'defaults.with.model',
        line: 4,
        column: 18,
      },
    ]);
  });

  it('may not multiply to more than a file could hold', async () => {
    const big = 'x'.repeat(60_000);
    const tasks = Array.from({ length: 600 }, (_, i) => `  t${i}: {}`).join('\n');
    const text = `name: a\ndefaults: { uses: transform, with: { value: ${big} } }\ntasks:\n${tasks}`;
    const { errors } = await checkWorkflowText(text, options);
    expect(errors.map(({ code, line }) => ({ code, line }))).toEqual([{ code: 'config_too_large', line: 2 }]);
  });
});

// SPEC S1.5
describe('a reference in a template', () => {
  const source = '  src: { uses: transform, with: { value: [1] } }\n';

  for (const [place, task] of [
    ['with', '{ uses: transform, with: { value: { deep: ["x {{ tasks.src.output[0] }}"] } } }'],
    ['if', '{ if: "tasks.src.output | length > 0", uses: transform, with: { value: 1 } }'],
    ['if, in braces', '{ if: "{{ tasks.src.status == \'SUCCESS\' }}", uses: transform, with: { value: 1 } }'],
    ['for_each', '{ for_each: "{{ tasks.src.output }}", uses: transform, with: { value: "{{ item }}" } }'],
    [
      'a for_each list',
      '{ for_each: ["{{ tasks.src.output }}", 2], uses: transform, with: { value: "{{ item }}" } }',
    ],
    [
      'gate',
      '{ gate: { message: "Go on with {{ tasks.src.output }}?" }, uses: transform, with: { value: 1 } }',
    ],
    [
      'a statement',
      '{ uses: transform, with: { value: "{% for x in tasks.src.output %}{{ x }}{% endfor %}" } }',
    ],
    ['a subscript', '{ uses: transform, with: { value: "{{ tasks[\'src\'].output }}" } }'],
    ['a test for presence', '{ uses: transform, with: { value: "{{ tasks.src.output.x is defined }}" } }'],
  ] as const) {
    it(`in ${place} adds the dependency`, async () => {
      const tasks = await loadTasks(`${source}  user: ${task}`);
      expect(tasks.user?.needs).toEqual(['src']);
    });
  }

  it('in outputs adds none, and one to a loop variable adds none', async () => {
    const { tasks } = await load(
      `name: a\noutputs: { o: "{{ tasks.src.output }}" }\ntasks:\n${source}  src2: { needs: src, uses: transform, with: { value: "{% for tasks in [1] %}{{ tasks }}{% endfor %}" } }`,
    );
    expect(tasks.src?.needs).toEqual([]);
    expect(tasks.src2?.needs).toEqual(['src']);
  });

  it('comes after the written needs, each once', async () => {
    const tasks = await loadTasks(`
  a: { uses: transform, with: { value: 1 } }
  b: { uses: transform, with: { value: 1 } }
  c: { needs: b, uses: transform, with: { value: "{{ tasks.a.output }}{{ tasks.b.output }}{{ tasks.a.output }}" } }`);
    expect(tasks.c?.needs).toEqual(['b', 'a']);
  });
});

// SPEC S1.4
describe('a check', () => {
  it('reports problems of every kind at once, in the order of the file', async () => {
    const text = [
      'name: a b',
      'descripton: x',
      'timeout: soon',
      'tasks:',
      '  one: { uses: transfrm, needs: [nobody, 3, one] }',
      '  two: 5',
      '  three: { uses: transform, with: { value: "{{ inputs.x }} {{ tasks.two.output }} {{ 1 + }}" }, needs: two }',
      '  four: { gate: {}, uses: transform, with: { value: 1 }, when: never }',
    ].join('\n');
    const { errors } = await checkWorkflowText(text, options);
    expect(errors.map(({ line, code, path }) => `${line} ${code} ${path}`)).toEqual([
      '1 bad_id name',
      '2 unknown_key descripton',
      '3 bad_duration timeout',
      '5 undeclared_handler tasks.one.uses',
      '5 unknown_dependency tasks.one.needs[0]',
      '5 wrong_type tasks.one.needs[1]',
      '5 self_dependency tasks.one.needs[2]',
      '6 wrong_type tasks.two',
      '7 template_syntax tasks.three.with.value',
      '8 missing_key tasks.four.gate.message',
      '8 wrong_value tasks.four.when',
    ]);
  });

  it('does not blame a task for what a wrong value in it hides', async () => {
    const text =
      'name: a\ntasks:\n  one: { uses: 5 }\n  two: { uses: llm, with: 3 }\n  three: { uses: llm, with: { model: .inf, prompt: x } }';
    const { errors } = await checkWorkflowText(text, options);
    expect(errors.map(({ code, path }) => `${code} ${path}`)).toEqual([
      'wrong_type tasks.one.uses',
      'wrong_type tasks.two.with',
      'not_json tasks.three.with.model',
    ]);
  });

  it('lists a hundred problems and counts the rest', async () => {
    const tasks = Array.from({ length: 150 }, (_, i) => `  t${i}: { uses: nothing${i} }`).join('\n');
    const { errors, dropped } = await checkWorkflowText(`name: a\ntasks:\n${tasks}`, options);
    expect(errors).toHaveLength(100);
    expect(dropped).toBe(50);
  });

  it('names a hyphenated task and how to write it', async () => {
    const text =
      'name: a\ntasks:\n  fetch-data: { uses: transform, with: { value: 1 } }\n  use: { uses: transform, with: { value: "{{ tasks.fetch-data.output }}" } }';
    const { errors } = await checkWorkflowText(text, options);
    expect(errors).toEqual([
      {
        code: 'unknown_reference',
        message: 'there is no task `fetch`',
        hint: "`-` means minus in a template; write tasks['fetch-data']",
        path: 'tasks.use.with.value',
        line: 4,
        column: 46,
      },
    ]);
  });

  it('accepts schemas of one file that have the same $id', async () => {
    const schema = '{ $id: "urn:a:b", type: object }';
    const other = '{ $id: "urn:a:b", type: array }';
    const text = `name: a\ninputs: { p: ${schema}, q: ${other} }\ntasks: { one: { uses: transform, with: { value: 1 } } }`;
    expect((await checkWorkflowText(text, options)).errors).toEqual([]);
  });

  it('throws INVALID_WORKFLOW with all problems where a workflow is required', async () => {
    const checked = await checkWorkflowText(
      'name: a\ntasks: { one: { uses: x }, two: { uses: y } }',
      options,
    );
    expect(() => requireWorkflow(checked)).toThrow(
      expect.objectContaining({
        code: 'INVALID_WORKFLOW',
        message: 'the workflow is not valid: tasks.one.uses: there is no handler `x` (and 1 more)',
        details: { errors: checked.errors, warnings: [] },
      }),
    );
  });
});
