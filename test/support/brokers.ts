/** Real brokers of the tests' own: a port and a folder that nobody else has, stopped by their pid. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, connect as dial } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '../..');
const START_MS = 60_000;

/** A running server. */
export interface BrokerServer {
  readonly url: string;
  readonly port: number;
  /** Kills it; what it has not written down is gone. */
  stop(): Promise<void>;
  start(): Promise<void>;
  /** Stops it and removes its folder. */
  remove(): Promise<void>;
}

/** Starts a server, or tells why that is not possible. A durable one writes down what it has, and outlives a crash. */
export type StartBroker = (options?: {
  readonly isDurable?: boolean;
}) => Promise<BrokerServer | { readonly reason: string }>;

/** A Redis; unless it is durable it forgets everything when it is stopped. */
export const startRedis: StartBroker = async ({ isDurable = false } = {}) => {
  const found = findService('redis');
  if (found.bin === undefined) return { reason: found.reason ?? 'unknown' };
  const folder = mkdtempSync(join(tmpdir(), 'relay-redis-'));
  const port = await freePort();
  const durability = isDurable
    ? ['--appendonly', 'yes', '--appendfsync', 'everysec']
    : ['--appendonly', 'no'];
  const args = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder, '--save', '', ...durability];
  return serve({ folder, port, url: `redis://127.0.0.1:${port}` }, () =>
    spawn(join(found.bin ?? '', 'redis-server'), args, { stdio: 'ignore' }),
  );
};

/** A RabbitMQ node of its own; durable queues survive its restart. */
export const startRabbit: StartBroker = async () => {
  const found = findService('rabbitmq');
  if (found.bin === undefined) return { reason: found.reason ?? 'unknown' };
  const owner = userNamed('rabbitmq');
  if (process.getuid?.() === 0 && owner === null)
    return { reason: 'RabbitMQ does not run as root, and there is no user rabbitmq' };
  const folder = mkdtempSync(join(tmpdir(), 'relay-rabbitmq-'));
  for (const name of ['', 'mnesia', 'log']) {
    mkdirSync(join(folder, name), { recursive: true });
    if (owner !== null) chownSync(join(folder, name), owner.uid, owner.gid);
  }
  const [port, distPort, mapperPort] = [await freePort(), await freePort(), await freePort()];
  writeFileSync(join(folder, 'rabbitmq.conf'), `listeners.tcp.1 = 127.0.0.1:${port}\n`);
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    RABBITMQ_NODENAME: `relay${port}@localhost`,
    RABBITMQ_DIST_PORT: `${distPort}`,
    ERL_EPMD_ADDRESS: '127.0.0.1',
    ERL_EPMD_PORT: `${mapperPort}`,
    RABBITMQ_MNESIA_BASE: join(folder, 'mnesia'),
    RABBITMQ_LOG_BASE: join(folder, 'log'),
    RABBITMQ_CONFIG_FILE: join(folder, 'rabbitmq.conf'),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'enabled_plugins'),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '-kernel inet_dist_use_interface {127,0,0,1}',
  };
  const server = await serve({ folder, port, url: `amqp://guest:guest@127.0.0.1:${port}` }, () =>
    spawn(join(found.bin ?? '', 'rabbitmq-server'), [], {
      env,
      stdio: 'ignore',
      cwd: folder,
      detached: true,
      ...(owner !== null && { uid: owner.uid, gid: owner.gid }),
    }),
  );
  return {
    ...server,
    remove: async () => {
      await server.remove();
      // Erlang's port mapper outlives the node that started it.
      spawnSync('epmd', ['-port', `${mapperPort}`, '-kill'], { env });
    },
  };
};

async function serve(
  { folder, port, url }: { readonly folder: string; readonly port: number; readonly url: string },
  launch: () => ChildProcess,
): Promise<BrokerServer> {
  let child: ChildProcess | null = null;
  const server: BrokerServer = {
    url,
    port,
    start: async () => {
      child = launch();
      await answers(port, child);
    },
    stop: async () => {
      const dying = child;
      child = null;
      if (dying === null) return;
      const gone = new Promise<void>((resolve) => dying.once('close', () => resolve()));
      kill(dying);
      await gone;
    },
    remove: async () => {
      await server.stop();
      rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
    },
  };
  await server.start();
  return server;
}

/** RabbitMQ is a shell script in front of its server; their group goes together. */
function kill(child: ChildProcess): void {
  try {
    process.kill(
      child.spawnargs[0]?.endsWith('rabbitmq-server') ? -(child.pid ?? 0) : (child.pid ?? 0),
      'SIGKILL',
    );
  } catch {
    // It has ended by itself.
  }
}

/** Waits until the port speaks: a Redis answers, a RabbitMQ greets. */
async function answers(port: number, child: ChildProcess): Promise<void> {
  const until = Date.now() + START_MS;
  while (Date.now() < until) {
    if (child.exitCode !== null) throw new Error(`the server on port ${port} ended with ${child.exitCode}`);
    if (await isAnswering(port)) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`nothing answers on port ${port}`);
}

function isAnswering(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = dial(port, '127.0.0.1');
    const end = (answer: boolean): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(2_000, () => end(false));
    socket.once('error', () => end(false));
    socket.once('data', (data) => end(!data.toString('latin1').includes('LOADING')));
    // Eight bytes: as many as RabbitMQ reads before it says that it speaks another language.
    socket.once('connect', () => socket.write('PING\r\n\r\n'));
    socket.once('close', () => end(false));
  });
}

function findService(name: string): { bin?: string; reason?: string } {
  const { stdout } = spawnSync(process.execPath, ['scripts/services.mjs', name], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  return JSON.parse(stdout || '{"reason":"scripts/services.mjs failed"}') as {
    bin?: string;
    reason?: string;
  };
}

function userNamed(name: string): { uid: number; gid: number } | null {
  if (process.getuid?.() !== 0) return null;
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((entry) => entry.startsWith(`${name}:`));
  const [, , uid, gid] = line?.split(':') ?? [];
  return uid === undefined ? null : { uid: Number(uid), gid: Number(gid) };
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0));
    });
  });
}
