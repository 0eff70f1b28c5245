// What every contender notes and prints, in the shape of `relay bench --json`, so that all are measured alike: the rate counts from
// the first start to the last end, a hop from the end of the last parent's handler to the start of the child's, after a warm-up.

const WARM_TASKS = 10_000;

/** Runs the same workload until so many tasks have passed, as `relay bench` does. */
export async function warmUp(tasks, measure) {
  for (let done = 0; done < WARM_TASKS; done += tasks)
    await measure(Math.min(tasks, WARM_TASKS), `warm-${done}`);
}

/** Counts calls and ends, and measures hops. */
export class Meter {
  #ends = new Map();
  #lastOfRun = new Map();
  #hops = [];
  #ended = 0;
  #awaited = null;

  reset() {
    this.#ends.clear();
    this.#lastOfRun.clear();
    this.#hops.length = 0;
    this.#ended = 0;
  }

  /** The handler of a task is called; it does nothing, so that this is also its end. `*` is every task of the run so far. */
  called(run, id, needs) {
    const now = performance.now();
    let last = 0;
    for (const need of needs)
      last = Math.max(
        last,
        (need === '*' ? this.#lastOfRun.get(run) : this.#ends.get(`${run} ${need}`)) ?? 0,
      );
    if (last > 0) this.#hops.push(now - last);
    this.#ends.set(`${run} ${id}`, now);
    this.#lastOfRun.set(run, now);
  }

  /** A task's end is durable, as far as this contender makes anything durable. */
  ended() {
    this.#ended += 1;
    if (this.#ended === this.#awaited?.count) this.#awaited.resolve();
  }

  /** Resolves when so many have ended since the last reset. */
  allEnded(count) {
    return new Promise((resolve) => {
      this.#awaited = { count, resolve };
      if (this.#ended >= count) resolve();
    });
  }

  hop(share) {
    const sorted = this.#hops.toSorted((a, b) => a - b);
    return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
  }
}

/** The one line that the runner reads. */
export function printResult({ workload, total, seconds, meter, settings }) {
  const result = {
    workload,
    tasks: total,
    seconds: round(seconds),
    tasks_per_s: Math.round(total / seconds),
    hop_ms: { p50: round(meter.hop(0.5)), p99: round(meter.hop(0.99)) },
    settings,
  };
  process.stdout.write(`${JSON.stringify(result)}\n`);
}

function round(value) {
  return Math.round(value * 1_000) / 1_000;
}
