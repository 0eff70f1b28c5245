/** The client of an embedded Relay: what a command has of a server elsewhere, it has of the store in its own process. */
import { clientOver } from '#client';
import { systemClock } from '../base/clock.ts';
import { createRedactor } from '../base/redact.ts';
import type { TraceContext } from '../base/trace.ts';
import { InProcess } from '../server/in-process.ts';
import type { RelayApi } from './api.ts';
import type { LocalRelay } from './local-relay.ts';

/** A client that reaches the routes without a socket. */
export function embeddedClient(
  { engine, api, logger, by }: LocalRelay,
  trace: TraceContext | undefined,
): RelayApi {
  const door = new InProcess({
    engine,
    apiFor: () => api,
    clock: systemClock,
    logger,
    redact: createRedactor(engine.secretValues),
    by,
    trace,
  });
  return clientOver(door, { changed: (signal) => api.events.changed(signal) });
}
