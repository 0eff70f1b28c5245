/** How long a typical prompt takes to compile and to render, in microseconds. */
import { compileTemplate } from '../src/template/compile.ts';

const PROMPT = `You are a researcher on {{ inputs.topic }} for {{ inputs.audience }}.
Run {{ run.id }}, task {{ task.id }}, attempt {{ task.attempt }}.
Summary so far: {{ tasks.research.output.summary | trim }}
Tone: {{ inputs.tone | default('neutral') }}. Length: {{ inputs.words }} words.
{% for point in tasks.research.output.points -%}
{{ loop.index }}. {{ point.title }} ({{ point.source }})
{% endfor %}
Last reviewer: {{ tasks.review.output.reviewer }}; score {{ tasks.review.output.score }}.
`;

const SCOPE = {
  inputs: { topic: 'tides', audience: 'sailors', tone: 'plain', words: 800 },
  run: { id: '0198c0de-0000-7000-8000-000000000000' },
  task: { id: 'draft', attempt: 1 },
  tasks: {
    research: {
      output: {
        summary: '  The moon pulls the sea, and the sea follows.  ',
        points: [1, 2, 3, 4, 5].map((n) => ({ title: `Point ${n}`, source: `https://example.org/${n}` })),
      },
    },
    review: { output: { reviewer: 'Ada', score: 0.9 } },
  },
};

const WARMUP_TURNS = 5_000;
const TURNS = 50_000;

/** Microseconds for one compilation and for one rendering of a typical prompt. */
export async function templateBench(): Promise<Record<string, number>> {
  const template = compileTemplate(PROMPT);
  return {
    'template.compile_us': microseconds(TURNS / 10, () => compileTemplate(PROMPT)),
    'template.render_us': microseconds(TURNS, () => template.render(SCOPE)),
  };
}

function microseconds(turns: number, run: () => unknown): number {
  for (let turn = 0; turn < WARMUP_TURNS; turn++) run();
  const startedAt = performance.now();
  for (let turn = 0; turn < turns; turn++) run();
  return ((performance.now() - startedAt) * 1000) / turns;
}
