/** Brokers by URL scheme. Adding one is a file and a line here; its client is loaded only when it is used. */
import { RelayError } from '../base/errors.ts';
import type { Broker } from './broker.ts';

type OpenBroker = (url: string) => Promise<Broker>;

const openRedis: OpenBroker = async (url) => new (await import('./redis.ts')).RedisBroker(url);
const openRabbit: OpenBroker = async (url) => new (await import('./rabbitmq.ts')).RabbitBroker(url);

const BROKERS: Readonly<Record<string, OpenBroker>> = {
  redis: openRedis,
  rediss: openRedis,
  amqp: openRabbit,
  amqps: openRabbit,
};

/** Opens the broker that a URL names; nothing is connected yet. */
export async function openBroker(url: string): Promise<Broker> {
  const open = BROKERS[url.split(':', 1)[0] ?? ''];
  if (open !== undefined) return open(url);
  const hint = `this version knows ${Object.keys(BROKERS)
    .map((scheme) => `${scheme}://…`)
    .join(', ')}`;
  throw new RelayError('INVALID_CONFIG', `the broker ${url.split('@').at(-1)} cannot be opened`, { hint });
}
