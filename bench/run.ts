/** `npm run bench [NAME…] [--json]`: measures and prints. Timings belong here and never in a test. */
import { brokerBench } from './broker.ts';
import { engineBench } from './engine.ts';
import { graphBench } from './graph.ts';
import { httpBench } from './http.ts';
import { mapBench } from './map.ts';
import { templateBench } from './template.ts';
import { validateBench } from './validate.ts';
import { workerBench } from './worker.ts';

/** Measured values by name; the name ends in the unit. */
type Bench = () => Promise<Readonly<Record<string, number>>>;

const BENCHES: Readonly<Record<string, Bench>> = {
  template: templateBench,
  graph: graphBench,
  engine: engineBench,
  map: mapBench,
  worker: workerBench,
  http: httpBench,
  broker: brokerBench,
  validate: validateBench,
};

const names = process.argv.slice(2).filter((argument) => !argument.startsWith('-'));
const unknown = names.filter((name) => !Object.hasOwn(BENCHES, name));
if (unknown.length > 0) {
  process.stderr.write(
    `there is no bench ${unknown.join(', ')}; there are ${Object.keys(BENCHES).join(', ')}\n`,
  );
  process.exit(2);
}

const results: Record<string, number> = {};
for (const [name, bench] of Object.entries(BENCHES)) {
  if (names.length === 0 || names.includes(name)) Object.assign(results, await bench());
}

if (process.argv.includes('--json')) process.stdout.write(`${JSON.stringify(results, null, 2)}\n`);
else {
  const width = Math.max(...Object.keys(results).map((name) => name.length));
  for (const [name, value] of Object.entries(results)) {
    process.stdout.write(`${name.padEnd(width)}  ${value.toFixed(value < 100 ? 2 : 0).padStart(10)}\n`);
  }
}
