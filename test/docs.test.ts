/** What the pages show is true: whole workflows in them are valid, commands exist, nothing points out of the repository. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { checkWorkflow } from '../src/app/check-workflow.ts';
import { COMMANDS } from '../src/cli/commands/registry.ts';
import { workflowJsonSchema } from '../src/definition/json-schema.ts';
import { FILTERS } from '../src/template/filters.ts';
import { FUNCTIONS } from '../src/template/functions.ts';
import { METHODS } from '../src/template/methods.ts';
import { TESTS } from '../src/template/tests.ts';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..');
const PAGES = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md']
  .concat(
    readdirSync(join(ROOT, 'docs'), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith('.md'))
      .map((entry) => relative(ROOT, join(entry.parentPath, entry.name))),
  )
  .map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }));

/** The fenced blocks of a page with their language and line. */
function blocksOf(text: string): readonly { language: string; body: string; line: number }[] {
  return [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map((match) => ({
    language: match[1] ?? '',
    body: match[2] ?? '',
    line: text.slice(0, match.index).split('\n').length,
  }));
}

describe('a page', () => {
  for (const { path, text } of PAGES) {
    const workflows = blocksOf(text).filter(({ language, body }) =>
      language === 'yaml' ? body.startsWith('name:') : language === 'json' && /"(tasks|nodes)":/.test(body),
    );
    for (const { body, line } of workflows) {
      it(`${path}:${line} shows a workflow that is valid`, async () => {
        const { errors, warnings } = await checkWorkflow(body);
        expect({ errors, warnings }).toEqual({ errors: [], warnings: [] });
      });
    }
  }

  it('about templates names every filter, test, function and method', () => {
    const text = pageText('docs/reference/templates.md');
    const names = [FILTERS, TESTS, FUNCTIONS, METHODS].flatMap((table) => [...table.keys()]);
    expect(names.filter((name) => !new RegExp(`[\`, ]${escaped(name)}[\`, (\n]`).test(text))).toEqual([
      'cycle',
    ]);
  });

  it('about the workflow file names every key of the format', () => {
    const text = pageText('docs/reference/workflow-file.md');
    const keys = new Set(
      [
        ...JSON.stringify(workflowJsonSchema(new Map())).matchAll(/"(\w+)":\{"(?:description|type|anyOf)"/g),
      ].map((match) => match[1] ?? ''),
    );
    for (const word of ['properties', 'items', 'additionalProperties', 'propertyNames']) keys.delete(word);
    expect(keys.size).toBeGreaterThan(40);
    expect([...keys].filter((key) => !text.includes(`\`${key}\``))).toEqual([]);
  });

  it('names only commands that exist', () => {
    const known = new Set(['help', 'COMMAND', ...COMMANDS.map(({ name }) => name)]);
    const unknown = PAGES.filter(({ path }) => path !== 'CHANGELOG.md').flatMap(({ path, text }) =>
      blocksOf(text)
        .filter(({ language }) => language === 'bash' || language === 'console')
        .flatMap(({ body }) => [...body.matchAll(/^(?:\$ )?(?:npx )?relay ([\w-]+)/gm)])
        .map((match) => match[1] ?? '')
        .filter((name) => !known.has(name))
        .map((name) => `${path}: relay ${name}`),
    );
    expect(unknown).toEqual([]);
  });

  it('has no address of a private host, no path of a machine', () => {
    const found = PAGES.flatMap(({ path, text }) =>
      (text.match(/\/(?:root|home|tmp|work|Users)\/\S+|https?:\/\/(?!example\.(?:org|com))\S+/g) ?? [])
        .filter((place) => !/^https?:\/\/(www\.apache\.org|127\.0\.0\.1|localhost|…)/.test(place))
        .map((place) => `${path}: ${place}`),
    );
    expect(found).toEqual([]);
  });
});

function pageText(path: string): string {
  return PAGES.find((page) => page.path === path)?.text ?? '';
}

function escaped(text: string): string {
  return text.replace(/[^\w]/g, '\\$&');
}
