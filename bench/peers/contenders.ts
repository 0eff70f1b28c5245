/** Who is measured and how each is started: always a process of its own that prints one JSON result. */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort, startPostgres } from '../../test/support/postgres.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const MAIN = join(ROOT, 'dist', 'cli', 'main.js');
const REDIS_START_TRIES = 100;

export type Workload = 'fanout' | 'chain' | 'diamonds';

/** What a contender prints. */
export interface Result {
  readonly tasks: number;
  readonly seconds: number;
  readonly tasks_per_s: number;
  readonly hop_ms: { readonly p50: number; readonly p99: number };
  readonly settings: Readonly<Record<string, unknown>>;
}

/** Where the services of a run of the bench are. */
export interface Services {
  readonly postgres: string;
  readonly redisPort: number;
  stop(): void;
}

/** Starts Postgres as it comes, syncing, and Redis with an append-only file that is synced every second. */
export async function startServices(): Promise<Services> {
  // As many connections as the largest pool of a peer needs; everything else is the server's default.
  const postgres = await startPostgres('');
  if ('reason' in postgres) throw new TypeError(postgres.reason);
  const redis = await startRedis();
  return {
    postgres: postgres.url,
    redisPort: redis.port,
    stop: () => {
      redis.stop();
      postgres.remove();
    },
  };
}

async function startRedis(): Promise<{ port: number; stop: () => void }> {
  const { stdout } = spawnSync(process.execPath, ['scripts/services.mjs', 'redis'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  const { bin, reason } = JSON.parse(stdout) as { bin?: string; reason?: string };
  if (bin === undefined) throw new TypeError(reason);
  const dir = mkdtempSync(join(tmpdir(), 'relay-redis-'));
  const port = await freePort();
  const durability = ['--appendonly', 'yes', '--appendfsync', 'everysec', '--save', ''];
  const argv = ['--port', String(port), '--bind', '127.0.0.1', '--dir', dir, ...durability];
  const server = spawn(join(bin, 'redis-server'), argv, { stdio: 'ignore' });
  for (let tries = 0; spawnSync(join(bin, 'redis-cli'), ['-p', String(port), 'ping']).status !== 0; tries++) {
    if (tries > REDIS_START_TRIES) throw new TypeError('Redis does not answer');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return {
    port,
    stop: () => {
      server.kill('SIGKILL');
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** Installs the peers into their own folder, unless they are there. */
export function installPeers(): void {
  if (existsSync(join(import.meta.dirname, 'node_modules', '.package-lock.json'))) return;
  const argv = ['install', '--no-save', '--no-workspaces', '--no-audit', '--no-fund', '--loglevel=error'];
  const { status } = spawnSync('npm', argv, { cwd: import.meta.dirname, stdio: ['ignore', 2, 2] });
  if (status !== 0) throw new TypeError('the peers could not be installed');
}

/** Builds the program that is measured; what does not compile must be seen. */
export function buildRelay(): void {
  const { status } = spawnSync(process.execPath, [join(ROOT, 'scripts', 'build.mjs')], {
    stdio: ['ignore', 'ignore', 2],
  });
  if (status !== 0) throw new TypeError('Relay could not be built');
}

/** `relay bench` of the built program on a store; by default with as many tasks in flight as it takes itself. */
export function relay(
  workload: Workload,
  tasks: number,
  { store, inFlight }: { readonly store?: string | undefined; readonly inFlight?: number } = {},
): Promise<Result> {
  const argv = [MAIN, 'bench', '--json', '--workload', workload, '--tasks', String(tasks)];
  if (store !== undefined) argv.push('--store', store);
  if (inFlight !== undefined) argv.push('--concurrency', String(inFlight));
  return measured(argv);
}

/** A program of this folder with its own arguments. */
export function peer(
  file: string,
  workload: Workload,
  ...args: readonly (string | number)[]
): Promise<Result> {
  return measured([join(import.meta.dirname, file), workload, ...args.map(String)]);
}

/** Runs a program of Node and reads the JSON it prints. */
function measured(argv: readonly string[]): Promise<Result> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, argv, {
      cwd: tmpdir(),
      // A peer's use of its driver is not for us to complain about.
      env: { ...process.env, NODE_NO_WARNINGS: '1' },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let printed = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
    });
    child.once('error', reject);
    child.once('close', (code) => {
      if (code === 0) resolve(JSON.parse(printed) as Result);
      else reject(new TypeError(`${argv.join(' ')} ended with ${code}: ${printed}`));
    });
  });
}
