// `npm test` and its parts. Quick checks first, slow ones last, and the runner's own summary at the end.
import { build, ensureInstalled, step, tool } from './project.mjs';

const mode = process.argv[2] ?? 'all';
const extra = process.argv.slice(3);

const staticChecks = () => {
  tool('Types', 'tsc', ['-p', '.']);
  tool('Format and lint (biome)', 'biome', ['ci', '--error-on-warnings', '.']);
  tool('Lint (oxlint)', 'oxlint', ['--deny-warnings']);
  tool('Unused code (knip)', 'knip', ['--no-progress']);
};
/** Installed before the tests, where no test's time runs; what cannot be had is skipped by name later. */
const services = () => step('Services', process.execPath, ['scripts/services.mjs']);
const vitest = (title, projects) =>
  tool(title, 'vitest', ['run', ...projects.flatMap((name) => ['--project', name]), ...extra]);

/** The same tests with more of everything: 100 kills instead of 20, 5,000 random runs instead of 300, new random values. */
const LONG = { RELAY_LONG: 'yes', RELAY_SIMULATIONS: '5000' };

const modes = {
  check: () => {
    staticChecks();
    vitest('Unit tests and conformance of stores', ['unit', 'conformance']);
  },
  unit: () => vitest('Unit tests', ['unit']),
  scenarios: () => {
    build();
    vitest('Scenarios', ['scenarios']);
  },
  services: () => {
    build();
    services();
    vitest('Tests with other runtimes and services', ['services']);
  },
  long: () => {
    for (const [name, value] of Object.entries(LONG)) process.env[name] ??= value;
    build();
    tool('Crash sweep, simulation, kills and random values, at length', 'vitest', [
      'run',
      '--project',
      'unit',
      '--project',
      'crash',
      '--project',
      'scenarios',
      'test/crash',
      'test/simulation',
      'test/scenarios/kill',
      'test/scenarios/resume-after-kill',
      // What draws its values from test/support/property.ts.
      'src/domain',
      'src/definition/canonical',
      'src/template/hostile',
      'src/server/contract',
      ...extra,
    ]);
  },
  all: () => {
    staticChecks();
    build();
    services();
    vitest('All tests', []);
  },
};

const run = modes[mode];
if (run === undefined) {
  console.error(`unknown part \`${mode}\`; parts are ${Object.keys(modes).join(', ')}`);
  process.exit(2);
}
ensureInstalled();
run();
