// `npm run demo`: from a fresh clone to a finished run with its outputs and timeline, in a few seconds.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build, ensureInstalled, ROOT } from './project.mjs';

const started = performance.now();
ensureInstalled();
if (isStale()) build();

const data = mkdtempSync(join(tmpdir(), 'relay-demo-'));
const BRIEF = 'examples/research-brief.yaml';

console.log(`\n── relay run ${BRIEF} --yes\n`);
relay('run', BRIEF, '--yes', '--data', data);

const listed = relay('runs', 'list', '--json', '--data', data, { stdio: ['ignore', 'pipe', 'inherit'] });
const [{ id }] = JSON.parse(listed).items;
console.log(`\n── relay runs show ${id} --timeline\n`);
relay('runs', 'show', id, '--timeline', '--data', data);

console.log('\n── relay validate: the other examples\n');
const others = readdirSync(join(ROOT, 'examples'))
  .filter((name) => /\.(yaml|json)$/.test(name))
  .map((name) => `examples/${name}`)
  .filter((name) => name !== BRIEF);
for (const example of others) relay('validate', example);
rmSync(data, { recursive: true, force: true });

const seconds = ((performance.now() - started) / 1000).toFixed(1);
console.log(`
Done in ${seconds} s. Next:
  npx relay run ${BRIEF}    the same, with you at the gate
  npx relay init my-project                     a commented starter project
  docs/tutorial/first-workflow.md               write your first workflow
`);

function relay(...words) {
  const options = typeof words.at(-1) === 'object' ? words.pop() : {};
  const { status, stdout } = spawnSync(process.execPath, ['dist/cli/main.js', ...words], {
    cwd: ROOT,
    stdio: 'inherit',
    ...options,
  });
  if (status !== 0) process.exit(status ?? 1);
  return stdout?.toString();
}

/** True when a source file is newer than what was built from it. */
function isStale() {
  const built = join(ROOT, 'dist', 'cli', 'main.js');
  if (!existsSync(built)) return true;
  const builtAt = statSync(built).mtimeMs;
  const sources = readdirSync(join(ROOT, 'src'), { recursive: true, withFileTypes: true });
  return sources.some(
    (entry) => entry.isFile() && statSync(join(entry.parentPath, entry.name)).mtimeMs > builtAt,
  );
}
