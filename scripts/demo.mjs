// `npm run demo`: from a fresh clone to every example checked and drawn, in a few seconds.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { build, ensureInstalled, ROOT } from './project.mjs';

const started = performance.now();
ensureInstalled();
if (isStale()) build();

const examples = readdirSync(join(ROOT, 'examples'))
  .filter((name) => /\.(yaml|json)$/.test(name))
  .map((name) => `examples/${name}`);

for (const example of examples) {
  console.log(`\n── relay graph ${example}\n`);
  relay('graph', example);
}
console.log('\n── relay validate\n');
for (const example of examples) relay('validate', example);

const seconds = ((performance.now() - started) / 1000).toFixed(1);
console.log(`
All ${examples.length} examples are valid (${seconds} s). Next:
  npx relay init my-project          a commented starter project
  npx relay validate FILE            every mistake of a workflow, with its line and a remedy
  docs/tutorial/first-workflow.md    write your first workflow
`);

function relay(...args) {
  const { status } = spawnSync(process.execPath, ['dist/cli/main.js', ...args], {
    cwd: ROOT,
    stdio: 'inherit',
  });
  if (status !== 0) process.exit(status ?? 1);
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
