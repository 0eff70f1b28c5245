// Makes the services that tests need available: `node scripts/services.mjs postgres` prints where its programs are, or why there
// are none, as JSON. Installs Debian packages when run as root; never starts anything.
import { spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const POSTGRES_BIN = '/usr/lib/postgresql/15/bin';
const REDIS_BIN = '/usr/bin';
const RABBITMQ_BIN = '/usr/lib/rabbitmq/bin';
const POLICY = '/usr/sbin/policy-rc.d';

/** The folder of a service's programs, or the reason why there is none. */
function ensure({ title, bin, program, packages }) {
  if (existsSync(`${bin}/${program}`)) return { bin };
  const reason = install(packages);
  if (reason !== null) return { reason: `${title} is not installed: ${reason}` };
  return existsSync(`${bin}/${program}`) ? { bin } : { reason: `${title} was installed, but not to ${bin}` };
}

/** Installs Debian packages so that they start no daemons of their own; null when all went well. */
function install(packages) {
  if (process.getuid?.() !== 0) return 'installing it needs root';
  if (spawnSync('apt-get', ['--version']).status !== 0) return 'there is no apt-get here';
  if (!existsSync(POLICY)) writeFileSync(POLICY, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const apt = (...args) => spawnSync('apt-get', ['-qq', ...args], { env, encoding: 'utf8' });
  apt('update');
  const { status, stderr } = apt('install', '-y', '--no-install-recommends', ...packages);
  return status === 0 ? null : (stderr.trim().split('\n').at(-1) ?? 'apt-get failed');
}

const SERVICES = {
  postgres: { title: 'PostgreSQL 15', bin: POSTGRES_BIN, program: 'initdb', packages: ['postgresql-15'] },
  redis: { title: 'Redis', bin: REDIS_BIN, program: 'redis-server', packages: ['redis-server'] },
  rabbitmq: {
    title: 'RabbitMQ',
    bin: RABBITMQ_BIN,
    program: 'rabbitmq-server',
    packages: ['rabbitmq-server'],
  },
};

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const wanted = process.argv.slice(2);
  const names = wanted.length > 0 ? wanted : Object.keys(SERVICES);
  for (const name of names) {
    const service = SERVICES[name];
    const found = service === undefined ? { reason: `there is no service \`${name}\`` } : ensure(service);
    console.log(JSON.stringify({ service: name, ...found }));
  }
}
