/** The one shape of everything that runs until it is told to stop: loops, servers, workers. */

/** A long-lived part with a start and an end. `stop` may be called at any time, and twice. */
export interface Service {
  readonly name: string;
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** A service that repeats one bounded step; tests drive `runOnce` and never wait. */
export interface LoopService extends Service {
  /** Does what is due now and says how much that was, by name. */
  runOnce(): Promise<Readonly<Record<string, number>>>;
}

/** Starts services in order; if one fails, those already up are stopped in reverse before the error goes on. */
export async function startAll(services: readonly Service[]): Promise<void> {
  const started: Service[] = [];
  for (const service of services) {
    try {
      await service.start();
      started.push(service);
    } catch (error) {
      await stopAll(started);
      throw error;
    }
  }
}

/** Stops services in reverse order. All are stopped even if some fail; the failures come back together. */
export async function stopAll(services: readonly Service[]): Promise<void> {
  const failures: unknown[] = [];
  for (const service of services.toReversed()) {
    try {
      await service.stop();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, `${failures.length} service(s) failed to stop`);
}
