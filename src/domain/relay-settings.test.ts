/** The settings of the outbox relay: what is refused, and how that is told. */
import { describe, expect, it } from 'vitest';
import { checkRelaySettings, RELAY_DEFAULTS, type RelaySettings } from './relay-settings.ts';

describe('settings of the outbox relay', () => {
  // SPEC S10.3
  it('the defaults are fit', () => {
    expect(checkRelaySettings(RELAY_DEFAULTS)).toBe(RELAY_DEFAULTS);
  });

  // SPEC S10.3
  it.each(Object.keys(RELAY_DEFAULTS) as (keyof RelaySettings)[])(
    '%s may not be NaN, infinite, zero or negative',
    (name) => {
      for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0, -1])
        expect(() => checkRelaySettings({ ...RELAY_DEFAULTS, [name]: value })).toThrow(/^--[a-z-]+ must be/);
    },
  );

  // SPEC S10.3
  it('a count is a whole number', () => {
    expect(() => checkRelaySettings({ ...RELAY_DEFAULTS, batchSize: 1.5 })).toThrow('--batch-size');
  });

  // SPEC S10.3
  it('a send must be over before others may take the message', () => {
    const settings = { ...RELAY_DEFAULTS, sendTimeoutMs: 5_000, staleTimeoutMs: 5_000 };
    expect(() => checkRelaySettings(settings)).toThrow('--send-timeout must be shorter than --stale-timeout');
  });

  // SPEC S10.3
  it('flags are named as on the command line', () => {
    expect(() => checkRelaySettings({ ...RELAY_DEFAULTS, outageCooldownMs: 0 })).toThrow(
      '--broker-outage-cooldown must be',
    );
  });
});
