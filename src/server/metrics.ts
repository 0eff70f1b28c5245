/** Numbers for Prometheus (SPEC S12.5): counted here, shown as text. Gauges of the store are read when somebody looks. */
import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';
import type { LimitView, RelayApi } from '../app/api.ts';
import type { TailEvent } from './event-tail.ts';

const BUCKETS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60] as const;
const NS_PER_S = 1e9;

/** What an event says about how an attempt ended. */
const OUTCOMES: Readonly<Record<string, string>> = {
  'task.completed': 'success',
  'task.failed': 'failed',
  'task.retry_scheduled': 'retried',
  'task.released': 'released',
  'task.lease_expired': 'lost',
  'task.paused': 'paused',
};

type Labels = Readonly<Record<string, string>>;

/** Counts values into buckets. */
class Histogram {
  readonly #counts = BUCKETS_S.map(() => 0);
  #sum = 0;
  #count = 0;

  observe(seconds: number): void {
    this.#sum += seconds;
    this.#count += 1;
    const at = BUCKETS_S.findIndex((bucket) => seconds <= bucket);
    if (at >= 0) this.#counts[at] = (this.#counts[at] ?? 0) + 1;
  }

  lines(name: string, labels: Labels): string[] {
    let total = 0;
    const buckets = BUCKETS_S.map((bucket, index) => {
      total += this.#counts[index] ?? 0;
      return line(`${name}_bucket`, { ...labels, le: String(bucket) }, total);
    });
    return [
      ...buckets,
      line(`${name}_bucket`, { ...labels, le: '+Inf' }, this.#count),
      line(`${name}_sum`, labels, this.#sum),
      line(`${name}_count`, labels, this.#count),
    ];
  }
}

/** Counts by label values, which must come from a small set. */
class Family<T> {
  readonly #members = new Map<string, { readonly labels: Labels; value: T }>();
  readonly #make: () => T;

  constructor(make: () => T) {
    this.#make = make;
  }

  of(labels: Labels): { value: T } {
    const key = JSON.stringify(labels);
    const known = this.#members.get(key);
    if (known !== undefined) return known;
    const made = { labels, value: this.#make() };
    this.#members.set(key, made);
    return made;
  }

  all(): Iterable<{ readonly labels: Labels; readonly value: T }> {
    return this.#members.values();
  }
}

/** The numbers of one server. */
export class Metrics {
  readonly #attempts = new Family(() => 0);
  readonly #requests = new Family(() => new Histogram());
  readonly #work = new Family(() => new Histogram());
  readonly #delay: IntervalHistogram = monitorEventLoopDelay({ resolution: 10 });
  streams = 0;

  /** Measures the delay of the event loop from now on. */
  start(): void {
    this.#delay.enable();
  }

  /** The time of a claim or a settlement, as its worker sees it less the way. */
  observeWork(step: 'claim' | 'settle', seconds: number): void {
    this.#work.of({ step }).value.observe(seconds);
  }

  observeRequest(route: string, status: number, seconds: number): void {
    this.#requests.of({ route, status: String(status) }).value.observe(seconds);
  }

  /** Counts how attempts end. */
  hear(events: readonly TailEvent[]): void {
    for (const { view } of events) {
      const outcome = OUTCOMES[view.type];
      if (outcome !== undefined) this.#attempts.of({ outcome }).value += 1;
    }
  }

  stop(): void {
    this.#delay.disable();
  }

  /** Everything as text. */
  async text(api: RelayApi): Promise<string> {
    const stats = await api.stats.get();
    const limits = (await api.limits.list()).items;
    const perLimit = (name: string, help: string, of: (limit: LimitView) => number): string[] => [
      `# HELP ${name} ${help}`,
      `# TYPE ${name} gauge`,
      ...limits.map((limit) => line(name, { limit: limit.name }, of(limit))),
    ];
    const outbox = await api.outbox.stats();
    const gauge = (name: string, help: string, value: number): string[] => [
      `# HELP ${name} ${help}`,
      `# TYPE ${name} gauge`,
      line(name, {}, value),
    ];
    const lines = [
      ...gauge('relay_queue_depth', 'Tasks that can be claimed now.', stats.queued),
      ...gauge(
        'relay_queue_oldest_seconds',
        'Age of the oldest run that has a task to claim.',
        (stats.oldest_queued_ms ?? 0) / 1_000,
      ),
      ...gauge('relay_leases', 'Tasks that a worker holds.', stats.leased),
      ...gauge('relay_questions', 'Tasks that wait for a person.', stats.asking),
      ...gauge('relay_timers', 'Retries, waits and time limits that are not due yet.', stats.delayed),
      ...gauge('relay_workers', 'Workers that are registered.', stats.workers),
      ...gauge('relay_outbox_depth', 'Messages that could be sent to the broker now.', outbox.depth),
      ...gauge(
        'relay_outbox_oldest_seconds',
        'Age of the oldest message that could be sent now.',
        (outbox.oldest_ms ?? 0) / 1_000,
      ),
      ...gauge('relay_outbox_delayed', 'Messages that are not due yet.', outbox.delayed),
      ...gauge(
        'relay_outbox_outstanding',
        'Messages that were sent and whose tasks are not claimed yet.',
        outbox.outstanding,
      ),
      ...gauge('relay_outbox_dead', 'Messages that the broker has refused too often.', outbox.dead),
      ...gauge('relay_streams', 'Open event streams of this server.', this.streams),
      ...gauge(
        'relay_event_loop_lag_seconds',
        'Delay of the event loop of this server, 99th percentile since the last look.',
        this.#lag(),
      ),
      ...perLimit('relay_limit_in_use', 'Slots of a named limit that are taken.', ({ in_use }) => in_use),
      ...perLimit('relay_limit_waiting', 'Tasks that wait for a named limit.', ({ waiting }) => waiting),
      '# HELP relay_runs Runs by status.',
      '# TYPE relay_runs gauge',
      ...Object.entries(stats.runs).map(([status, n]) => line('relay_runs', { status }, n)),
      '# HELP relay_attempts_total Attempts by how they ended, since this server started.',
      '# TYPE relay_attempts_total counter',
      ...[...this.#attempts.all()].map(({ labels, value }) => line('relay_attempts_total', labels, value)),
      '# HELP relay_work_seconds Time of claims and settlements.',
      '# TYPE relay_work_seconds histogram',
      ...[...this.#work.all()].flatMap(({ labels, value }) => value.lines('relay_work_seconds', labels)),
      '# HELP relay_http_request_seconds Time of requests, by route.',
      '# TYPE relay_http_request_seconds histogram',
      ...[...this.#requests.all()].flatMap(({ labels, value }) =>
        value.lines('relay_http_request_seconds', labels),
      ),
    ];
    return `${lines.join('\n')}\n`;
  }

  #lag(): number {
    const lag = this.#delay.percentile(99) / NS_PER_S;
    this.#delay.reset();
    return Number.isFinite(lag) ? lag : 0;
  }
}

function line(name: string, labels: Labels, value: number): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${text.replace(/["\\\n]/g, '_')}"`);
  return `${name}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}`;
}
