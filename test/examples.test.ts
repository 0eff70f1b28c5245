/** Every example is valid without a warning and has the shape it is there to show. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { brief } from '../examples/typescript/brief.ts';
import { checkWorkflow } from '../src/app/check-workflow.ts';
import { phases } from '../src/domain/graph.ts';

const FOLDER = join(dirname(fileURLToPath(import.meta.url)), '..', 'examples');

/** File → its tasks by phase. */
const SHAPES: Readonly<Record<string, readonly (readonly string[])[]>> = {
  'approve-spending.yaml': [['sketch'], ['essay']],
  'chain.yaml': [['trim'], ['squeeze'], ['sentence']],
  'diamond.yaml': [['clean'], ['words', 'letters'], ['report']],
  'extract.yaml': [['read'], ['notice']],
  'fallback.yaml': [['answer']],
  'fan-out.yaml': [['facts', 'style', 'gaps'], ['editor']],
  'folder-summary.yaml': [['files'], ['texts'], ['summaries'], ['summary']],
  'human-gate.yaml': [['notice'], ['audience'], ['publish'], ['tidy']],
  'map.yaml': [['names'], ['greet'], ['page']],
  'node-list.json': [['collect'], ['summarize', 'translate'], ['page']],
  'research-brief.yaml': [['research', 'doubts', 'sources'], ['draft']],
};

async function shapeOf(definition: unknown): Promise<readonly (readonly string[])[]> {
  const { graph, errors, warnings } = await checkWorkflow(definition);
  expect({ errors, warnings }).toEqual({ errors: [], warnings: [] });
  return graph === null ? [] : phases(graph);
}

// SPEC S1.1, S1.3
describe('an example', () => {
  it('stands in the list of shapes here', () => {
    const files = readdirSync(FOLDER).filter((name) => extname(name) !== '' && extname(name) !== '.md');
    expect(files.sort()).toEqual(Object.keys(SHAPES).sort());
  });

  for (const [name, shape] of Object.entries(SHAPES)) {
    it(`${name} is valid and has its shape`, async () => {
      const text = readFileSync(join(FOLDER, name), 'utf8');
      expect(await shapeOf(text)).toEqual(shape);
      expect(
        name.startsWith(
          (JSON.parse(JSON.stringify((await checkWorkflow(text)).workflow)) as { name: string }).name,
        ),
      ).toBe(true);
    });
  }

  it('typescript/brief.ts is valid and has its shape', async () => {
    expect(await shapeOf(brief)).toEqual([['draft'], ['french', 'german'], ['page']]);
  });

  it('needs no key: every model is offline', () => {
    for (const name of Object.keys(SHAPES)) {
      const text = readFileSync(join(FOLDER, name), 'utf8').replace(/^ *#.*$/gm, '');
      const models = [...text.matchAll(/"?model"?: "?([\w./-]+)/g)];
      const defaults = [...text.matchAll(/default: (\w+\/[\w./-]+)/g)];
      for (const [, model] of [...models, ...defaults]) expect(model).toMatch(/^offline\//);
    }
  });
});
