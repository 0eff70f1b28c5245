/** The settings of the outbox relay (SPEC S10.3): their defaults, and which values make no sense. */
import { RelayError } from '../base/errors.ts';

/** Numbers are counts, or milliseconds where the name says so. */
export interface RelaySettings {
  readonly batchSize: number;
  readonly idleTimeMs: number;
  readonly publishConcurrency: number;
  readonly maxRetries: number;
  readonly backoffTimeMs: number;
  readonly maxBackoffMs: number;
  readonly sendTimeoutMs: number;
  readonly staleTimeoutMs: number;
  readonly shutdownTimeoutMs: number;
  readonly outageCooldownMs: number;
}

export const RELAY_DEFAULTS: RelaySettings = Object.freeze({
  batchSize: 100,
  idleTimeMs: 1_000,
  publishConcurrency: 1,
  maxRetries: 5,
  backoffTimeMs: 120_000,
  maxBackoffMs: 3_600_000,
  sendTimeoutMs: 10_000,
  staleTimeoutMs: 300_000,
  shutdownTimeoutMs: 30_000,
  outageCooldownMs: 30_000,
});

const COUNTS: ReadonlySet<keyof RelaySettings> = new Set(['batchSize', 'publishConcurrency', 'maxRetries']);
const COUNT_MAX = 100_000;
/** What a timer of Node can hold. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** The settings, or USAGE with what is wrong about them. */
export function checkRelaySettings(settings: RelaySettings): RelaySettings {
  for (const [name, value] of Object.entries(settings) as [keyof RelaySettings, number][]) {
    const max = COUNTS.has(name) ? COUNT_MAX : TIMER_MAX_MS;
    const isFit = Number.isFinite(value) && value > 0 && value <= max;
    if (!isFit || (COUNTS.has(name) && !Number.isInteger(value)))
      throw new RelayError('USAGE', `${flagOf(name)} must be more than 0 and at most ${max}, not ${value}`);
  }
  if (settings.sendTimeoutMs >= settings.staleTimeoutMs)
    throw new RelayError('USAGE', '--send-timeout must be shorter than --stale-timeout', {
      hint: 'a send must be over before another process may take the message',
    });
  return settings;
}

/** `sendTimeoutMs` is `--send-timeout` on the command line. */
function flagOf(name: keyof RelaySettings): string {
  if (name === 'outageCooldownMs') return '--broker-outage-cooldown';
  return `--${name.replace(/Ms$/, '').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}
