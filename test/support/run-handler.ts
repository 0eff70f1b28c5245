/** A program that runs one handler with a config from the command line and prints its log; tests kill it. */
import { WORKER_HANDLERS } from '../../src/handlers/registry.ts';
import { runHandler } from './handler-bench.ts';

const [name = '', config = '{}', workdir = '/'] = process.argv.slice(2);
const handler = WORKER_HANDLERS.get(name);
if (handler === undefined) process.exit(2);
await runHandler(handler, JSON.parse(config), {
  workdir,
  env: process.env,
  log: (text) => process.stdout.write(text),
});
