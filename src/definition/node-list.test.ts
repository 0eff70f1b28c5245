/** The node-list dialect (SPEC S1.3): what its templates and handlers become, and where its problems are shown. */
import { describe, expect, it } from 'vitest';
import { BUILT_IN_HANDLERS } from '../handlers/registry.ts';
import { checkWorkflowText, requireWorkflow } from './load.ts';
import { rewriter } from './node-list-templates.ts';

const options = { handlers: BUILT_IN_HANDLERS };

// SPEC S1.3
describe('a template of a node list', () => {
  const rewrite = rewriter(['a', 'fetch-data', 'fetch', 'result', 'a_b', 'a-b', 'x-1-y']);

  for (const [written, becomes] of [
    ['{{ a.output }}', '{{ tasks.a.output }}'],
    ['{{ a.output.x[0] }}', '{{ tasks.a.output.x[0] }}'],
    ['{{ a.result }}', '{{ (tasks.a.output | result) }}'],
    ['{{ a.result.x }}', '{{ (tasks.a.output | result).x }}'],
    ['{{ a.title }}', '{{ tasks.a.output.title }}'],
    ["{{ a['title'] }}", "{{ tasks.a.output['title'] }}"],
    ['{{ a }}', '{{ tasks.a.output }}'],
    ['{{ a.output | upper }} and {{a.n}}', '{{ tasks.a.output | upper }} and {{tasks.a.output.n}}'],
    ['{{ "x" ~ a.output | join(a.sep) }}', '{{ "x" ~ tasks.a.output | join(tasks.a.output.sep) }}'],
    [
      '{% for i in a.items %}{{ i.output }}{% endfor %}',
      '{% for i in tasks.a.output.items %}{{ i.output }}{% endfor %}',
    ],
    ['{% for a in [1] %}{{ a.output }}{% endfor %}', '{% for a in [1] %}{{ a.output }}{% endfor %}'],
    ['{% if a.result %}yes{% endif %}', '{% if (tasks.a.output | result) %}yes{% endif %}'],
    ['{{ fetch-data.output }}', "{{ tasks['fetch-data'].output }}"],
    ['{{ fetch-data.result.x | upper }}', "{{ (tasks['fetch-data'].output | result).x | upper }}"],
    ['{{ fetch.output - a.n }}', '{{ tasks.fetch.output - tasks.a.output.n }}'],
    ['{{ x-1-y.output }}', "{{ tasks['x-1-y'].output }}"],
    ['{{ result.output }}', '{{ tasks.result.output }}'],
    ['{{ a_b.output }}', '{{ tasks.a_b.output }}'],
    ['text a.output and fetch-data {{ "a.output" }}', 'text a.output and fetch-data {{ "a.output" }}'],
    ['{{ unknown.output }}', '{{ unknown.output }}'],
    ['{{ a.output + }}', '{{ a.output + }}'],
  ] as const) {
    it(`${written} becomes ${becomes}`, () => {
      expect(rewrite(written).text).toBe(becomes);
    });
  }
});

// SPEC S1.3
describe('a node list', () => {
  const nodes = (list: readonly unknown[]): string => JSON.stringify({ name: 'a', nodes: list }, null, 1);

  it('knows its own names of handlers', async () => {
    const config = { url: 'https://example.org' };
    const { tasks } = requireWorkflow(
      await checkWorkflowText(
        nodes([
          { id: 'a', handler: 'http_request', config },
          { id: 'b', handler: 'call_external_service', config, dependencies: ['a'] },
          {
            id: 'c',
            handler: 'llm_service',
            config: { model: 'offline/x', prompt: '{{ b.body }}' },
            timeout_seconds: 1.5,
          },
        ]),
        options,
      ),
    );
    expect(Object.entries(tasks).map(([id, { uses, needs, timeout }]) => [id, uses, needs, timeout])).toEqual(
      [
        ['a', 'http', [], undefined],
        ['b', 'http', ['a'], undefined],
        ['c', 'llm', ['b'], '1500ms'],
      ],
    );
  });

  it('shows problems at its own paths and places', async () => {
    const text = nodes([
      { id: 'a', handler: 'llm_servce', config: {} },
      { id: 'a', handler: 'http', config: { url: 'https://example.org' } },
      { handler: 'http', config: { url: 'https://example.org' } },
      { id: 'tasks', config: {}, dependencies: ['b'], extra: 1 },
      5,
      {
        id: 'z',
        handler: 'transform',
        config: { value: '{{ a.output }} and {{ a.result }} of {{ nope.output }}' },
      },
    ]);
    const { errors } = await checkWorkflowText(text, options);
    const lines = text.split('\n');
    const at = ({ line, column }: { line: number | null; column: number | null }): string =>
      (lines[(line ?? 0) - 1] ?? '').slice((column ?? 0) - 1).slice(0, 12);
    expect(errors.map((problem) => `${problem.code} ${problem.path} @ ${at(problem)}`)).toEqual([
      'undeclared_handler nodes[0].handler @ "llm_servce"',
      'duplicate_id nodes[1].id @ "a",',
      'missing_key nodes[2] @ {',
      'missing_handler nodes[3].handler @ {',
      'reserved_id nodes[3].id @ "tasks",',
      'unknown_dependency nodes[3].dependencies[0] @ "b"',
      'unknown_key nodes[3].extra @ "extra": 1',
      'wrong_type nodes[4] @ 5,',
      'unknown_reference nodes[5].config.value @ nope.output ',
    ]);
  });

  it('with a node called __proto__ is refused', async () => {
    const { errors } = await checkWorkflowText(
      '{"name":"a","nodes":[{"id":"__proto__","handler":"transform","config":{"value":1}}]}',
      options,
    );
    expect(errors.map(({ code }) => code)).toEqual(['reserved_id']);
  });
});
